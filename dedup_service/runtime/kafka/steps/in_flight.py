"""Records in flight: read from `pages`, and not yet committed by the fingerprinting step.

Records are grouped into chunks of one partition each, limited in records and bytes, so that no chunk delays
others. A chunk waits, is started (in the worker processes), and is ready once all earlier chunks of its
partition are done: offsets are committed in order within a partition, and a slow page delays its own
partition only.
Kept of a record is its place and value, of one that is refused by its size its place and the reason
(`PageMessage.of`): the bytes that are counted are those that are held.
Invariant: a dropped chunk is never ready again. Workers may still be busy with it; `start` takes that into
account.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import takewhile
from time import monotonic

from dedup_service.core.log_records import ExpiredRecord
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.workers.preparation import Answer

_SMALL_CHUNKS = 8

Submit = Callable[[Sequence[PageMessage]], "Future[list[Answer]]"]
"""Hands messages to the workers; the future has one answer for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightLimits:
    """Bounds on the records in flight.

    records, bytes: read and not yet committed; each partition may use an equal part, one alone half of each.
    started: full chunks that the workers have at a time, or smaller ones with as much in them, up to eight times as
    many. chunk_records, chunk_bytes: of one chunk. At 0.4 ms a page
    (text), or 60 KB and 10 ms (HTML), a chunk is up to 50 ms of work: a worker seldom waits for its owner, and
    the started chunks outlast a commit.
    """

    records: int = 4000
    bytes: int = 32 << 20
    started: int = 12
    chunk_records: int = 128
    chunk_bytes: int = 256 << 10


@dataclass(slots=True)
class Chunk:
    """Records of one partition, in order. answers: None until the chunk is started.

    expired: about records that were deleted before they were read; such a chunk has no messages.
    """

    partition: TopicPartition
    messages: list[PageMessage] = field(default_factory=list)
    size_bytes: int = 0
    answers: "Future[list[Answer]] | None" = None
    expired: ExpiredRecord | None = None

    @property
    def done(self) -> bool:
        """Whether the workers have answered."""
        return self.expired is not None or (self.answers is not None and self.answers.done())

    @property
    def end(self) -> int:
        """Offset after the last record."""
        return self.messages[-1].offset + 1 if self.expired is None else self.expired.end


class InFlight:
    """Chunks in flight, in order within each partition. Not thread-safe."""

    def __init__(self, limits: InFlightLimits) -> None:
        self._limits = limits
        self._chunks: dict[TopicPartition, deque[Chunk]] = {}
        self._waiting: deque[Chunk] = deque()
        self._started: list[tuple[Future[list[Answer]], float]] = []

    @property
    def records(self) -> int:
        """Number of records in flight."""
        return sum(map(self.records_of, self._chunks))

    @property
    def size_bytes(self) -> int:
        """Size of the values of the records in flight."""
        return sum(chunk.size_bytes for chunks in self._chunks.values() for chunk in chunks)

    @property
    def waiting(self) -> int:
        """Number of records that wait because the workers have as many chunks as allowed."""
        return sum(len(chunk.messages) for chunk in self._waiting)

    def records_of(self, partition: TopicPartition) -> int:
        """Return the number of records in flight of one partition."""
        return sum(len(chunk.messages) for chunk in self._chunks.get(partition, ()))

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions with anything in flight, records or not."""
        return frozenset(partition for partition, chunks in self._chunks.items() if chunks)

    def full(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Return which of the assigned `partitions` to pause: those that have reached their part of the limits."""
        partitions, limits = frozenset(partitions), self._limits
        parts = max(2, len(partitions))
        return frozenset(
            partition
            for partition in partitions
            if self.records_of(partition) * parts >= limits.records
            or sum(chunk.size_bytes for chunk in self._chunks.get(partition, ())) * parts >= limits.bytes
        )

    def put(self, records: Iterable[ConsumerRecord]) -> None:
        """Add consumed records."""
        for record in records:
            message = PageMessage.of(record)  # without key and headers, and without the bytes of a refused record
            partition, size = TopicPartition(record.topic, record.partition), len(message.raw)
            chunks = self._chunks.setdefault(partition, deque())
            if not chunks or not self._has_room(chunks[-1], size):
                chunks.append(Chunk(partition))
                self._waiting.append(chunks[-1])
            chunks[-1].messages.append(message)
            chunks[-1].size_bytes += size

    def put_expired(self, partition: TopicPartition, record: ExpiredRecord) -> None:
        """Add a record of the log in the place of input records that were deleted."""
        self._chunks.setdefault(partition, deque()).append(Chunk(partition, expired=record))

    def start(self, submit: Submit, budget_s: float) -> None:
        """Hand waiting chunks to the workers, up to `started` at a time, for up to `budget_s`.

        The budget is checked between chunks; it matters if `submit` prepares the pages itself.
        """
        deadline = monotonic() + budget_s
        self._started = [(answers, part) for answers, part in self._started if not answers.done()]
        parts = sum(part for _, part in self._started)
        while self._waiting and self._may_start(parts) and monotonic() < deadline:
            chunk = self._waiting.popleft()
            chunk.answers = submit(chunk.messages)
            self._started.append((chunk.answers, self._part(chunk)))
            parts += self._part(chunk)

    def ready(self, max_records: int) -> list[Chunk]:
        """Return the chunks to commit, in order within a partition; they stay in flight until `committed`.

        max_records: in all chunks together; the first chunk is returned whatever its size.
        """
        ready: list[Chunk] = []
        records = 0
        for chunks in self._chunks.values():
            for chunk in chunks:
                if not chunk.done or (ready and records + len(chunk.messages) > max_records):
                    break
                ready.append(chunk)
                records += len(chunk.messages)
        return ready

    def committed(self, ready: Sequence[Chunk]) -> None:
        """Remove what `ready` returned."""
        for chunk in ready:
            self._chunks[chunk.partition].popleft()

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop all records of `partitions`."""
        dropped = frozenset(partitions)
        self._waiting = deque(chunk for chunk in self._waiting if chunk.partition not in dropped)
        for partition in dropped:
            self._chunks.pop(partition, None)

    def drop_all(self) -> None:
        """Drop all records."""
        self.drop(tuple(self._chunks))

    def drop_waiting(self) -> None:
        """Drop the chunks that were not started, so that a drain ends soon."""
        self._waiting.clear()
        for partition, chunks in self._chunks.items():
            self._chunks[partition] = deque(takewhile(lambda chunk: chunk.answers or chunk.expired, chunks))

    def _may_start(self, parts: float) -> bool:
        started = self._limits.started
        return parts < started and len(self._started) < _SMALL_CHUNKS * started

    def _part(self, chunk: Chunk) -> float:
        """Return how much of a full chunk this is, at most 1."""
        limits = self._limits
        return min(1.0, max(len(chunk.messages) / limits.chunk_records, chunk.size_bytes / limits.chunk_bytes))

    def _has_room(self, chunk: Chunk, size: int) -> bool:
        limits = self._limits
        return (
            chunk.answers is None
            and chunk.expired is None
            and len(chunk.messages) < limits.chunk_records
            and chunk.size_bytes + size <= limits.chunk_bytes
        )
