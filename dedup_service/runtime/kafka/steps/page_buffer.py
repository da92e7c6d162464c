"""Pages read from `pages` that wait for the log to say what becomes of them.

Outputs are written in order of offset within a partition, so only the head of a partition's queue can go. Bounded
in records and bytes: where too much waits, the reader pauses, and the broker keeps the rest.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes

__all__ = ["PageBuffer", "Ready"]

Ready = tuple[Any, PendingOutcome]
"""A consumed record of `pages` and its outcome."""

OVERHEAD_BYTES = 600
"""What a record costs in memory beside its bytes: objects of the client, headers, queue."""


class PageBuffer:
    """The queues. most_records, most_bytes: `full` from here on."""

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
        """Whether no more should be read for now."""
        return self.records >= self._max_records or self.size_bytes >= self._max_bytes

    def begin(self, partition: int, offset: int) -> None:
        """Start a partition anew: what is read of it below `offset` has its outputs already."""
        self.end(partition)
        self._next[partition] = offset

    def end(self, partition: int) -> None:
        """Let go of a partition: another process has it now."""
        for record in self._queues.pop(partition, ()):
            self._count(record, -1)
        self._next.pop(partition, None)

    def put(self, records: Iterable[Any]) -> None:
        """Queue consumed records; one read a second time is left out."""
        for record in records:
            if record.offset < self._next.get(record.partition, 0):
                self.repeated += 1
                continue
            self._next[record.partition] = record.offset + 1
            self._queues.setdefault(record.partition, deque()).append(record)
            self._count(record, 1)

    def ready(self, outcomes: PendingOutcomes, max_records: int, max_bytes: int) -> list[Ready]:
        """Return what can be written now, each partition in its order; it stays queued until `done`."""
        found: list[Ready] = []
        size = 0
        for queue in self._queues.values():
            for record in queue:
                outcome = outcomes.get(record.topic, record.partition, record.offset)
                if outcome is None or len(found) >= max_records or size >= max_bytes:
                    break
                found.append((record, outcome))
                size += len(record.value or b"")
        return found

    def done(self, ready: Sequence[Ready]) -> None:
        """Let go of what `ready` gave: it is written."""
        for record, _ in ready:
            self._count(self._queues[record.partition].popleft(), -1)

    def waits_for(self) -> dict[int, int]:
        """Return the offset at the head of each partition's queue."""
        return {partition: queue[0].offset for partition, queue in self._queues.items() if queue}

    def _count(self, record: Any, sign: int) -> None:
        self.records += sign
        self.size_bytes += sign * (len(record.value or b"") + len(record.key or b"") + OVERHEAD_BYTES)
