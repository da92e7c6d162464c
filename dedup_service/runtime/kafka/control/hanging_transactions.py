"""Hanging transactions (KIP-664): decided by their coordinator, but without an end marker on a partition.

Why: Apache Kafka 4.3.1 treats a partition without a leader as deleted and leaves out the marker that would
end a transaction there (KAFKA-20734). Readers of committed records stop at that offset for good: a consumer
of `verdicts`, or the service at its log. `kafka-transactions.sh abort` would let them continue, but discards
what the coordinator has committed: pages would stay without a verdict.

Find: the partitions' leaders say which transactions are open and since which offset; the coordinators' own
log (`__transaction_state`), read after that, says which of them are still to be ended. A transaction that is
open before and after, at the same offset, while its coordinator has nothing left to do, hangs. So does one that its
coordinator has decided for more than a minute without ending it: a broker was seen to write the end marker of such a
transaction to one of its three topics, and to go on as if the others had it. The decision is in its log, so nothing is
lost if the coordinator ends it after all: a second marker changes nothing. Reading that
log needs *Read* on `__transaction_state`.
Repair: the missing marker is written, committed or aborted as the coordinator decided. It needs *Alter* on
the cluster.

A partition's transaction is ended by the next decision that includes the partition, even if an earlier
marker was lost. So of each producer and partition only the last decision counts, and memory does not grow
with the log.
Format: Apache Kafka, TransactionLogKey.json (version 0) and TransactionLogValue.json (0; 1 has compact
fields and tags, which are at the end and not read).
"""

import struct
import time
from collections.abc import Container, Iterable
from contextlib import closing
from dataclasses import dataclass
from enum import Enum, IntEnum

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.admin import OpenTransaction, administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.log_consumer import PartitionReader
from dedup_service.runtime.kafka.topics.plan import Topics

TRANSACTION_LOG, GROUP_OFFSETS = "__transaction_state", "__consumer_offsets"

_FETCH_BYTES = 8 << 20
_TIMEOUT_S = 60.0
"""If no record comes within this time, the transaction log counts as unreachable."""


class TransactionOutcome(Enum):
    """What a coordinator decided."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True, order=True)
class HangingTransaction:
    """A transaction that stays open on a partition from `offset` on.

    since_ms: when the producer last wrote there, Unix milliseconds. outcome: what its coordinator decided,
    None if the coordinator's log no longer has it. epoch: of the producer, for the marker.
    coordinator_epoch: of the coordinator that last wrote there.
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


def find_hanging(connection: Connection, topics: Topics) -> list[HangingTransaction]:
    """Return the hanging transactions by topic and partition; reads the transaction log from its beginning.

    The offsets of groups are examined as well, for producers that wrote into `topics`. Raises BrokerError,
    and ConfigurationError if the log has a newer, unknown format.
    """
    with administration(connection) as admin:
        before = admin.open_transactions(admin.partitions_of([*topics.all, GROUP_OFFSETS]))
        if not before:
            return []
        histories = _read_histories(connection, {transaction.producer_id for transaction in before})
        after = set(map(_identity, admin.open_transactions({transaction.partition for transaction in before})))
    names, now_ms = set(topics.all), int(1000 * time.time())  # compared with the coordinators' clocks
    hanging = []
    for transaction in before:
        history = histories.get(transaction.producer_id)
        is_ours = transaction.partition.topic in names or (history is not None and not history.topics.isdisjoint(names))
        is_active = history is not None and history.is_active(transaction.partition, now_ms)
        if is_ours and not is_active and _identity(transaction) in after:
            hanging.append(_hanging(transaction, history))
    return sorted(hanging)


def repair(connection: Connection, transactions: Iterable[HangingTransaction]) -> None:
    """Write the end markers of transactions whose outcome is known; others are left as they are.

    Raises NotAuthorisedError if *Alter* on the cluster is missing, BrokerError for the rest.
    """
    with administration(connection) as admin:
        for transaction in transactions:
            if transaction.outcome is not None:
                admin.write_marker(
                    TopicPartition(transaction.topic, transaction.partition),
                    (transaction.producer_id, transaction.epoch),
                    transaction.coordinator_epoch,
                    committed=transaction.outcome is TransactionOutcome.COMMIT,
                )


def _identity(transaction: OpenTransaction) -> tuple[TopicPartition, int, int]:
    """Return what makes it the same transaction when it is seen again.

    A later one of its producer begins elsewhere.
    """
    return transaction.partition, transaction.producer_id, transaction.offset


def _hanging(transaction: OpenTransaction, history: "TransactionHistory | None") -> HangingTransaction:
    partition = transaction.partition
    decision = history.outcome(partition, transaction.producer_id, transaction.epoch) if history else None
    outcome, epoch = decision or (None, transaction.epoch)
    return HangingTransaction(
        topic=partition.topic,
        partition=partition.partition,
        offset=transaction.offset,
        since_ms=transaction.last_write_ms,
        transactional_id=history.last.transactional_id if history else "unknown",
        producer_id=transaction.producer_id,
        outcome=outcome,
        epoch=epoch,
        coordinator_epoch=max(0, transaction.coordinator_epoch),
    )


