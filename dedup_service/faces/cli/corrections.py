"""`twinsieve corrections`: what people said of pairs, and the same as labelled pairs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.faces.cli.broker_options import connection_of, topics_of
from dedup_service.faces.cli.exitcodes import EPILOG, ExitCode
from dedup_service.faces.cli.options import with_options
from dedup_service.faces.cli.outputs import OutputFile, check_distinct
from dedup_service.faces.cli.page_sources import page_source
from dedup_service.faces.cli.target import TARGET, state_folder
from dedup_service.faces.inert import inert
from dedup_service.runtime.corrections import Correction
from dedup_service.runtime.labels import Label

if TYPE_CHECKING:
    from dedup_service.runtime.why import KnownPage, PageSource

__all__ = ["corrections_command"]

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
    wanted = list(dict.fromkeys(url for at in in_force for url in (at.record.url, at.record.of)))
    with page_source(options, wanted) as source:
        missing = _export(in_force, source, options["export"], options["pages"])
    if missing:
        click.echo(f"twinsieve: {missing} pairs were left out: a page, or its text, is kept no longer", err=True)
    return ExitCode.BAD_RECORDS if missing else ExitCode.DONE


def _corrections(options: Mapping[str, Any]) -> list[Correction]:
    if state_folder(options) is not None:
        with page_source(options, ()) as source:
            return source.corrections()
    from dedup_service.faces.cli.progress import records_progress
    from dedup_service.runtime.kafka.people import corrections_in

    with records_progress("reading the log") as read:
        return corrections_in(connection_of(options), topics_of(options), read)


def _json(correction: Correction) -> str:
    from dedup_service.faces.explained import correction_values

    return _encoder.encode(correction_values(correction)).decode()


def _line(correction: Correction) -> str:
    record = correction.record
    verb = "is a duplicate of" if record.duplicate else "is no duplicate of"
    by = "" if correction.by is None else f" by {correction.by}"
    holds = "" if correction.in_force else "; a later one holds"
    when = _when(correction) or "at an unknown time"
    text = f"sequence {correction.sequence}, {when}{by}: {record.url} {verb} {record.of} ({record.reason}){holds}"
    return inert(text)


def _when(correction: Correction) -> str | None:
    return None if correction.at is None else datetime.fromtimestamp(correction.at, UTC).isoformat(timespec="seconds")


def _export(corrections: Sequence[Correction], source: "PageSource", pairs: str, pages: str | None) -> int:
    """Write pairs, and pages where they are wanted; return how many pairs were left out."""
    known = {url: source.find(url) for at in corrections for url in (at.record.url, at.record.of)}
    there = {url: page for url, page in known.items() if page is not None}
    texts = {url: source.text(page) for url, page in there.items()} if pages else {}
    usable = {url: page for url, page in there.items() if not pages or texts[url] is not None}
    ids = _ids(usable)
    chosen = [at for at in corrections if at.record.url in usable and at.record.of in usable]
    named = dict.fromkeys(url for at in chosen for url in (at.record.of, at.record.url))
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
        pair = Label(ids[at.record.of], ids[at.record.url], label, kind=KIND, at=_when(at))
        yield _encoder.encode(pair) + b"\n"


def _page(page: "KnownPage", page_id: str, text: str) -> bytes:
    values = {"id": page_id, "url": page.url, "canonical_url": page.canonical_url, "title": page.title, "text": text}
    return _encoder.encode(values) + b"\n"
