"""Streams of prepared pages for batch commands: in input order, and in bounded memory.

How: records are cut into batches, which are submitted ahead of the workers; the prepared batches come back
in input order. A batch ends when it is full or when no more input is waiting, so that a slow pipe gets its
answers at once.
Invariant: `run` decides a batch in one durable step before it writes it, so the state backs every line
written.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.cli.support.outputs import BadRecords
from dedup_service.interfaces.cli.support.progress import progress
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import BatchEvent, Observers
from dedup_service.runtime.readers.open import InputOptions, open_source
from dedup_service.runtime.readers.record import Record
from dedup_service.runtime.workers.preparation import Answer, BadRecord, Preparer, submit_ahead

BATCH_RECORDS = 512
BATCH_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Batch:
    """Records to decide together. last_for_now: no further record is waiting in the input."""

    records: tuple[Record, ...]
    last_for_now: bool = False


def batches(records: Iterable[Record | None]) -> Iterator[Batch]:
    """Cut `records` into batches; a None among them (no input is waiting) ends the current one early."""
    current: list[Record] = []
    size_bytes = 0
    for record in records:
        if record is not None:
            current.append(record)
            size_bytes += len(record.raw)
        if record is None or len(current) >= BATCH_RECORDS or size_bytes >= BATCH_BYTES:
            yield Batch(tuple(current), last_for_now=record is None)
            current, size_bytes = [], 0
    if current:
        yield Batch(tuple(current), last_for_now=True)


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """The answers to a batch: pages and bad records. prepare_s: time from submission to the last answer."""

    records: tuple[Record, ...]
    pages: list[tuple[Record, PreparedPage]]
    bad: list[tuple[Record, str]]
    prepare_s: float


class _PendingBatch:
    """A batch that is being prepared."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._started = 0.0
        self._ended: float | None = None

    def submit(self, preparer: Preparer) -> Future[list[Answer]]:
        """Start on its records."""
        self._started = time.perf_counter()
        answers = preparer.submit(self.batch.records)
        answers.add_done_callback(self._note_end)
        return answers

    def _note_end(self, _answers: Future[list[Answer]]) -> None:
        self._ended = time.perf_counter()

    def prepared(self, answers: list[Answer]) -> PreparedBatch:
        """Return the batch with the answers to its records."""
        pages: list[tuple[Record, PreparedPage]] = []
        bad: list[tuple[Record, str]] = []
        for record, answer in zip(self.batch.records, answers, strict=True):
            if isinstance(answer, BadRecord):
                bad.append((record, answer.problem))
            else:
                pages.append((record, answer))
        # A waiter may wake before the callback has run.
        ended = time.perf_counter() if self._ended is None else self._ended
        return PreparedBatch(self.batch.records, pages, bad, ended - self._started)


def prepared_batches(
    records: Iterable[Record | None], preparer: Preparer, stopped: Callable[[], bool] = lambda: False
) -> Iterator[PreparedBatch]:
    """Yield the prepared batches of `records` in their order.

    Once `stopped()`, the batches already submitted are yielded, and no further one is read.
    """

    def pending_batches() -> Iterator[_PendingBatch]:
        for batch in batches(records):
            yield _PendingBatch(batch)
            if stopped():
                return

    answered = submit_ahead(
        lambda pending: pending.submit(preparer),
        pending_batches(),
        drain=lambda pending: pending.batch.last_for_now or stopped(),
    )
    for pending, answers in answered:
        if pending.batch.records:
            yield pending.prepared(answers)


@dataclass(frozen=True, slots=True)
class DecidedRecord:
    """A record, the page that it describes, and the verdict on it."""

    record: Record
    page: Page
    verdict: Verdict


class VerdictSink(Protocol):
    """Takes the results of `run`, batch by batch."""

    def verdicts(self, decided: Sequence[DecidedRecord]) -> None:
        """Take the verdicts of a batch."""
        ...

    def bad(self, records: Sequence[tuple[Record, str]]) -> None:
        """Take the bad records of a batch, each with its problem."""
        ...

    def reached(self, record: Record) -> None:
        """Take note that everything up to `record` was taken."""
        ...


def run(
    records: Iterable[Record | None],
    preparer: Preparer,
    dedup: NearDuplicateFilter,
    sink: VerdictSink,
    stopped: Callable[[], bool],
    delivery_of: Callable[[Record], bytes],
    observers: Observers | None = None,
) -> None:
    """Give every record its verdict; once `stopped()`, finish the batches already read and return.

    delivery_of: what identifies the delivery of a record.
    observers: get a BatchEvent for each prepared batch, with its duration and its number of bad records.
    """
    observers = observers or Observers()
    for batch in prepared_batches(records, preparer, stopped):
        seconds, rejected = {"prepare": batch.prepare_s}, len(batch.bad)
        observers.batch(BatchEvent(step="fingerprint", records=len(batch.records), seconds=seconds, rejected=rejected))
        verdicts = dedup.decide_many(
            [page for _, page in batch.pages], [delivery_of(record) for record, _ in batch.pages]
        )
        if batch.bad:
            sink.bad(batch.bad)
        if batch.pages:
            pairs = zip(batch.pages, verdicts, strict=True)
            sink.verdicts([DecidedRecord(record, one.page, verdict) for (record, one), verdict in pairs])
        sink.reached(batch.records[-1])


def iter_prepared(
    name: str,
    preparer: Preparer,
    bad: BadRecords,
    stopped: Callable[[], bool] = lambda: False,
    read: InputOptions | None = None,
) -> Iterator[tuple[Record, PreparedPage]]:
    """Yield each record of the input `name` with its page; bad records are reported and left out.

    Shows a progress bar on a terminal. Once `stopped()`, no further batch is read. read: how the input is.
    """
    with open_source(name, read) as source, progress(source) as advance:
        for batch in prepared_batches(source.records, preparer, stopped):
            if batch.bad:
                bad.report(batch.bad)
            yield from batch.pages
            advance(len(batch.records))


def prepared_by_id(
    name: str,
    ids: set[str],
    preparer: Preparer,
    bad: BadRecords,
    stopped: Callable[[], bool] = lambda: False,
    read: InputOptions | None = None,
) -> dict[str, PreparedPage]:
    """Return the pages of the input `name` that `ids` names, by id: the first page if an id occurs twice."""
    found: dict[str, PreparedPage] = {}
    for _, prepared in iter_prepared(name, preparer, bad, stopped, read):
        if prepared.page.id in ids:
            found.setdefault(prepared.page.id, prepared)
    return found
