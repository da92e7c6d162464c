"""`twinsieve correct` records a person's correction; `twinsieve corrections` lists and exports them.

A correction says that two pages are duplicates, or that they are not. It is a record of the log, of a
service or of a state folder, and overrides the rule from there on. Exported, corrections are labelled
pairs: `evaluate` and `calibrate` read them, with their pages in a second file.
"""

import getpass
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    SERVED_BASES,
    TARGET,
    connection_from,
    state_folder,
    topics_from,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import OutputFile, check_distinct, check_outside, check_writable
from dedup_service.interfaces.cli.support.page_sources import canonical_address, page_source
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.labels import Label

if TYPE_CHECKING:
    from dedup_service.runtime.explain.page_source import KnownPage, PageSource

KIND = "correction"
"""`kind` of an exported pair."""

_encoder = msgspec.json.Encoder()


@click.command(
    "correct", cls=GroupedCommand, epilog="https://a.example/1 --duplicate-of https://a.example/2 --state state"
)
@click.argument("url")
@click.option("--duplicate-of", metavar="URL", help="Mark the page as a duplicate of this one.")
@click.option("--not-duplicate-of", metavar="URL", help="Mark the page as not a duplicate of this one.")
@with_options(*TARGET)
@click.option(
    "--reason", metavar="TEXT", default="corrected by hand", show_default=True, help="Reason, stored in the log."
)
@click.option("--by", metavar="NAME", help="Author, stored in the log. [default: the user's name]")
def correct_command(url: str, duplicate_of: str | None, not_duplicate_of: str | None, **options: Any) -> int:
    """Mark two pages as duplicates or not.

    The correction is a record of the log and overrides the rule for these two pages from there on. The last
    correction of a pair applies. A page marked as a duplicate leaves the index. Earlier verdicts do not
    change.

    URL is the address of the page to correct. A state folder must know both pages (otherwise exit code
    3); the log of a service accepts the record unchecked.
    """
    original = duplicate_of or not_duplicate_of
    if original is None or (duplicate_of and not_duplicate_of):
        raise click.UsageError("give one of --duplicate-of URL and --not-duplicate-of URL")
    one, other = canonical_address(url), canonical_address(original)
    record = CorrectionRecord(one, other, duplicate_of is not None, options["reason"])
    if record.url == record.original:
        raise click.UsageError(f"both URLs are of one page, {record.url}: give two different pages")
    folder, by = state_folder(options), options["by"] or _user()
    if folder is not None:
        return _correct_in_state(folder, record, by)
    from dedup_service.runtime.kafka.control.operator_records import add_records

    (sequence,) = add_records(connection_from(options), topics_from(options), [record], by=by)
    _print_recorded(sequence, record)
    return ExitCode.DONE


def _correct_in_state(folder: str, record: CorrectionRecord, by: str | None) -> int:
    from dedup_service.runtime.embedded.administration import embedded_state
    from dedup_service.runtime.explain.correcting import CorrectionRequest, record_of
    from dedup_service.runtime.explain.journal_pages import JournalPages
    from dedup_service.runtime.explain.page_source import UnknownPageError

    request = CorrectionRequest(
        url=record.url, original=record.original, duplicate=record.duplicate, reason=record.reason
    )
    with embedded_state(folder) as state:
        journal = state.journal
        pages = JournalPages(
            lambda: nullcontext(journal.database), journal.header, state.held, state.host_text, state.entry
        )
        try:
            correction = state.correct(record_of(request, pages), author=by, timestamp=time.time())
        except UnknownPageError as error:
            click.echo(f"twinsieve: {error}", err=True)
            return ExitCode.BAD_RECORDS
        except RecordError as error:
            raise ConfigurationError(str(error)) from None
    _print_recorded(correction.sequence, correction.record)
    return ExitCode.DONE


def _print_recorded(sequence: int | None, record: CorrectionRecord) -> None:
    click.echo(f"sequence {sequence}: {record.url} {_relation(record)} {record.original}")


def _relation(record: CorrectionRecord) -> str:
    return "is a duplicate of" if record.duplicate else "is not a duplicate of"


