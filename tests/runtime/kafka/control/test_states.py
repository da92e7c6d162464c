"""Records of the transaction log, in its two formats."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.control.hanging_transactions import TransactionRecord, TransactionState, decode

PARTITION = TopicPartition("verdicts", 5)

topic_names = st.text("abcdefghijklmnopqrstuvwxyz._-", min_size=1, max_size=200)
records = st.builds(
    TransactionRecord,
    transactional_id=topic_names,
    producer_id=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**15 - 1),
    state=st.sampled_from(TransactionState),
    partitions=st.frozensets(st.builds(TopicPartition, topic_names, st.integers(0, 2**31 - 1)), max_size=300),
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
    end = struct.pack(">qq", 1, 2)
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
    """A deletion, and a key of another kind."""
    record = TransactionRecord("a", 1, 0, TransactionState.ONGOING, frozenset({PARTITION}))
    assert decode(key("a"), None) is None
    assert decode(b"\0\1" + key("a")[2:], value(record, 1)) is None


def test_an_unknown_version_is_refused():
    """A record that cannot be read might be that of an active transaction."""
    record = TransactionRecord("a", 1, 0, TransactionState.ONGOING, frozenset({PARTITION}))
    with pytest.raises(ValueError, match="version 2"):
        decode(key("a"), b"\0\2" + value(record, 1)[2:])
