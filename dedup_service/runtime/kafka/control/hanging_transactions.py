"""What coordinators note of transactions: the records of the topic `__transaction_state`.

Format: Apache Kafka, TransactionLogKey.json (version 0) and TransactionLogValue.json (0; 1 has compact fields and
tags, which are at the end and not read).

What is kept of a transactional id while the coordinators' log is read: its last state, and decisions on partitions.

A partition's transaction is ended by the next decision that includes the partition, whoever's marker was lost before.
So of each producer and partition only the last decision matters, and memory does not grow with the log.

Find transactions on our topics that nobody will end.

How: partitions tell whose transaction is open on them and since which offset; the coordinators' own log, read after
that, tells who is still at work. What is open before and after, at the same offset, while its coordinator has nothing
left to do, stays open for ever. Reading the log needs *Read* on `__transaction_state`.

End transactions as their coordinators decided: the marker that a broker left out is written.

Transactions that a broker decided and never ended: found, and ended as they were decided.

Why: Apache Kafka 4.3.1 takes a partition without a leader for a deleted one and leaves out the marker that would end
a transaction there (KAFKA-20734). Whoever reads committed records stands still at that place for ever: a consumer of
`verdicts`, or the service at its log. `kafka-transactions.sh abort` would let readers go on, but takes back what the
coordinator has committed: pages would stay without a verdict.
"""

import struct
import time
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import administration, consumer
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.retry import TRANSIENT, permanent_error, transient_error
from dedup_service.runtime.kafka.topics.plan import Topics

__all__ = [
    "HangingTransaction",
    "History",
    "Place",
    "TransactionOutcome",
    "TransactionRecord",
    "TransactionState",
    "decode",
    "find_hanging",
    "repair",
]

Place = tuple[str, int]
"""Topic and partition."""


class TransactionState(IntEnum):
    """The state of a transactional id, under the coordinator's numbers."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """One record. places: the partitions whose transaction has to be ended yet."""

    transactional_id: str
    producer_id: int
    epoch: int
    phase: TransactionState
    places: frozenset[Place]


def decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """Return the state that a record notes, None for a deletion and for keys of other kinds.

    ValueError for a value that is cut off or of a version to come: without it, who is at work would be unknown.
    """
    try:
        if value is None or struct.unpack_from(">h", key) != (0,):
            return None
        (length,) = struct.unpack_from(">h", key, 2)
        version, producer_id, epoch, _timeout_ms, phase = struct.unpack_from(">hqhib", value)
        if version not in (0, 1):
            raise ValueError(f"a record of the transaction log has version {version}")
        places = _Fields(value, struct.calcsize(">hqhib"), compact=version == 1).places()
        name = key[4 : 4 + length].decode()
    except (struct.error, IndexError) as error:
        raise ValueError(f"a record of the transaction log is cut off: {error}") from error
    return TransactionRecord(name, producer_id, epoch, TransactionState(phase), places)


class _Fields:
    """The part of a value whose layout depends on its version."""

    def __init__(self, value: bytes, at: int, *, compact: bool) -> None:
        self._value = value
        self._at = at
        self._compact = compact

    def places(self) -> frozenset[Place]:
        found: set[Place] = set()
        for _ in range(self._count(">i")):
            topic = self._bytes(self._count(">h")).decode()
            found.update((topic, self._number(">i")) for _ in range(self._count(">i")))
            if self._compact:
                self._tags()
        return frozenset(found)

    def _count(self, plain: str) -> int:
        """A length: plus one and of variable size where compact; null is 0."""
        return max(0, self._varint() - 1 if self._compact else self._number(plain))

    def _number(self, kind: str) -> int:
        (number,) = struct.unpack_from(kind, self._value, self._at)
        self._at += struct.calcsize(kind)
        return int(number)

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._value[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def _tags(self) -> None:
        for _ in range(self._varint()):
            self._varint()
            self._bytes(self._varint())

    def _bytes(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._value):
            raise IndexError(f"{length} bytes at {self._at} of {len(self._value)}")
        found = self._value[self._at : end]
        self._at = end
        return found


class TransactionOutcome(Enum):
    """What was decided."""

    COMMIT = "commit"
    ABORT = "abort"


_DECIDED = {
    TransactionState.PREPARE_COMMIT: TransactionOutcome.COMMIT,
    TransactionState.PREPARE_ABORT: TransactionOutcome.ABORT,
}
_AT_WORK = {
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE,
}


class History:
    """Of one transactional id, whose first noted state is `first`. topics: all it has written into."""

    def __init__(self, first: TransactionRecord) -> None:
        self.last = first
        self.topics: set[str] = set()
        self._decisions: dict[tuple[Place, int, int], TransactionOutcome] = {}
        self.note(first)

    def note(self, state: TransactionRecord) -> None:
        """Take in its next state."""
        self.last = state
        self.topics.update(topic for topic, _ in state.places)
        if decided := _DECIDED.get(state.phase):
            self._decisions |= {(place, state.producer_id, state.epoch): decided for place in state.places}

    def is_at_work(self, place: Place) -> bool:
        """Whether the coordinator will still end the transaction on `place`."""
        return self.last.phase in _AT_WORK and place in self.last.places

    def outcome(self, place: Place, producer_id: int, epoch: int) -> tuple[TransactionOutcome, int] | None:
        """Return what was decided of this producer's transaction on `place`, and its marker's epoch; None if unknown.

        A decision has the epoch of the records, or the next one: the coordinator raises it to keep a former self of the
        producer out, and with each transaction in version 2 of the protocol.
        """
        for marked in (epoch + 1, epoch):
            if decided := self._decisions.get((place, producer_id, marked)):
                return decided, marked
        return None


STATES, OFFSETS = "__transaction_state", "__consumer_offsets"

_FETCH_BYTES = 8 << 20
_ANSWER_S = 60.0
"""Without a record for so long the log counts as out of reach."""


@dataclass(frozen=True, slots=True, order=True)
class HangingTransaction:
    """A transaction that stays open on a partition from `offset` on.

    since_ms: when the producer last wrote there. outcome: what its coordinator decided, None where its log has that no
    more. epochs: of the producer for the marker, and of the coordinator that wrote there last.
    """

    topic: str
    partition: int
    offset: int
    since_ms: int
    transactional_id: str
    producer_id: int
    outcome: TransactionOutcome | None
    epoch: int
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class _Open:
    place: TopicPartition
    producer_id: int
    epoch: int
    offset: int
    since_ms: int
    coordinator_epoch: int

    @property
    def identity(self) -> tuple[TopicPartition, int, int]:
        """What makes it the same transaction when it is seen again; a producer's later one begins elsewhere."""
        return self.place, self.producer_id, self.offset


