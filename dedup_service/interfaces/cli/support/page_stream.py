"""The run of `filter`: batches of records in, verdicts out, in input order and bounded memory.

A batch is prepared, decided in one durable step, and then written; so every line that was written is
backed by the state. A batch ends when it is full or when no more input is waiting.

The pages of an input, prepared in their order and without their text, with a bar on a terminal.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.cli.support.outputs import BadRecords
from dedup_service.interfaces.cli.support.progress import progress
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import BatchEvent, Observers
from dedup_service.runtime.readers import Record, open_source
from dedup_service.runtime.workers.preparation import Answer, BadRecord, Preparer

__all__ = ["Batch", "VerdictSink", "batches", "each_prepared", "run"]

BATCH_RECORDS = 256
BATCH_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Batch:
    """Records to decide together; `last_for_now` where nobody knows when the next one comes."""

    records: tuple[Record, ...]
    last_for_now: bool = False


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A batch whose pages are being prepared. times: when that began and, once it has, ended."""

    batch: Batch
    answers: Future[list[Answer]]
    times: list[float]

    @classmethod
    def begun(cls, batch: Batch, preparer: Preparer) -> "_UnderWay":
        times = [time.perf_counter()]
        answers = preparer.submit(batch.records)
        answers.add_done_callback(lambda _: times.append(time.perf_counter()))
        return cls(batch, answers, times)


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
    under_way: deque[_UnderWay] = deque()
    for batch in batches(records):
        if batch.records:
            under_way.append(_UnderWay.begun(batch, preparer))
        while under_way and (batch.last_for_now or stopped() or len(under_way) > preparer.depth):
            _finish(under_way.popleft(), decider, sink, observers)
        if stopped():
            return
    while under_way:
        _finish(under_way.popleft(), decider, sink, observers)


def _finish(done: _UnderWay, decider: NearDuplicateFilter, sink: VerdictSink, observers: Observers) -> None:
    good, bad = [], []
    records = done.batch.records
    for record, answer in zip(records, done.answers.result(), strict=True):
        if isinstance(answer, BadRecord):
            bad.append((record, answer.problem))
        else:
            good.append((record, answer))
    prepare_s = (done.times[1] if len(done.times) > 1 else time.perf_counter()) - done.times[0]
    seconds = {"prepare": prepare_s}
    observers.batch(BatchEvent(step="fingerprint", records=len(records), seconds=seconds, rejected=len(bad)))
    verdicts = decider.decide_many([page for _, page in good], [record.identity for record, _ in good])
    if bad:
        sink.bad(bad)
    if good:
        sink.verdicts([(record, verdict) for (record, _), verdict in zip(good, verdicts, strict=True)])


def each_prepared(name: str, preparer: Preparer, bad: BadRecords) -> Iterator[tuple[Record, PreparedPage]]:
    """Yield each record of the input `name` with its page; bad records are reported and left out."""
    with open_source(name) as source, progress(source.name, source.size_bytes) as advance:
        under_way: deque[tuple[Batch, Future[list[Answer]]]] = deque()
        for batch in batches(source.records):
            under_way.append((batch, preparer.submit(batch.records)))
            while under_way and (batch.last_for_now or len(under_way) > preparer.depth):
                done, answers = under_way.popleft()
                yield from _good(done, answers.result(), bad)
                advance(len(done.records), sum(len(record.raw) for record in done.records))
        for done, answers in under_way:
            yield from _good(done, answers.result(), bad)


def _good(batch: Batch, answers: list[Answer], bad: BadRecords) -> Iterator[tuple[Record, PreparedPage]]:
    for record, answer in zip(batch.records, answers, strict=True):
        if isinstance(answer, BadRecord):
            bad.report([(record, answer.problem)])
        else:
            yield record, answer
