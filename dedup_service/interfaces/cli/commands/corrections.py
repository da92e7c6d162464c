"""`twinsieve correct`: what a person knows better of two pages.

`twinsieve corrections`: what people said of pairs, and the same as labelled pairs.
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
from dedup_service.core.url import canonicalise
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import TARGET, connection_of, state_folder, topics_of, with_options
from dedup_service.interfaces.cli.support.outputs import OutputFile, check_distinct
from dedup_service.interfaces.cli.support.page_sources import page_source
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.labels import Label

__all__ = ["correct_command", "corrections_command"]


@click.command("correct", epilog=EPILOG)
@click.argument("url")
@click.option("--duplicate-of", metavar="URL", help="The page that it repeats.")
@click.option("--not-duplicate-of", metavar="URL", help="A page that it does not repeat.")
@with_options(*TARGET)
@click.option("--reason", metavar="TEXT", default="corrected by hand", show_default=True, help="Stands in the log.")
@click.option("--by", metavar="NAME", help="Who says so; stands beside it. [default: the user's name]")
def correct_command(url: str, duplicate_of: str | None, not_duplicate_of: str | None, **options: Any) -> int:
    """Say that the page at URL is, or is not, a duplicate of another one.

    The record stands in the log and overrules fingerprints from there on; the last one on a pair holds. A page called a
    duplicate leaves the index. Verdicts given so far stay as they are. A state folder must know both pages (exit code 3
    if not); a service's log takes the record as it is.
    """
    original = duplicate_of or not_duplicate_of
    if original is None or (duplicate_of and not_duplicate_of):
        raise click.UsageError("give one of --duplicate-of URL and --not-duplicate-of URL")
    record = CorrectionRecord(_canonical(url), _canonical(original), duplicate_of is not None, options["reason"])
    if record.url == record.original:
        raise click.UsageError(f"both addresses are of one page, {record.url}: its visits are no duplicates")
    folder, by = state_folder(options), options["by"] or _user()
    if folder is not None:
        return _in_state(folder, record, by)
    from dedup_service.runtime.kafka.control.operator_records import add_records

    (sequence,) = add_records(connection_of(options), topics_of(options), [record], by=by)
    _tell(sequence, record)
    return ExitCode.DONE


def _in_state(folder: str, record: CorrectionRecord, by: str | None) -> int:
    from dedup_service.runtime.embedded.administration import embedded_state
    from dedup_service.runtime.explain import UnknownPageError
    from dedup_service.runtime.explain.correcting import CorrectionRequest, record_of
    from dedup_service.runtime.explain.journal_pages import JournalPages

    said = CorrectionRequest(url=record.url, original=record.original, duplicate=record.duplicate, reason=record.reason)
    with embedded_state(folder) as state:
        journal = state.journal
        pages = JournalPages(lambda: nullcontext(journal.database), journal.header, state.held)
        try:
            correction = state.correct(record_of(said, pages), by=by, at=time.time())
        except UnknownPageError as error:
            click.echo(f"twinsieve: {error}", err=True)
            return ExitCode.BAD_RECORDS
        except RecordError as error:
            raise ConfigurationError(str(error)) from None
    _tell(correction.sequence, correction.record)
    return ExitCode.DONE


def _tell(sequence: int | None, record: CorrectionRecord) -> None:
    verb = "is a duplicate" if record.duplicate else "is no duplicate"
    click.echo(f"sequence {sequence}: {record.url} {verb} of {record.original}")


def _user() -> str | None:
    """The name of whoever runs this, where the system knows it: a container may not."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


def _canonical(url: str) -> str:
    try:
        return canonicalise(url)
    except RecordError as error:
        raise ConfigurationError(str(error)) from None


if TYPE_CHECKING:
    from dedup_service.runtime.explain import KnownPage, PageSource


KIND = "correction"

_encoder = msgspec.json.Encoder()


