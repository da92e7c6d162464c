"""Bounded buffer of pages that were read from `pages` and wait for their outcome in the log.

Outputs are written in order of offset within a partition, so only the head of a partition's queue can be
written. Each partition has its quota of records and bytes: a partition whose pages are not in the log yet
fills its own and is paused; the others continue.

Not every offset has a page and an outcome. Retention may delete a page that is in the log: where offsets are
missing between two pages (`_Gap`), an outcome that belongs there is returned without its page. Fingerprinting
may have been told to begin later than the pages do: the log has the pages of a partition in order, so a page
without an outcome, with one known for a later page, will never get any; it is returned as passed over.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dedup_service.core.log_records import Source
from dedup_service.runtime.kafka.messages.page import record_size
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes

OVERHEAD_BYTES = 600
"""Memory of a record beside its value, key and headers: objects of the client, queue."""

PASSED_OVER = PendingOutcome(-1, None, b"fingerprinting passed it over: the offset of its group was set past it")


@dataclass(frozen=True, slots=True)
class Ready:
    """What can be written: an outcome and the consumed record, None if it was deleted, or no output needs it.

    needs_page: whether an output has the record's content.
    """

    source: Source
    outcome: PendingOutcome
    record: Any | None
    needs_page: bool = True

    @property
    def end(self) -> int:
        """Offset after the last input record that it is about."""
        return self.outcome.end or self.source.offset + 1

    @property
    def is_lost(self) -> bool:
        """Whether the log has it as a page, and its content is gone though an output needs it."""
        return self.record is None and self.outcome.kind is not None and self.needs_page


@dataclass(frozen=True, slots=True)
class _Gap:
    """Offsets from `start` to before `end` that no record was read for."""

    start: int
    end: int


class PageBuffer:
    """One FIFO queue of consumed records for each partition of `topic`.

    max_records, max_bytes: of all partitions together; each has an equal part. records, size_bytes: what it
    holds. repeated: records that were read again and skipped.
    """

    def __init__(self, topic: str, max_records: int, max_bytes: int) -> None:
        self._topic = topic
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._queues: dict[int, deque[Any]] = {}
        self._sizes: dict[int, int] = {}
        self._gaps: dict[int, deque[_Gap]] = {}
        self._next: dict[int, int] = {}
        self.repeated = 0

    @property
    def records(self) -> int:
        """Number of records in all queues."""
        return sum(map(len, self._queues.values()))

    @property
    def size_bytes(self) -> int:
        """Memory of the records in all queues."""
        return sum(self._sizes.values())

    def full(self, partitions: Collection[int]) -> frozenset[int]:
        """Return those of the assigned `partitions` that have reached their part of the limits."""
        parts = max(1, len(partitions))
        return frozenset(
            partition
            for partition in partitions
            if len(self._queues.get(partition, ())) * parts >= self._max_records
            or self._sizes.get(partition, 0) * parts >= self._max_bytes
        )

    def begin(self, partition: int, offset: int) -> None:
        """Start a partition with an empty queue; records below `offset` already have their outputs."""
        self.end(partition)
        self._queues[partition], self._gaps[partition] = deque(), deque()
        self._next[partition] = offset

    def end(self, partition: int) -> None:
        """Drop the queue of a partition that starts again or now belongs to another process."""
        self._queues.pop(partition, None)
        self._sizes.pop(partition, None)
        self._gaps.pop(partition, None)
        self._next.pop(partition, None)

    def is_done(self, partition: int) -> bool:
        """Whether nothing of a partition that has begun is outstanding: no record, no outcome of a deleted one."""
        return partition in self._queues and not self._queues[partition] and not self._gaps.get(partition)

    def put(self, records: Iterable[Any]) -> None:
        """Queue consumed records; a record that was read before is skipped."""
        for record in records:
            partition = record.partition
            if record.offset < self._next.get(partition, 0):
                self.repeated += 1
                continue
            self.skip(partition, record.offset)
            self._next[partition] = record.offset + 1
            self._queues.setdefault(partition, deque()).append(record)
            self._count(record, 1)

    def skip(self, partition: int, offset: int) -> None:
        """Take it that no records below `offset` come any more, other than those that were read."""
        start = self._next.get(partition)
        if start is not None and start < offset:
            self._gaps.setdefault(partition, deque()).append(_Gap(start, offset))
            self._next[partition] = offset

    def ready(self, outcomes: PendingOutcomes, max_records: int, max_bytes: int) -> list[Ready]:
        """Return what can be written, in order within a partition; it stays until `done`."""
        ready: list[Ready] = []
        size = 0
        for partition in self._queues:
            for item in self._in_order(partition, outcomes):
                if len(ready) >= max_records or size >= max_bytes:
                    return ready
                ready.append(item)
                size += 0 if item.record is None else record_size(item.record)
        return ready

    def done(self, ready: Sequence[Ready]) -> None:
        """Remove what `ready` returned: it is written. Its partitions come last at the next turn.

        A partition that has ended since then is passed over.
        """
        for partition, last in {item.source.partition: item for item in ready}.items():
            gaps, queue = self._gaps.get(partition), self._queues.pop(partition, None)
            if queue is None:
                continue
            while gaps and gaps[0].end <= last.end:  # the log has what comes after: nothing before is outstanding
                gaps.popleft()
            while queue and queue[0].offset < last.end:  # an outcome about a range answers all records in it
                self._count(queue.popleft(), -1)
            self._queues[partition] = queue
            self._next[partition] = max(self._next[partition], last.end)  # the client may hold more of a range

    def _in_order(self, partition: int, outcomes: PendingOutcomes) -> Iterator[Ready]:
        """Yield what can be written of a partition, by offset."""
        gaps = deque(self._gaps.get(partition, ()))
        answered = 0
        for record in self._queues[partition]:
            while gaps and gaps[0].start < record.offset:
                for lost in self._lost(partition, gaps.popleft(), outcomes):
                    answered = lost.end
                    yield lost
            if record.offset < answered:  # in the range of the outcome before
                continue
            source = Source(self._topic, partition, record.offset)
            outcome = outcomes.get(source)
            if outcome is None and outcomes.has_later(source):
                outcome = PASSED_OVER
            if outcome is None:
                return
            ready = Ready(source, outcome, record)
            answered = ready.end
            yield ready
        for gap in gaps:
            yield from self._lost(partition, gap, outcomes)

    def _lost(self, partition: int, gap: _Gap, outcomes: PendingOutcomes) -> Iterator[Ready]:
        for source, outcome in outcomes.between(Source(self._topic, partition, gap.start), gap.end):
            yield Ready(source, outcome, None)

    def _count(self, record: Any, sign: int) -> None:
        size = record_size(record) + OVERHEAD_BYTES
        self._sizes[record.partition] = self._sizes.get(record.partition, 0) + sign * size
