"""Records in flight: read from `pages`, and not yet committed by the fingerprinting step.

Records are grouped into chunks of one partition each, limited in records and bytes, so that no chunk delays
others. A chunk waits, is started (by the workers), and is ready once all earlier chunks of its
partition are done: offsets are committed in order within a partition, and a slow page delays its own
partition only.
Records of partitions that are behind are ready in order of their timestamps, so that of two copies the one that was
published first is first in the log. They wait for all that was published before them: for records that the workers
have, and for partitions that nothing has been read of yet. No other record waits: not one of a partition that is read
to its end, nor one whose timestamp says nothing, because it has none or is in the future.
Kept of a record is its place and value, of one that is refused by its size its place and the reason
(`PageMessage.of`): the bytes that are counted are those that are held.
Invariant: a dropped chunk is never ready again. Workers may still be busy with it; `start` takes that into
account.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import takewhile
from math import inf
from time import time

from dedup_service.core.log_records import ExpiredRecord
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.workers.preparation import Answer

_SMALL_CHUNKS = 8
_AT_ONCE = -1  # the time of a record that waits for no other

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

    times: of the messages, in ms. committed: how many of them are committed.
    expired: about records that were deleted before they were read; such a chunk has no messages.
    """

    partition: TopicPartition
    messages: list[PageMessage] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    size_bytes: int = 0
    answers: "Future[list[Answer]] | None" = None
    expired: ExpiredRecord | None = None
    committed: int = 0

    @property
    def done(self) -> bool:
        """Whether the workers have answered."""
        return self.expired is not None or (self.answers is not None and self.answers.done())

    def time(self, index: int) -> int:
        """Return the time of a message, or of a chunk without one."""
        return self.times[index] if self.times else _AT_ONCE

    def part(self, first: int, last: int) -> "Answered":
        """Return the messages from index `first` to before `last`, once the chunk is done."""
        answers = [] if self.answers is None else self.answers.result()[first:last]
        return Answered(self.partition, self.messages[first:last], answers, self.expired)


@dataclass(frozen=True, slots=True)
class Answered:
    """What can be committed: records of one partition that follow each other, or what is said about deleted ones."""

    partition: TopicPartition
    messages: Sequence[PageMessage]
    answers: Sequence[Answer]
    expired: ExpiredRecord | None

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
        return sum(len(chunk.messages) - chunk.committed for chunk in self._chunks.get(partition, ()))

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

    @property
    def busy(self) -> bool:
        """Whether there is anything that is not done."""
        return any(not chunk.done for chunks in self._chunks.values() for chunk in chunks)

    def put(self, records: Iterable[ConsumerRecord], behind: Collection[TopicPartition] = ()) -> None:
        """Add consumed records. behind: the partitions that are not read to their ends."""
        now = time() * 1000
        for record in records:
            message = PageMessage.of(record)  # without key and headers, and without the bytes of a refused record
            partition, size = TopicPartition(record.topic, record.partition), len(message.raw)
            chunks = self._chunks.setdefault(partition, deque())
            if not chunks or not self._has_room(chunks[-1], size):
                chunks.append(Chunk(partition))
                self._waiting.append(chunks[-1])
            chunks[-1].messages.append(message)
            tells = partition in behind and record.timestamp <= now
            chunks[-1].times.append(record.timestamp if tells else _AT_ONCE)
            chunks[-1].size_bytes += size

    def put_expired(self, partition: TopicPartition, record: ExpiredRecord) -> None:
        """Add a record of the log in the place of input records that were deleted."""
        self._chunks.setdefault(partition, deque()).append(Chunk(partition, expired=record))

    def start(self, submit: Submit) -> None:
        """Hand waiting chunks to the workers, up to `started` at a time."""
        self._started = [(answers, part) for answers, part in self._started if not answers.done()]
        parts = sum(part for _, part in self._started)
        while self._waiting and self._may_start(parts):
            chunk = self._waiting.popleft()
            chunk.answers = submit(chunk.messages)
            self._started.append((chunk.answers, self._part(chunk)))
            parts += self._part(chunk)

    def ready(self, max_records: int, unread: Collection[TopicPartition] = ()) -> list[Answered]:
        """Return what to commit, in the order for the log; it stays in flight until `committed`.

        unread: partitions from which more is to come, which may be older than what is in flight of others.
        """
        awaited = not self.partitions.issuperset(unread)
        ready: list[Answered] = []
        partitions = [list(chunks) for chunks in self._chunks.values() if chunks]
        heads = [
            (chunks[0].time(chunks[0].committed), n, 0, chunks[0].committed) for n, chunks in enumerate(partitions)
        ]
        heapify(heads)
        while heads and max_records > 0:
            at, number, index, first = heappop(heads)
            chunk = partitions[number][index]
            if at > _AT_ONCE and (awaited or not chunk.done):
                break
            if not chunk.done:
                times = (time for later in partitions[number][index:] for time in later.times)
                after = next((time for time in times if time > _AT_ONCE), None)
                awaited |= after is None and chunk.partition in unread
                if after is not None:
                    heappush(heads, (after, number, index, first))
                continue
            until = _AT_ONCE if awaited else heads[0][0] if heads else inf
            last = first + (not chunk.expired)
            while last < len(chunk.times) and chunk.times[last] <= until and last - first < max_records:
                last += 1
            ready.append(chunk.part(first, last))
            max_records -= last - first
            if last == len(chunk.times):
                index, last = index + 1, 0
            if index == len(partitions[number]):
                awaited |= chunk.partition in unread
            else:
                heappush(heads, (partitions[number][index].time(last), number, index, last))
        return ready

    def committed(self, ready: Sequence[Answered]) -> None:
        """Remove what `ready` returned."""
        for part in ready:
            chunks = self._chunks[part.partition]
            chunks[0].committed += len(part.messages)
            if chunks[0].committed == len(chunks[0].messages):
                chunks.popleft()

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop all records of `partitions`."""
        dropped = frozenset(partitions)
        self._waiting = deque(chunk for chunk in self._waiting if chunk.partition not in dropped)
        for partition in dropped:
            self._chunks.pop(partition, None)

    def drop_all(self) -> None:
        """Drop all records."""
        self.drop(tuple(self._chunks))

    def drop_waiting(self) -> frozenset[TopicPartition]:
        """Drop the chunks that were not started, so that a drain ends soon; return their partitions."""
        dropped = frozenset(chunk.partition for chunk in self._waiting)
        self._waiting.clear()
        for partition, chunks in self._chunks.items():
            self._chunks[partition] = deque(takewhile(lambda chunk: chunk.answers or chunk.expired, chunks))
        return dropped

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
