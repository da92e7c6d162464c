"""`twinsieve state`: inspect a state folder without changing it."""

from collections.abc import Mapping
from typing import Any

import click
import msgspec

from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.cli.support.exit_codes import EPILOG
from dedup_service.runtime.embedded.state_info import StateInfo, state_info

__all__ = ["state_group"]


@click.group("state")
def state_group() -> None:
    """Inspect a state folder."""


@state_group.command("info", epilog=EPILOG)
@click.argument("folder", metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of a table.")
def info_command(folder: str, *, as_json: bool) -> None:
    """Show space, rule, counts and sizes of the state folder DIR.

    This also works while another process writes to the folder.
    """
    info = state_info(folder)
    if as_json:
        click.echo(msgspec.json.encode(_plain(info)).decode())
    else:
        _print(folder, info)


def _plain(info: StateInfo) -> dict[str, Any]:
    values = {name: getattr(info, name) for name in info.__dataclass_fields__}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _print(folder: str, info: StateInfo) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=folder, title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("value", overflow="fold")
    for name, value in _rows(info):
        table.add_row(name, value)
    Console().print(table)


def _rows(info: StateInfo) -> list[tuple[str, str]]:
    commit = "none"
    if info.commit_sequence is not None and info.commit_age_s is not None:
        commit = f"at {info.commit_sequence:,}, {info.commit_age_s:,.0f} s old"
    return [
        ("space", info.space_id),
        ("rule", str(MatchRule.from_dict(info.rule))),
        ("keep", str(Keep.from_dict(info.keep))),
        ("last sequence", f"{info.sequence:,}"),
        *((kind, f"{count:,}") for kind, count in info.pages.items()),
        *((f"guard {guard}", f"{count:,}") for guard, count in info.guards.items() if count),
        *([("claims refused", f"{info.claim_refused:,}")] if info.claim_refused else []),
        ("pages compared with", f"{info.entries:,}"),
        *((f"expired by {reason}", f"{count:,}") for reason, count in info.expired.items() if count),
        ("retractions", f"{info.retractions:,}"),
        ("changes of policy", f"{max(0, info.policies - 1):,}"),
        *([("copies deleted up to", f"{info.deleted_up_to:,}")] if info.deleted_up_to else []),
        ("texts", f"{info.text_bytes:,} bytes"),
        ("last commit", commit),
        ("kept pages", f"{info.pages_bytes:,} bytes"),
        ("journal", f"{info.journal_bytes:,} bytes, format {info.format_version}"),
    ]
