"""What a deciding step remembers, as bytes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.changelog import CorrectionRecord, Policy, Source
from dedup_service.core.combined import Combined
from dedup_service.core.profiles import rule_for
from dedup_service.core.replica import ReplicaMemory
from dedup_service.core.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.core.watch import WatchMemory
from dedup_service.runtime.kafka.state.memory import UnreadableMemoryError, decode_memory, encode_memory, outcomes_of
from dedup_service.runtime.kafka.steps.outcomes import Outcomes, PendingOutcome

rules = st.sampled_from([rule_for("both"), rule_for("words"), MatchRule(combined=Combined(800))])
policies = st.none() | st.builds(Policy, rules, st.sampled_from(Action), st.text())
partitions = st.tuples(st.text(), st.integers(0, 9))
memories = st.builds(
    ReplicaMemory,
    sequence=st.integers(-1, 1 << 62),
    log=st.none() | st.text(),
    policy=policies,
    seen=st.dictionaries(partitions, st.binary()),
    counts=st.dictionaries(st.text(), st.integers(0, 1 << 40)),
    corrections=st.lists(st.builds(CorrectionRecord)).map(tuple),
    watch=st.none() | st.builds(WatchMemory),
)
pending = st.builds(
    PendingOutcome,
    st.integers(0, 1 << 62),
    st.none() | st.text(),
    st.binary(),
    st.binary(),
    st.none() | st.text(),
    st.booleans(),
)
sources = st.builds(Source, st.text(), st.integers(0, 9), st.integers(0, 1 << 62))


@given(memories, st.dictionaries(sources, pending), st.dictionaries(partitions, st.integers(0, 1 << 62)))
def test_memory_survives_as_bytes(
    memory: ReplicaMemory, waiting: dict[Source, PendingOutcome], written: dict[tuple[str, int], int]
) -> None:
    """The replica's part, the outcomes that wait and what is written come back as they were."""
    outcomes = Outcomes(waiting, written)
    again = decode_memory(encode_memory(memory, outcomes))
    assert again.replica == memory
    assert dict(outcomes_of(again).items()) == dict(outcomes.items())
    assert outcomes_of(again).written == outcomes.written


def test_memory_from_before_guards_is_read() -> None:
    """What it has not seen has its default."""
    value = msgspec.msgpack.decode(encode_memory(ReplicaMemory(sequence=7), Outcomes()))
    del value["memory"]["replica"]["watch"]
    assert decode_memory(msgspec.msgpack.encode(value)).replica == ReplicaMemory(sequence=7)


@pytest.mark.parametrize("value", [b"", b"rubbish", msgspec.msgpack.encode({"version": 1}), b"\x80"])
def test_other_bytes_are_refused(value: bytes) -> None:
    """Bytes that are no memory are one error, whatever is wrong with them."""
    with pytest.raises(UnreadableMemoryError):
        decode_memory(value)


def test_a_newer_version_is_named() -> None:
    """Memory of a later twinsieve is refused with both versions, before its content is looked at."""
    with pytest.raises(UnreadableMemoryError, match="version 9, this twinsieve reads 1"):
        decode_memory(msgspec.msgpack.encode({"version": 9, "memory": "otherwise"}))