def _read_histories(connection: Connection, producer_ids: Container[int]) -> "dict[int, TransactionHistory]":
    """Read the whole transaction log.

    Return the history of each transactional id that has one of the producer ids. All states of a
    transactional id are in one partition, so they come in their order.
    """
    by_name: dict[str, TransactionHistory] = {}
    by_producer: dict[int, TransactionHistory] = {}
    with closing(PartitionReader(connection, fetch_bytes=_FETCH_BYTES, timeout_s=_TIMEOUT_S)) as reader:
        ends = reader.ends(reader.partitions_of(TRANSACTION_LOG))
        reader.assign(reader.beginnings)
        for message in (message for batch in reader.read(ends) for message in batch):
            try:
                record = decode(message.key, message.value)
            except ValueError as error:
                raise ConfigurationError(
                    f"{TRANSACTION_LOG} cannot be read as this release of Kafka writes it: {error}"
                ) from error
            if record is None:
                continue
            if history := by_name.get(record.transactional_id):
                history.add(record)
            elif record.producer_id in producer_ids:
                history = by_name[record.transactional_id] = TransactionHistory(record)
            if history and record.producer_id in producer_ids:
                by_producer[record.producer_id] = history
    return by_producer


class TransactionState(IntEnum):
    """The state of a transactional id, under the numbers of the transaction log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


_DECIDED = {
    TransactionState.PREPARE_COMMIT: TransactionOutcome.COMMIT,
    TransactionState.PREPARE_ABORT: TransactionOutcome.ABORT,
}
_DECIDED_MS = 60_000
"""After a decision its end markers are written within milliseconds, or once the leaders of the partitions are back."""

_ACTIVE = {
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE,
}


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """One record of the transaction log. partitions: those whose transaction has yet to be ended.

    updated_ms: when the state was reached, Unix milliseconds by the coordinator's clock.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    updated_ms: int


class TransactionHistory:
    """The records of one transactional id, beginning with `first`. topics: all that it has written into."""

    def __init__(self, first: TransactionRecord) -> None:
        self.last = first
        self.topics: set[str] = set()
        self._decisions: dict[tuple[TopicPartition, int, int], TransactionOutcome] = {}
        self.add(first)

    def add(self, record: TransactionRecord) -> None:
        """Apply the next record."""
        self.last = record
        self.topics.update(partition.topic for partition in record.partitions)
        if decided := _DECIDED.get(record.state):
            self._decisions |= {
                (partition, record.producer_id, record.epoch): decided for partition in record.partitions
            }

    def is_active(self, partition: TopicPartition, now_ms: int) -> bool:
        """Whether producer or coordinator will still end the transaction on `partition`: a coordinator soon or never.

        now_ms: Unix milliseconds.
        """
        if self.last.state in _DECIDED and now_ms - self.last.updated_ms > _DECIDED_MS:
            return False
        return self.last.state in _ACTIVE and partition in self.last.partitions

    def outcome(self, partition: TopicPartition, producer_id: int, epoch: int) -> tuple[TransactionOutcome, int] | None:
        """Return the decision on this producer's transaction on `partition`, and its marker's epoch.

        None if that is unknown. A decision has the epoch of the records, or the next one: the coordinator
        raises it to fence an earlier instance of the producer, and with each transaction in version 2 of the
        protocol.
        """
        for marker_epoch in (epoch + 1, epoch):
            if decided := self._decisions.get((partition, producer_id, marker_epoch)):
                return decided, marker_epoch
        return None


def decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """Return the record, None for a deletion and for keys of other kinds.

    ValueError for a value that is cut off or of a newer, unknown version: without it, an active transaction
    could not be told from a hanging one.
    """
    try:
        if value is None or struct.unpack_from(">h", key) != (0,):
            return None
        (length,) = struct.unpack_from(">h", key, 2)
        version, producer_id, epoch, _timeout_ms, state = struct.unpack_from(">hqhib", value)
        if version not in (0, 1):
            raise ValueError(f"a record of the transaction log has version {version}")
        fields = _Fields(value, struct.calcsize(">hqhib"), compact=version == 1)
        partitions, updated_ms = fields.partitions(), fields.number(">q")
        name = key[4 : 4 + length].decode()
    except (struct.error, IndexError) as error:
        raise ValueError(f"a record of the transaction log is cut off: {error}") from error
    return TransactionRecord(name, producer_id, epoch, TransactionState(state), partitions, updated_ms)


class _Fields:
    """Reads the part of a value whose layout depends on its version."""

    def __init__(self, value: bytes, start: int, *, compact: bool) -> None:
        self._value = value
        self._at = start
        self._compact = compact

    def partitions(self) -> frozenset[TopicPartition]:
        """Read topics with their partitions."""
        found: set[TopicPartition] = set()
        for _ in range(self._count(">i")):
            topic = self._bytes(self._count(">h")).decode()
            found.update(TopicPartition(topic, self.number(">i")) for _ in range(self._count(">i")))
            if self._compact:
                self._skip_tags()
        return frozenset(found)

    def _count(self, plain: str) -> int:
        """Read a length; null counts as 0. A compact one is stored plus one, with a variable size."""
        return max(0, self._varint() - 1 if self._compact else self.number(plain))

    def number(self, kind: str) -> int:
        """Read a number of fixed size."""
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

    def _skip_tags(self) -> None:
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
