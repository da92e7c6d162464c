"""`twinsieve state`: inspect a state folder, or give back its unused space."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.profiles import rule_text
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.progress import stages_progress
from dedup_service.runtime.embedded.administration import compact_state
from dedup_service.runtime.embedded.folder import FolderKind, state_in
from dedup_service.runtime.embedded.state import PAGES_FOLDER
from dedup_service.runtime.embedded.state_info import StateInfo, state_info
from dedup_service.runtime.store.store_info import StoreInfo, disk_bytes, store_info


@click.group("state")
def state_group() -> None:
    """Inspect or compact a state folder."""


@state_group.command("info", cls=GroupedCommand, epilog="state")
@click.argument("folder", metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of a table.")
def info_command(folder: str, *, as_json: bool) -> None:
    """Show space, rule, counts and sizes of the state folder DIR.

    Memory is that of a process that has the state open, at the last commit. This also works while another process
    writes to the folder. Of a folder of `serve`, it shows the last snapshot.
    """
    folder = state_in(folder)
    is_service = (Path(folder) / FolderKind.SERVICE.mark).exists()
    info = store_info(Path(folder) / PAGES_FOLDER) if is_service else state_info(folder)
    if as_json:
        click.echo(msgspec.json.encode(_plain(info)).decode())
    else:
        _print(folder, info)


@state_group.command("compact", cls=GroupedCommand, epilog="state")
@click.argument("folder", metavar="DIR")
def compact_command(folder: str) -> None:
    """Give back disk space of pages that left the index.

    DIR is the state folder of `filter` or `crawl`, or of a process of `serve`, and nothing else may have it open. Rows
    of pages that were removed, that expired or were taken down are left out of its files, the tables are written again,
    and so is the journal if a twentieth of it or more is free. Verdicts do not change. This reads and writes what is
    kept once, and needs room for a million pages of it, and for the journal, while it runs. It may be interrupted at
    any time.
    """
    folder = state_in(folder)
    before = _disk_bytes(folder)
    with stages_progress() as report:
        if (Path(folder) / FolderKind.SERVICE.mark).exists():
            from dedup_service.runtime.kafka.state.local_state import LocalState

            with LocalState.open(folder) as local:
                local.compact(report)
        else:
            compact_state(folder, report)
    after = _disk_bytes(folder)
    click.echo(f"{folder}: {before:,} bytes before, {after:,} after")


def _disk_bytes(folder: str) -> int:
    return sum(disk_bytes(path) for path in Path(folder).rglob("*") if path.is_file())


def _plain(info: StateInfo | StoreInfo) -> dict[str, Any]:
    values = {name: getattr(info, name) for name in info.__dataclass_fields__}
    if not values.get("bases", True):
        del values["bases"]
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _print(folder: str, info: StateInfo | StoreInfo) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=folder, title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("value", overflow="fold")
    rows = _store_rows(info) if isinstance(info, StoreInfo) else _rows(info)
    for name, value in rows:
        table.add_row(name, value)
    console = Console()
    console.print(table)
    since = "no commit yet" if info.commit_sequence is None else "at the last commit"
    console.print(_sizes(f"Memory, {since}", info.memory, info.live_rows or 0))
    console.print(_sizes("Disk", info.disk, info.live_rows or 0))


def _sizes(title: str, sizes: Mapping[str, int], pages: int) -> Any:
    """Return a table of bytes by structure, with bytes a page. pages: 0 if there are none."""
    from rich.table import Table

    table = Table("structure", title=title, title_justify="left", show_footer=True)
    table.columns[0].footer = "all"
    total = sum(sizes.values())
    table.add_column("bytes", f"{total:,}", justify="right")
    table.add_column("a kept page", f"{total / pages:,.1f}" if pages else "", justify="right")
    for name, size_bytes in sizes.items():
        if size_bytes:
            share = f"{size_bytes / pages:,.1f}" if pages else ""
            table.add_row(name.replace("_", " "), f"{size_bytes:,}", share)
    return table


def _rows(info: StateInfo) -> list[tuple[str, str]]:
    return [
        ("space", info.space_id),
        ("rule", rule_text(MatchRule.from_dict(info.rule))),
        ("keep", str(Keep.from_dict(info.keep))),
        *(("base", f"{name}, at record {records:,}") for name, records in info.bases),
        ("last sequence", f"{info.sequence:,}"),
        *((kind, f"{count:,}") for kind, count in info.pages.items()),
        *((f"guard {guard}", f"{count:,}") for guard, count in info.guards.items() if count),
        *([("claims refused", f"{info.claim_refused:,}")] if info.claim_refused else []),
        ("pages compared with", f"{info.entries:,}"),
        *((f"expired by {reason}", f"{count:,}") for reason, count in info.expired.items() if count),
        ("retractions", f"{info.retractions:,}"),
        ("changes of policy", f"{max(0, info.policies - 1):,}"),
        *([("copies deleted up to", f"{info.deleted_up_to:,}")] if info.deleted_up_to else []),
        *_store_rows(info),
        ("journal", f"format {info.format_version}, texts {info.text_bytes:,}, free {info.journal_free_bytes:,} bytes"),
    ]


def _store_rows(info: StateInfo | StoreInfo) -> list[tuple[str, str]]:
    """Return what the last commit has."""
    if info.commit_damage is not None:
        return [("last commit", f"{info.commit_damage}; the next opening builds the kept pages again")]
    if info.commit_sequence is None or info.commit_age_s is None:
        return [("last commit", "none")]
    return [
        ("last commit", f"at {info.commit_sequence:,}, {info.commit_age_s:,.0f} s old"),
        *([] if info.live_rows is None else [("rows", f"{info.rows:,}, live {info.live_rows:,}")]),
        *([] if info.cells is None else [("cells", f"{info.cells:,}, overflowed {info.cells_overflowed:,}")]),
    ]
