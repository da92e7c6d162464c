"""The run of `filter`: batches of records in, verdicts out, in input order and bounded memory.

A batch is prepared, decided in one durable step, and then written; so every line that was written is
backed by the state. A batch ends when it is full or when no more input is waiting.

The pages of an input, prepared in their order and without their text, with a bar on a terminal.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.cli.support.outputs import BadRecords
from dedup_service.interfaces.cli.support.progress import progress
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import BatchEvent, Observers
from dedup_service.runtime.readers import Record, open_source
from dedup_service.runtime.workers.preparation import Answer, BadRecord, Preparer, submit_ahead

__all__ = ["Batch", "VerdictSink", "batches", "each_prepared", "run"]

BATCH_RECORDS = 256
BATCH_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Batch:
    """Records to decide together; `last_for_now` where nobody knows when the next one comes."""

    records: tuple[Record, ...]
    last_for_now: bool = False


@dataclass(frozen=True, slots=True)
class _TimedBatch:
    """A batch. times: when its preparation began and, once it has, ended."""

    batch: Batch
    times: list[float] = field(default_factory=list)

    def submit(self, preparer: Preparer) -> Future[list[Answer]]:
        self.times.append(time.perf_counter())
        answers = preparer.submit(self.batch.records)
        answers.add_done_callback(lambda _: self.times.append(time.perf_counter()))
        return answers

    @property
    def prepare_s(self) -> float:
        end = self.times[1] if len(self.times) > 1 else time.perf_counter()
        return end - self.times[0]


class VerdictSink(Protocol):
    """Whoever takes what a batch gave."""

    def verdicts(self, decided: Sequence[tuple[Record, Verdict]]) -> None:
        """Take the verdicts of a batch."""
        ...

    def bad(self, records: Sequence[tuple[Record, str]]) -> None:
        """Take the bad records of a batch, each with its problem."""
        ...


def batches(records: Iterable[Record | None]) -> Iterator[Batch]:
    """Cut `records` into batches; None among them (nothing waiting) ends one early."""
    held: list[Record] = []
    size = 0
    for record in records:
        if record is not None:
            held.append(record)
            size += len(record.raw)
        if record is None or len(held) >= BATCH_RECORDS or size >= BATCH_BYTES:
            yield Batch(tuple(held), last_for_now=record is None)
            held, size = [], 0
    if held:
        yield Batch(tuple(held), last_for_now=True)


def run(
    records: Iterable[Record | None],
    preparer: Preparer,
    decider: NearDuplicateFilter,
    sink: VerdictSink,
    stopped: Callable[[], bool],
    observers: Observers | None = None,
) -> None:
    """Give every record its verdict; once `stopped()`, finish what is in hand and return.

    observers: are told how long pages took to prepare, and of records that are none.
    """
    observers = observers or Observers()
    prepared = submit_ahead(
        lambda timed: timed.submit(preparer),
        _until_stopped(records, stopped),
        preparer.depth,
        drain=lambda timed: timed.batch.last_for_now or stopped(),
    )
    for timed, answers in prepared:
        if timed.batch.records:
            _finish(timed, answers, decider, sink, observers)


def _until_stopped(records: Iterable[Record | None], stopped: Callable[[], bool]) -> Iterator[_TimedBatch]:
    for batch in batches(records):
        yield _TimedBatch(batch)
        if stopped():
            return


def _finish(
    timed: _TimedBatch, answers: list[Answer], decider: NearDuplicateFilter, sink: VerdictSink, observers: Observers
) -> None:
    good, bad = [], []
    records = timed.batch.records
    for record, answer in zip(records, answers, strict=True):
        if isinstance(answer, BadRecord):
            bad.append((record, answer.problem))
        else:
            good.append((record, answer))
    seconds = {"prepare": timed.prepare_s}
    observers.batch(BatchEvent(step="fingerprint", records=len(records), seconds=seconds, rejected=len(bad)))
    verdicts = decider.decide_many([page for _, page in good], [record.identity for record, _ in good])
    if bad:
        sink.bad(bad)
    if good:
        sink.verdicts([(record, verdict) for (record, _), verdict in zip(good, verdicts, strict=True)])


def each_prepared(name: str, preparer: Preparer, bad: BadRecords) -> Iterator[tuple[Record, PreparedPage]]:
    """Yield each record of the input `name` with its page; bad records are reported and left out."""
    with open_source(name) as source, progress(source.name, source.size_bytes) as advance:
        prepared = submit_ahead(
            lambda batch: preparer.submit(batch.records),
            batches(source.records),
            preparer.depth,
            drain=lambda batch: batch.last_for_now,
        )
        for batch, answers in prepared:
            yield from _good(batch, answers, bad)
            advance(len(batch.records), sum(len(record.raw) for record in batch.records))


def _good(batch: Batch, answers: list[Answer], bad: BadRecords) -> Iterator[tuple[Record, PreparedPage]]:
    for record, answer in zip(batch.records, answers, strict=True):
        if isinstance(answer, BadRecord):
            bad.report([(record, answer.problem)])
        else:
            yield record, answer
