"""`twinsieve backfill`: add the pages of files to the log of a running service, each once."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.core.page import PreparedPage
from dedup_service.core.size_limits import name_too_long, value_too_large
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    BROKER,
    COLUMNS,
    PROCESSES,
    SPACE,
    URL_PREFIX,
    connection_from,
    preparer_from,
    space_from,
    topics_from,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import BadRecords, check_distinct, check_unmatched, check_writable
from dedup_service.interfaces.cli.support.page_stream import PreparedBatch, prepared_batches
from dedup_service.interfaces.cli.support.progress import Advance, progress
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.runtime.readers.jsonlines import BYTE_ORDER_MARK, JsonLine, json_of
from dedup_service.runtime.readers.open import InputOptions
from dedup_service.runtime.readers.record import BrokenInput, Mark, NamedRecord, Record
from dedup_service.runtime.readers.several import expanded, open_sources
from dedup_service.runtime.resources import build_fingerprinter

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.backfill.backfill import Backfill, BackfillItem
    from dedup_service.runtime.kafka.backfill.pace import Pace
    from dedup_service.runtime.kafka.backfill.watcher import DecidedWatcher

ALL = "all"
_SAY_AFTER_S = 10.0
_LAG_PER_SHARE = 4_000
"""With --outputs all: records of `pages` that may wait for their verdicts, for a share of 1."""

_LAG_PAUSE_S = 0.2


@dataclass(slots=True)
class _Counts:
    """What a run did. already: records that earlier runs did. waited_s: for the service. under_way: not decided."""

    pages: int = 0
    bad_records: int = 0
    already: int = 0
    waited_s: float = 0.0
    under_way: int = 0
    space: str = ""


@click.command("backfill", cls=GroupedCommand, epilog="'archive/*.warc.gz' --bootstrap kafka:9092 --share .3")
@click.argument("sources", metavar="[FILE|FOLDER|ADDRESS|-]...", nargs=-1, required=True)
@with_options(*BROKER)
@click.option(
    "--name",
    metavar="NAME",
    default="backfill",
    show_default=True,
    help="Name of the backfill, under which the service knows which records of which files it has.",
)
@click.option(
    "--outputs",
    type=click.Choice(["none", "verdicts", ALL]),
    default="none",
    show_default=True,
    help="What the service writes for these pages: nothing, verdicts, or all that it writes for a page of the crawl.",
)
@click.option(
    "--share",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    show_default=True,
    help="Share of the deciding step's time that the backfill may use; the rest is the crawl's.",
)
@click.option("--rate", metavar="PAGES", type=click.FloatRange(0, min_open=True), help="Pages a second at most.")
@click.option("--errors", metavar="FILE", help="Write one line of JSON for each bad record.")
@with_options(SPACE, PROCESSES)
@with_options(URL_PREFIX, COLUMNS)
@click.option("--json", "as_json", is_flag=True, help="Print the summary on stderr as one line of JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print no summary.")
def backfill_command(sources: tuple[str, ...], **options: Any) -> int:
    """Add the pages of files to a running service: its crawl is compared with them from then on.

    Inputs are those of `filter`. The pages are prepared here, on all cores, and appended to the service's log, at a
    pace that leaves the crawl its share. Each record is identified by --name, its file and its place there, and is
    added once: the same command again goes on where the last one ended, however that ended.

    The options of the space have to be those of the service. A service has to run, or to have run: it begins the log.
    """
    names = expanded(sources)
    check_unmatched(sources, **{"--errors": options["errors"]})
    for name in names:
        check_distinct(**{"--errors": options["errors"], "FILE": None if name == "-" else name})
    check_writable(**{"--errors": options["errors"]})
    started, counts = time.monotonic(), _Counts()
    with Interrupt() as interrupt:
        _run(names, options, counts, interrupt)
    _report(options, counts, time.monotonic() - started, interrupted=interrupt.code is not None)
    return interrupt.code or (ExitCode.BAD_RECORDS if counts.bad_records else ExitCode.DONE)


def _run(names: Sequence[str], options: Mapping[str, Any], counts: _Counts, interrupt: Interrupt) -> None:
    from dedup_service.runtime.kafka.backfill.backfill import Backfill, BackfillOutputs
    from dedup_service.runtime.kafka.backfill.pace import Pace
    from dedup_service.runtime.kafka.backfill.watcher import DecidedWatcher

    connection, topics, space = connection_from(options), topics_from(options), space_from(options)
    counts.space = build_fingerprinter(space).space_id
    read = InputOptions(wait=interrupt.wait, url_prefix=options["url_prefix"], columns=options["columns"])
    with ExitStack() as stack:
        backfill = Backfill(connection, topics, options["name"], BackfillOutputs(options["outputs"]), counts.space)
        stack.callback(backfill.close)
        backfill.open(interrupt.event)
        if interrupt.stopped():
            return
        marks = {name: mark for name in names if name != "-" and (mark := backfill.mark(_file_name(name))) is not None}
        source = stack.enter_context(open_sources(names, read, after=marks))
        preparer = stack.enter_context(preparer_from(options, space, keep_text=options["outputs"] == ALL))
        watcher = stack.enter_context(DecidedWatcher(connection, topics, backfill.group))
        bad_records = BadRecords(source.name, options["errors"])
        stack.callback(bad_records.close)
        advance = stack.enter_context(progress(source))
        pace = Pace(options["share"], options["rate"])
        files = _Files(names, source.name, backfill, counts, advance, marks, published=options["outputs"] == ALL)
        writer = _Writer(backfill, pace, watcher, counts, interrupt, options)
        for batch in prepared_batches(files.left(source.records, interrupt), preparer, interrupt.stopped):
            bad = _bad(batch, published=options["outputs"] == ALL)
            if bad:
                bad_records.report(bad)
                counts.bad_records += len(bad)
            writer.write(files.items(batch, {id(record) for record, _ in bad}))
            advance(len(batch.records))
        writer.finish()


class _Files:
    """The files of the inputs by their names in the backfill, and their records that are not done.

    A name is a path without links, from the root, wherever the command was started; an address, or -, as it is.
    marks: where reading begins, by the names of inputs; the records before are done.
    """

    def __init__(
        self,
        names: Sequence[str],
        only: str,
        backfill: "Backfill",
        counts: _Counts,
        advance: Advance,
        marks: Mapping[str, Mark],
        *,
        published: bool,
    ) -> None:
        self._published = published
        self._names = {name: _file_name(name) for name in names}
        if len(names) == 1:
            self._names[only] = _file_name(names[0])
        self._only, self._backfill, self._counts, self._advance = only, backfill, counts, advance
        self._unchecked = {file for file in self._names.values() if backfill.done(file)}
        for known in (backfill.files[self._names[name]] for name in marks):
            counts.already += known.pages + known.bad - 1  # the last one is read again

    def left(self, records: Iterable[Record | None], interrupt: Interrupt) -> Iterator[Record | None]:
        """Yield the records that are not done, until a signal; the last one that is has to be the one that it was.

        Raises FileChangedError if it is another one, or is not there before the next one.
        """
        from dedup_service.runtime.kafka.backfill.progress import digest_of

        broken: set[str] = set()
        for record in records:
            if record is None:
                yield None
                continue
            file = self._file(record)
            done = self._backfill.done(file)
            if _is_broken(record):
                broken.add(file)  # what is left of it may be there the next time
                yield record
                continue
            if record.number >= done and file in self._unchecked:
                self._backfill.check(file, digest_of(record.identity) if record.number == done else None)
                self._unchecked.remove(file)
            if record.number > done:
                yield record
                continue
            if interrupt.stopped():
                return
            self._counts.already += 1
            self._advance(0)
        if not interrupt.stopped():
            for file in sorted(self._unchecked - broken):  # they ended before that record
                self._backfill.check(file, None)

    def items(self, batch: PreparedBatch, bad: set[int]) -> "list[BackfillItem]":
        """Return what is to be written of a batch: its pages and, to be counted, its bad records, in their order.

        Where a file became unreadable, or ends within a line, is not counted: the rest may be there the next time.
        """
        from dedup_service.runtime.kafka.backfill.backfill import BackfillItem
        from dedup_service.runtime.kafka.backfill.progress import digest_of

        pages = {id(record): page for record, page in batch.pages if id(record) not in bad}
        items: list[BackfillItem] = []
        for record in batch.records:
            page = pages.get(id(record))
            if page is None and (_is_broken(record) or _is_open(record)):
                continue
            value = _value(record, page) if self._published and page is not None else None
            digest, ends = digest_of(record.identity), _end_of(record)
            items.append(BackfillItem(self._file(record), record.number, digest, page, value, ends))
        return items

    def _file(self, record: Record) -> str:
        return self._names[record.source if isinstance(record, NamedRecord) else self._only]


class _Writer:
    """Writes batches at the pace that the service allows."""

    def __init__(
        self,
        backfill: "Backfill",
        pace: "Pace",
        watcher: "DecidedWatcher",
        counts: _Counts,
        interrupt: Interrupt,
        options: Mapping[str, Any],
    ) -> None:
        self._backfill, self._pace, self._watcher = backfill, pace, watcher
        self._counts, self._interrupt = counts, interrupt
        self._stop = interrupt.event
        self._most_lag = _LAG_PER_SHARE * options["share"] if options["outputs"] == ALL else None
        self._said = self._has_ended = False

    def write(self, items: "Sequence[BackfillItem]") -> None:
        """Write a batch; after a signal at once, since the run ends with it."""
        while items and not self._has_ended:
            began = time.monotonic()
            while not self._interrupt.stopped() and (wait_s := self._wait_s(len(items))) > 0:
                self._stop.wait(wait_s)
            self._counts.waited_s += time.monotonic() - began
            part = self._pace.part(len(items))
            appended = self._backfill.append(items[:part], self._stop)
            if appended is None:
                self._has_ended = True  # what comes later must not be there without these
                return
            self._counts.pages += appended.pages
            self._pace.appended(appended.pages, appended.sequence)
            items = items[part:]

    def finish(self) -> None:
        """Note what the service has not decided yet."""
        self._look()
        self._counts.under_way = self._pace.under_way

    def _look(self) -> None:
        for below, at in self._watcher.moves():
            self._pace.decided(below, at)
        self._pace.crawl_waits(self._watcher.oldest_s)

    def _wait_s(self, pages: int) -> float:
        self._look()
        if self._pace.stalled_s > _SAY_AFTER_S and not self._said:
            self._said = True
            text = f"waiting: the service has decided nothing for {_SAY_AFTER_S:g} s; does its deciding step run?"
            click.echo(f"twinsieve: {text}", err=True)
        if self._most_lag is not None and self._watcher.crawl_lag > self._most_lag:
            return _LAG_PAUSE_S
        return self._pace.wait_s(pages)


def _end_of(record: Record) -> int:
    """Return the position behind a record; files of a folder, which have paths for positions, are counted."""
    position = record.mark.position
    return position if isinstance(position, int) else record.number


def _bad(batch: PreparedBatch, *, published: bool) -> list[tuple[Record, str]]:
    """Return the bad records of a batch: also pages that the service does not take."""
    refused = [
        (record, problem)
        for record, prepared in batch.pages
        if (problem := _problem(record, prepared, published=published)) is not None
    ]
    return [*batch.bad, *refused]


def _problem(record: Record, prepared: PreparedPage, *, published: bool) -> str | None:
    page = prepared.page
    problem = name_too_long("url", page.url) or name_too_long("id", page.id)
    return value_too_large(_value(record, prepared)) if problem is None and published else problem


def _file_name(name: str) -> str:
    """Return the name of a file in the backfill; bytes of a path that are no UTF-8 are written out."""
    if name == "-" or "://" in name:
        return name
    return os.fsencode(Path(name).resolve()).decode("utf-8", "backslashreplace")


def _is_broken(record: Record) -> bool:
    """Whether a record stands for what could not be read: nothing is known of it but its place."""
    return isinstance(record.record if isinstance(record, NamedRecord) else record, BrokenInput)


def _is_open(record: Record) -> bool:
    """Whether a record is a line without its end: who writes the file may be within it."""
    line = record.record if isinstance(record, NamedRecord) else record
    return isinstance(line, JsonLine) and not line.cut and not line.raw.endswith(b"\n")


def _value(record: Record, prepared: PreparedPage) -> bytes:
    """Return a record as a message of `pages`: a line as it is, of others the page without its HTML."""
    inner = record.record if isinstance(record, NamedRecord) else record
    if isinstance(inner, JsonLine) and inner.columns is None:
        return inner.raw.removeprefix(BYTE_ORDER_MARK).strip()
    return json_of(prepared.page)


def _report(options: Mapping[str, Any], counts: _Counts, seconds: float, *, interrupted: bool) -> None:
    values: dict[str, Any] = {
        "name": options["name"],
        "outputs": options["outputs"],
        "pages": counts.pages,
        "bad_records": counts.bad_records,
        "already": counts.already,
        "not_decided_yet": counts.under_way,
        "seconds": round(seconds, 3),
        "waited_s": round(counts.waited_s, 3),
        "pages_per_s": round(counts.pages / seconds, 1) if seconds else 0.0,
        "space": counts.space,
    }
    if options["as_json"]:
        click.echo(msgspec.json.encode({**values, "interrupted": interrupted}).decode(), err=True)
        return
    if not options["quiet"]:
        for name, value in values.items():
            shown = f"{value:,}" if isinstance(value, int) else value
            click.echo(f"{name.replace('_', ' ')}: {shown}", err=True)
    if interrupted:
        click.echo("twinsieve: interrupted; the same command goes on where this one ended", err=True)
