"""The coordinators' log, in its two formats."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.kafka.control.hanging_transactions import TransactionRecord, TransactionState, decode

PLACE = ("verdicts", 5)

topic_names = st.text("abcdefghijklmnopqrstuvwxyz._-", min_size=1, max_size=200)
states = st.builds(
    TransactionRecord,
    transactional_id=topic_names,
    producer_id=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**15 - 1),
    phase=st.sampled_from(TransactionState),
    places=st.frozensets(st.tuples(topic_names, st.integers(0, 2**31 - 1)), max_size=300),
)


def key(name: str) -> bytes:
    return struct.pack(">hh", 0, len(name)) + name.encode()


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def value(state: TransactionRecord, version: int) -> bytes:
    """As the message definitions of Apache Kafka have it."""
    head = struct.pack(">hqhib", version, state.producer_id, state.epoch, 5000, state.phase)
    by_topic: dict[str, list[int]] = {}
    for topic, number in state.places:
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


@given(state=states, version=st.sampled_from([0, 1]))
def test_a_state_is_read_as_it_was_written(state, version):
    """Both versions, with tags or without, whatever the names and however many partitions."""
    assert decode(key(state.transactional_id), value(state, version)) == state


@given(state=states.filter(lambda state: state.places), version=st.sampled_from([0, 1]), data=st.data())
def test_a_record_that_is_cut_off_is_refused(state, version, data):
    """Half a record is an error, never a state with fewer partitions."""
    whole = value(state, version)
    cut = data.draw(st.integers(2, len(whole) - len(struct.pack(">qq", 1, 2)) - 6))
    with pytest.raises(ValueError, match="cut off"):
        decode(key(state.transactional_id), whole[:cut])


def test_what_is_no_state_is_left_out():
    """A deletion, and a key of another kind."""
    state = TransactionRecord("a", 1, 0, TransactionState.ONGOING, frozenset({PLACE}))
    assert decode(key("a"), None) is None
    assert decode(b"\0\1" + key("a")[2:], value(state, 1)) is None


def test_a_version_to_come_is_refused():
    """A state that cannot be read might be that of a transaction which goes on."""
    state = TransactionRecord("a", 1, 0, TransactionState.ONGOING, frozenset({PLACE}))
    with pytest.raises(ValueError, match="version 2"):
        decode(key("a"), b"\0\2" + value(state, 1)[2:])
