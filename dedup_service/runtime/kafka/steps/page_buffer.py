"""Bounded buffer of pages that were read from `pages` and wait for their outcome in the log.

Outputs are written in order of offset within a partition, so only the head of a partition's queue can be
written. The buffer is bounded in records and bytes: while it is full, the consumer pauses and the broker
keeps the rest.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes

__all__ = ["PageBuffer", "Ready"]

Ready = tuple[Any, PendingOutcome]
"""A consumed record of `pages` and its outcome."""

OVERHEAD_BYTES = 600
"""Memory of a record beside its value and key: objects of the client, headers, queue."""


class PageBuffer:
    """One FIFO queue of consumed records for each partition.

    max_records, max_bytes: the buffer is `full` from here on. records, size_bytes: what it holds.
    repeated: records that were read again and skipped.
    """

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._queues: dict[int, deque[Any]] = {}
        self._next: dict[int, int] = {}
        self.records = 0
        self.size_bytes = 0
        self.repeated = 0

    @property
    def full(self) -> bool:
        """Whether reading should pause."""
        return self.records >= self._max_records or self.size_bytes >= self._max_bytes

    def begin(self, partition: int, offset: int) -> None:
        """Start a partition with an empty queue; records below `offset` already have their outputs."""
        self.end(partition)
        self._next[partition] = offset

    def end(self, partition: int) -> None:
        """Drop the queue of a partition that starts again or now belongs to another process."""
        for record in self._queues.pop(partition, ()):
            self._count(record, -1)
        self._next.pop(partition, None)

    def put(self, records: Iterable[Any]) -> None:
        """Queue consumed records; a record that was read before is skipped."""
        for record in records:
            if record.offset < self._next.get(record.partition, 0):
                self.repeated += 1
                continue
            self._next[record.partition] = record.offset + 1
            self._queues.setdefault(record.partition, deque()).append(record)
            self._count(record, 1)

    def ready(self, outcomes: PendingOutcomes, max_records: int, max_bytes: int) -> list[Ready]:
        """Return the records that can be written, in order within a partition; they stay until `done`."""
        ready: list[Ready] = []
        size = 0
        for queue in self._queues.values():
            for record in queue:
                outcome = outcomes.get(record.topic, record.partition, record.offset)
                if outcome is None or len(ready) >= max_records or size >= max_bytes:
                    break
                ready.append((record, outcome))
                size += len(record.value or b"")
        return ready

    def done(self, ready: Sequence[Ready]) -> None:
        """Remove what `ready` returned: it is written."""
        for record, _ in ready:
            self._count(self._queues[record.partition].popleft(), -1)

    def _count(self, record: Any, sign: int) -> None:
        self.records += sign
        self.size_bytes += sign * (len(record.value or b"") + len(record.key or b"") + OVERHEAD_BYTES)