@click.command("corrections", epilog=EPILOG)
@with_options(*TARGET)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON each.")
@click.option("--export", metavar="FILE", help="Gets those in force as labelled pairs, as `evaluate` reads them.")
@click.option("--pages", metavar="FILE", help="Gets the pages of the pairs, with their texts.")
def corrections_command(**options: Any) -> int:
    """List the corrections of a log in their order: who said what of which pages, when, and whether it holds.

    With --export, the pairs go to a file that `evaluate` and `calibrate` read, by the ids of the pages' latest visits;
    with --pages the pages go to another, and pairs of which a text is kept no longer are left out and counted (exit
    code 3).
    """
    if options["pages"] and not options["export"]:
        raise click.UsageError("--pages goes with --export: it has the pages of the pairs")
    check_distinct(**{"--export": options["export"], "--pages": options["pages"]})
    found = _corrections(options)
    for correction in found:
        click.echo(_json(correction) if options["as_json"] else _line(correction))
    if not options["export"]:
        return ExitCode.DONE
    in_force = [correction for correction in found if correction.in_force]
    wanted = list(dict.fromkeys(url for at in in_force for url in (at.record.url, at.record.original)))
    with page_source(options, wanted) as source:
        missing = _export(in_force, source, options["export"], options["pages"])
    if missing:
        click.echo(f"twinsieve: {missing} pairs were left out: a page, or its text, is kept no longer", err=True)
    return ExitCode.BAD_RECORDS if missing else ExitCode.DONE


def _corrections(options: Mapping[str, Any]) -> list[Correction]:
    if state_folder(options) is not None:
        with page_source(options, ()) as source:
            return source.corrections()
    from dedup_service.interfaces.cli.support.progress import records_progress
    from dedup_service.runtime.kafka.control.operator_records import corrections_in

    with records_progress("reading the log") as read:
        return corrections_in(connection_of(options), topics_of(options), read)


def _json(correction: Correction) -> str:
    from dedup_service.interfaces.explain_json import correction_values

    return _encoder.encode(correction_values(correction)).decode()


def _line(correction: Correction) -> str:
    record = correction.record
    verb = "is a duplicate of" if record.duplicate else "is no duplicate of"
    by = "" if correction.by is None else f" by {correction.by}"
    holds = "" if correction.in_force else "; a later one holds"
    when = _when(correction) or "at an unknown time"
    text = f"sequence {correction.sequence}, {when}{by}: {record.url} {verb} {record.original} ({record.reason}){holds}"
    return terminal_safe(text)


def _when(correction: Correction) -> str | None:
    return None if correction.at is None else datetime.fromtimestamp(correction.at, UTC).isoformat(timespec="seconds")


def _export(corrections: Sequence[Correction], source: "PageSource", pairs: str, pages: str | None) -> int:
    """Write pairs, and pages where they are wanted; return how many pairs were left out."""
    known = {url: source.find(url) for at in corrections for url in (at.record.url, at.record.original)}
    there = {url: page for url, page in known.items() if page is not None}
    texts = {url: source.text(page) for url, page in there.items()} if pages else {}
    usable = {url: page for url, page in there.items() if not pages or texts[url] is not None}
    ids = _ids(usable)
    chosen = [at for at in corrections if at.record.url in usable and at.record.original in usable]
    named = dict.fromkeys(url for at in chosen for url in (at.record.original, at.record.url))
    with OutputFile(pairs) as file:
        file.write(list(_pairs(chosen, ids)))
    if pages:
        with OutputFile(pages) as file:
            file.write([_page(usable[url], ids[url], texts[url] or "") for url in named])
    return len(corrections) - len(chosen)


def _ids(pages: Mapping[str, "KnownPage"]) -> dict[str, str]:
    """Return the id of each page; its address where another has the same."""
    counts = Counter(page.id for page in pages.values())
    return {url: page.id if counts[page.id] == 1 else url for url, page in pages.items()}


def _pairs(corrections: Sequence[Correction], ids: Mapping[str, str]) -> Iterator[bytes]:
    for at in corrections:
        label = "dup" if at.record.duplicate else "not"
        pair = Label(ids[at.record.original], ids[at.record.url], label, kind=KIND, at=_when(at))
        yield _encoder.encode(pair) + b"\n"


def _page(page: "KnownPage", page_id: str, text: str) -> bytes:
    values = {"id": page_id, "url": page.url, "canonical_url": page.canonical_url, "title": page.title, "text": text}
    return _encoder.encode(values) + b"\n"
