"""Records of the transaction log, in its two formats, and what they say of an open transaction."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.control.hanging_transactions import (
    TransactionHistory,
    TransactionOutcome,
    TransactionRecord,
    TransactionState,
    decode,
)

PARTITION = TopicPartition("verdicts", 5)
OTHER = TopicPartition("verdicts", 2)

topic_names = st.text("abcdefghijklmnopqrstuvwxyz._-", min_size=1, max_size=200)
records = st.builds(
    TransactionRecord,
    transactional_id=topic_names,
    producer_id=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**15 - 1),
    state=st.sampled_from(TransactionState),
    partitions=st.frozensets(st.builds(TopicPartition, topic_names, st.integers(0, 2**31 - 1)), max_size=300),
    updated_ms=st.integers(0, 2**63 - 1),
)


def key(name: str) -> bytes:
    return struct.pack(">hh", 0, len(name)) + name.encode()


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def value(record: TransactionRecord, version: int) -> bytes:
    """Encode a record as the message definitions of Apache Kafka say."""
    head = struct.pack(">hqhib", version, record.producer_id, record.epoch, 5000, record.state)
    by_topic: dict[str, list[int]] = {}
    for topic, number in record.partitions:
        by_topic.setdefault(topic, []).append(number)
    end = struct.pack(">qq", record.updated_ms, 2)
    if version == 0:
        rows = [
            struct.pack(">h", len(topic))
            + topic.encode()
            + struct.pack(f">i{len(original)}i", len(original), *original)
            for topic, original in by_topic.items()
        ]
        return head + struct.pack(">i", len(rows) if rows else -1) + b"".join(rows) + end
    rows = [
        varint(len(topic) + 1)
        + topic.encode()
        + varint(len(original) + 1)
        + struct.pack(f">{len(original)}i", *original)
        + b"\1\0\2hi"
        for topic, original in by_topic.items()
    ]
    return head + varint(len(rows) + 1 if rows else 0) + b"".join(rows) + end + b"\0"


@given(record=records, version=st.sampled_from([0, 1]))
def test_a_record_is_read_as_it_was_written(record, version):
    """Both versions, with tags or without, for any names and any number of partitions."""
    assert decode(key(record.transactional_id), value(record, version)) == record


@given(record=records.filter(lambda record: record.partitions), version=st.sampled_from([0, 1]), data=st.data())
def test_a_record_that_is_cut_off_is_refused(record, version, data):
    """Half a record is an error, never a record with fewer partitions."""
    whole = value(record, version)
    cut = data.draw(st.integers(2, len(whole) - len(struct.pack(">qq", 1, 2)) - 6))
    with pytest.raises(ValueError, match="cut off"):
        decode(key(record.transactional_id), whole[:cut])


def test_other_records_are_left_out():
    """A deletion and a key of another kind are left out."""
    record = TransactionRecord("a", 1, 0, TransactionState.ONGOING, frozenset({PARTITION}), 1)
    assert decode(key("a"), None) is None
    assert decode(b"\0\1" + key("a")[2:], value(record, 1)) is None


def test_an_unknown_version_is_refused():
    """A record that cannot be read might be that of an active transaction."""
    record = TransactionRecord("a", 1, 0, TransactionState.ONGOING, frozenset({PARTITION}), 1)
    with pytest.raises(ValueError, match="version 2"):
        decode(key("a"), b"\0\2" + value(record, 1)[2:])


def history(
    *steps: tuple[int, TransactionState, tuple[TopicPartition, ...]], producer_id: int = 7, updated_ms: int = 0
) -> TransactionHistory:
    first, *rest = [
        TransactionRecord("t", producer_id, epoch, state, frozenset(partitions), updated_ms)
        for epoch, state, partitions in steps
    ]
    built = TransactionHistory(first)
    for later in rest:
        built.add(later)
    return built


def test_the_last_decision_on_the_partition_counts():
    """A later transaction that did not include the partition does not change its outcome."""
    transactions = history(
        (0, TransactionState.ONGOING, (PARTITION,)),
        (0, TransactionState.PREPARE_ABORT, (PARTITION,)),
        (0, TransactionState.COMPLETE_ABORT, ()),
        (0, TransactionState.PREPARE_COMMIT, (PARTITION, OTHER)),
        (0, TransactionState.COMPLETE_COMMIT, ()),
        (0, TransactionState.PREPARE_ABORT, (OTHER,)),
    )
    assert transactions.outcome(PARTITION, 7, 0) == (TransactionOutcome.COMMIT, 0)
    assert transactions.outcome(OTHER, 7, 0) == (TransactionOutcome.ABORT, 0)
    assert transactions.topics == {"verdicts"}


def test_a_decision_may_raise_the_epoch():
    """Where a coordinator ends what an earlier instance left, the marker has the raised epoch, not a later one."""
    transactions = history(
        (4, TransactionState.ONGOING, (PARTITION,)),
        (5, TransactionState.PREPARE_ABORT, (PARTITION,)),
        (6, TransactionState.PREPARE_COMMIT, (PARTITION,)),
    )
    assert transactions.outcome(PARTITION, 7, 4) == (TransactionOutcome.ABORT, 5)


@pytest.mark.parametrize(
    "transactions",
    [
        history((0, TransactionState.ONGOING, (PARTITION,))),
        history((0, TransactionState.PREPARE_COMMIT, (OTHER,)), (2, TransactionState.PREPARE_COMMIT, (PARTITION,))),
        history((0, TransactionState.PREPARE_COMMIT, (PARTITION,)), producer_id=8),
    ],
)
def test_a_forgotten_decision_is_not_guessed(transactions):
    """There is no outcome if nothing is decided, or for another partition or producer."""
    assert transactions.outcome(PARTITION, 7, 0) is None


@pytest.mark.parametrize(
    ("last", "partitions", "active"),
    [
        (TransactionState.ONGOING, (PARTITION,), True),
        (TransactionState.PREPARE_COMMIT, (PARTITION,), True),
        (TransactionState.PREPARE_ABORT, (PARTITION,), True),
        (TransactionState.ONGOING, (OTHER,), False),
        (TransactionState.COMPLETE_COMMIT, (), False),
        (TransactionState.EMPTY, (), False),
        (TransactionState.DEAD, (), False),
    ],
)
def test_a_transaction_is_active_on_the_partitions_of_its_last_record(last, partitions, active):
    """Only the last record counts, and only while it is ongoing or prepared."""
    transactions = history((0, TransactionState.ONGOING, (PARTITION,)), (0, last, partitions))
    assert transactions.is_active(PARTITION, 60_000) == active


@pytest.mark.parametrize(
    ("last", "active"),
    [
        (TransactionState.ONGOING, True),
        (TransactionState.PREPARE_COMMIT, False),
        (TransactionState.PREPARE_ABORT, False),
        (TransactionState.PREPARE_EPOCH_FENCE, True),
    ],
)
def test_a_transaction_that_stays_decided_for_more_than_a_minute_hangs(last, active):
    """A coordinator ends what it has decided soon or never; a producer may take as long as its timeout lets it."""
    transactions = history((0, TransactionState.ONGOING, (PARTITION,)), (0, last, (PARTITION,)), updated_ms=1_000)
    assert transactions.is_active(PARTITION, 61_000)
    assert transactions.is_active(PARTITION, 61_001) == active


def test_a_recorded_transaction_without_two_of_its_markers_is_ended_as_decided():
    """The bytes of a PrepareCommit on three topics, the last record of its producer: two minutes later it hangs."""
    partitions = frozenset({TopicPartition(topic, 0) for topic in ("verdicts", "pages.unique", "dedup.offsets")})
    begun = TransactionRecord("s.decide.1", 1017, 3, TransactionState.ONGOING, partitions, 1_790_000_000_000)
    decided = TransactionRecord("s.decide.1", 1017, 3, TransactionState.PREPARE_COMMIT, partitions, 1_790_000_001_000)
    first, last = (decode(key("s.decide.1"), value(record, 1)) for record in (begun, decided))
    transactions = TransactionHistory(first)
    transactions.add(last)
    for partition in partitions:
        assert transactions.is_active(partition, 1_790_000_002_000)
        assert not transactions.is_active(partition, 1_790_000_121_000)
        assert transactions.outcome(partition, 1017, 3) == (TransactionOutcome.COMMIT, 3)