def find_hanging(connection: Connection, topics: Topics) -> list[HangingTransaction]:
    """Return them, by topic and partition; reads the transaction log from its beginning.

    The offsets of groups are looked at as well, for producers that wrote into `topics`. Raises BrokerError,
    ConfigurationError where the log is of a format to come.
    """
    with administration(connection) as client:
        before = _open_on(client, _places(client, [*topics.all, OFFSETS]))
        if not before:
            return []
        histories = _histories(connection, {one.producer_id for one in before})
        after = {one.identity for one in _open_on(client, {one.place for one in before})}
    names = set(topics.all)
    found = []
    for one in before:
        history = histories.get(one.producer_id)
        ours = one.place.topic in names or (history is not None and not history.topics.isdisjoint(names))
        if ours and one.identity in after and not (history and history.is_at_work(one.place)):
            found.append(_endless(one, history))
    return sorted(found)


def _endless(one: _Open, history: History | None) -> HangingTransaction:
    decided = history.outcome(one.place, one.producer_id, one.epoch) if history else None
    outcome, epoch = decided or (None, one.epoch)
    name = history.last.transactional_id if history else "unknown"
    return HangingTransaction(
        topic=one.place.topic,
        partition=one.place.partition,
        offset=one.offset,
        since_ms=one.since_ms,
        transactional_id=name,
        producer_id=one.producer_id,
        outcome=outcome,
        epoch=epoch,
        coordinator_epoch=max(0, one.coordinator_epoch),
    )


def _open_on(client: KafkaAdminClient, places: Iterable[TopicPartition]) -> list[_Open]:
    return [
        _Open(
            place,
            producer.producer_id,
            producer.producer_epoch,
            producer.current_transaction_start_offset,
            producer.last_timestamp,
            producer.coordinator_epoch,
        )
        for place, state in client.describe_producers(places).items()
        for producer in state.active_producers
        if producer.current_transaction_start_offset >= 0
    ]


def _places(client: KafkaAdminClient, names: list[str]) -> list[TopicPartition]:
    """All partitions of those of the topics that are there."""
    there = [topic for topic in client.describe_topics(names) if not topic["error_code"]]
    return [TopicPartition(topic["name"], one["partition_index"]) for topic in there for one in topic["partitions"]]


def _histories(connection: Connection, producers: Container[int]) -> dict[int, History]:
    """Read the transaction log for what it says of the ids that have, or had, one of these producers' numbers."""
    reader = consumer(connection, _FETCH_BYTES)
    by_name: dict[str, History] = {}
    by_producer: dict[int, History] = {}
    try:
        for record in _all(reader):
            state = decode(record.key, record.value)
            if state is None:
                continue
            if history := by_name.get(state.transactional_id):
                history.note(state)
            elif state.producer_id in producers:
                history = by_name[state.transactional_id] = History(state)
            if history and state.producer_id in producers:
                by_producer[state.producer_id] = history
    except TRANSIENT as error:
        doing = f"to read {STATES}"
        raise permanent_error(error, doing) or transient_error(error, doing) from error
    except ValueError as error:
        raise ConfigurationError(f"{STATES} cannot be read as this release of Kafka writes it: {error}") from error
    finally:
        reader.close(autocommit=False, timeout_ms=2000)
    return by_producer


def _all(reader: KafkaConsumer) -> Iterator[ConsumerRecord]:
    """The whole log, partition by partition in order: all states of an id are in one."""
    places = [TopicPartition(STATES, number) for number in sorted(reader.partitions_for_topic(STATES) or ())]
    reader.assign(places)
    reader.seek_to_beginning()
    ends, deadline = reader.end_offsets(places), time.monotonic() + _ANSWER_S
    while any(reader.position(place) < end for place, end in ends.items()):
        records = [record for batch in reader.poll(timeout_ms=500).values() for record in batch]
        yield from records
        if records:
            deadline = time.monotonic() + _ANSWER_S
        elif time.monotonic() > deadline:
            raise UnreachableError(f"{STATES} gives no records; try again")


def repair(connection: Connection, found: Iterable[HangingTransaction]) -> None:
    """Write the markers of those whose outcome is known; others are left as they are.

    Needs *Alter* on the cluster. Raises NotAuthorisedError where it is missing, BrokerError for the rest.
    """
    with administration(connection) as client:
        for one in found:
            if one.outcome is not None:
                internals.write_marker(
                    client,
                    TopicPartition(one.topic, one.partition),
                    (one.producer_id, one.epoch),
                    one.coordinator_epoch,
                    committed=one.outcome is TransactionOutcome.COMMIT,
                )
