"""Pages between being read and being committed: what the fingerprinting step has in hand.

Chunks of one partition each, few enough records and bytes that none keeps others waiting. A chunk waits, is started
(in the worker processes), and is ready once all chunks of its partition before it are: offsets are committed in
order within a partition, and a page that takes long holds up its own partition only.
Invariant: what was dropped is never ready again; the workers may still be busy with it, which `start` reckons with.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic

from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.workers.preparation import Answer

__all__ = ["Chunk", "InFlight", "InFlightLimits", "Submit"]

Submit = Callable[[Sequence[PageMessage]], "Future[list[Answer]]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightLimits:
    """How much is held.

    records, bytes: read and not yet committed; at most half of it of one partition. started: chunks that the workers
    have. chunk_records, chunk_bytes: of a chunk. At 0.4 ms a page (text), or 60 KB and 10 ms (HTML), a chunk is up to
    50 ms of work, so that a worker seldom waits for its owner, and what is started outlasts a commit.
    """

    records: int = 4000
    bytes: int = 32 << 20
    started: int = 12
    chunk_records: int = 128
    chunk_bytes: int = 256 << 10


@dataclass(slots=True)
class Chunk:
    """Records of one partition, in order. answers: None until it is started."""

    at: TopicPartition
    messages: list[PageMessage] = field(default_factory=list)
    size_bytes: int = 0
    answers: "Future[list[Answer]] | None" = None

    @property
    def done(self) -> bool:
        """Whether its answers are there."""
        return self.answers is not None and self.answers.done()


class InFlight:
    """The chunks, by partition."""

    def __init__(self, limits: InFlightLimits) -> None:
        self._limits = limits
        self._chunks: dict[TopicPartition, deque[Chunk]] = {}
        self._waiting: deque[Chunk] = deque()
        self._started: list[Future[list[Answer]]] = []

    @property
    def records(self) -> int:
        """How many records are in hand."""
        return sum(map(self.records_of, self._chunks))

    @property
    def backlog(self) -> bool:
        """Whether chunks wait although the workers have as many as they should have."""
        return bool(self._waiting)

    def records_of(self, at: TopicPartition) -> int:
        """How many of one partition."""
        return sum(len(chunk.messages) for chunk in self._chunks.get(at, ()))

    def full(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Return those of `partitions` that should not be read for now: all, or those that fill half of it alone."""
        records = {at: self.records_of(at) for at in self._chunks}
        sizes = {at: sum(chunk.size_bytes for chunk in chunks) for at, chunks in self._chunks.items()}
        limits, partitions = self._limits, frozenset(partitions)
        if sum(records.values()) >= limits.records or sum(sizes.values()) >= limits.bytes:
            return partitions
        many = {at for at, count in records.items() if 2 * count >= limits.records}
        large = {at for at, size in sizes.items() if 2 * size >= limits.bytes}
        return partitions & (many | large)

    def put(self, records: Iterable[ConsumerRecord]) -> None:
        """Take consumed records in."""
        for record in records:
            at, size = TopicPartition(record.topic, record.partition), len(record.value or b"")
            chunks = self._chunks.setdefault(at, deque())
            if not chunks or not self._has_room(chunks[-1], size):
                chunks.append(Chunk(at))
                self._waiting.append(chunks[-1])
            chunks[-1].messages.append(PageMessage(record.topic, record.partition, record.offset, record.value))
            chunks[-1].size_bytes += size

    def start(self, submit: Submit, budget_s: float) -> None:
        """Give waiting chunks to the workers, as many as they should have; end after `budget_s` where it takes time."""
        deadline = monotonic() + budget_s
        self._started = [answers for answers in self._started if not answers.done()]
        while self._waiting and len(self._started) < self._limits.started and monotonic() < deadline:
            chunk = self._waiting.popleft()
            chunk.answers = submit(chunk.messages)
            self._started.append(chunk.answers)

    def ready(self, max_records: int) -> list[Chunk]:
        """Return the chunks that can be committed, each partition in its order; they stay in hand until `committed`."""
        found: list[Chunk] = []
        records = 0
        for chunks in self._chunks.values():
            for chunk in chunks:
                if not chunk.done or (found and records + len(chunk.messages) > max_records):
                    break
                found.append(chunk)
                records += len(chunk.messages)
        return found

    def committed(self, ready: Sequence[Chunk]) -> None:
        """Let go of what `ready` gave."""
        for chunk in ready:
            self._chunks[chunk.at].popleft()

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Let go of all records of `partitions`."""
        gone = frozenset(partitions)
        self._waiting = deque(chunk for chunk in self._waiting if chunk.at not in gone)
        for at in gone:
            self._chunks.pop(at, None)

    def drop_all(self) -> None:
        """Let go of everything."""
        self.drop(tuple(self._chunks))

    def drop_waiting(self) -> None:
        """Let go of what no worker has begun, so that what is in hand comes to an end soon."""
        self._waiting.clear()
        for at, chunks in self._chunks.items():
            self._chunks[at] = deque(chunk for chunk in chunks if chunk.answers is not None)

    def _has_room(self, chunk: Chunk, size: int) -> bool:
        limits = self._limits
        return (
            chunk.answers is None
            and len(chunk.messages) < limits.chunk_records
            and chunk.size_bytes + size <= limits.chunk_bytes
        )