def _user() -> str | None:
    """Return the user's name, or None if the system does not know it, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


@click.command("corrections", cls=GroupedCommand, epilog="--state state --export pairs.jsonl --pages pages.jsonl")
@with_options(*TARGET, SERVED_BASES)
@click.option("--json", "as_json", is_flag=True, help="Print each correction as one line of JSON.")
@click.option(
    "--export", metavar="FILE", help="Write the corrections in force to FILE as labelled pairs, for `evaluate`."
)
@click.option("--pages", metavar="FILE", help="With --export: write the pages of the pairs to FILE, with their texts.")
def corrections_command(**options: Any) -> int:
    """List the corrections of a log, oldest first, and export them as labelled pairs.

    Each line has the pages, author, time and reason of a correction, and whether a later one replaces it.

    `evaluate` and `calibrate` read the exported pairs, which name each page by the id of its latest visit.
    With --pages, pairs without a stored text are left out and counted; the exit code is then 3.
    """
    if options["pages"] and not options["export"]:
        raise click.UsageError("--pages needs --export: it writes the pages of the exported pairs")
    outputs = {"--export": options["export"], "--pages": options["pages"]}
    check_distinct(**outputs)
    check_outside(state_folder(options), **outputs)
    check_writable(**outputs)
    corrections = _corrections(options)
    for correction in corrections:
        click.echo(_json(correction) if options["as_json"] else _line(correction))
    if not options["export"]:
        return ExitCode.DONE
    in_force = [correction for correction in corrections if correction.in_force]
    urls = list(dict.fromkeys(url for correction in in_force for url in _urls(correction)))
    with page_source(options, urls) as source:
        missing = _export(in_force, source, options["export"], options["pages"])
    if missing:
        click.echo(f"twinsieve: {missing} pairs were left out: a page, or its text, is no longer stored", err=True)
    return ExitCode.BAD_RECORDS if missing else ExitCode.DONE


def _corrections(options: Mapping[str, Any]) -> list[Correction]:
    if state_folder(options) is not None:
        with page_source(options, ()) as source:
            return source.corrections()
    from dedup_service.interfaces.cli.support.progress import records_progress
    from dedup_service.runtime.kafka.control.operator_records import corrections_in

    with records_progress("reading the log") as read:
        return corrections_in(connection_from(options), topics_from(options), read)


def _json(correction: Correction) -> str:
    from dedup_service.interfaces.explain_json import correction_to_dict

    return _encoder.encode(correction_to_dict(correction)).decode()


def _line(correction: Correction) -> str:
    record = correction.record
    by = "" if correction.by is None else f" by {correction.by}"
    replaced = "" if correction.in_force else "; replaced by a later one"
    when = _when(correction) or "at an unknown time"
    statement = f"{record.url} {_relation(record)} {record.original} ({record.reason})"
    return terminal_safe(f"sequence {correction.sequence}, {when}{by}: {statement}{replaced}")


def _when(correction: Correction) -> str | None:
    return None if correction.at is None else datetime.fromtimestamp(correction.at, UTC).isoformat(timespec="seconds")


def _urls(correction: Correction) -> tuple[str, str]:
    return correction.record.original, correction.record.url


def _export(corrections: Sequence[Correction], source: "PageSource", pairs_file: str, pages_file: str | None) -> int:
    """Write the pairs, and the pages if `pages_file` is named; return the number of pairs left out."""
    found = {url: source.find(url) for correction in corrections for url in _urls(correction)}
    known = {url: page for url, page in found.items() if page is not None}
    texts = {url: source.text(page) for url, page in known.items()} if pages_file else {}
    usable = {url: page for url, page in known.items() if not pages_file or texts[url] is not None}
    ids = _ids(usable)
    exported = [correction for correction in corrections if usable.keys() >= set(_urls(correction))]
    with OutputFile(pairs_file) as file:
        file.write(list(_pair_lines(exported, ids)))
    if pages_file:
        urls = dict.fromkeys(url for correction in exported for url in _urls(correction))
        with OutputFile(pages_file) as file:
            file.write([_page_line(usable[url], ids[url], texts[url] or "") for url in urls])
    return len(corrections) - len(exported)


def _ids(pages: Mapping[str, "KnownPage"]) -> dict[str, str]:
    """Return the id of each page, or its URL if two pages have the same id."""
    counts = Counter(page.id for page in pages.values())
    return {url: page.id if counts[page.id] == 1 else url for url, page in pages.items()}


def _pair_lines(corrections: Sequence[Correction], ids: Mapping[str, str]) -> Iterator[bytes]:
    for correction in corrections:
        original, url = _urls(correction)
        label = "dup" if correction.record.duplicate else "not"
        yield _encoder.encode(Label(ids[original], ids[url], label, kind=KIND, at=_when(correction))) + b"\n"


def _page_line(page: "KnownPage", page_id: str, text: str) -> bytes:
    values = {"id": page_id, "url": page.url, "canonical_url": page.canonical_url, "title": page.title, "text": text}
    return _encoder.encode(values) + b"\n"
