"""What a deciding step remembers, as bytes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.guard_tracker import GuardState
from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.log_records import CorrectionRecord, Policy, Source
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.state.local_state import (
    UnreadableDecidingStateError,
    decode_deciding_state,
    encode_deciding_state,
    outcomes_of,
)
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes

rules = st.sampled_from([rule_for("both"), rule_for("words"), MatchRule(combined=Combined(800))])
policies = st.none() | st.builds(Policy, rules, st.sampled_from(Action), st.text())
partitions = st.tuples(st.text(), st.integers(0, 9))
memories = st.builds(
    ReplicaState,
    sequence=st.integers(-1, 1 << 62),
    log=st.none() | st.text(),
    policy=policies,
    seen=st.dictionaries(partitions, st.binary()),
    counts=st.dictionaries(st.text(), st.integers(0, 1 << 40)),
    corrections=st.lists(st.builds(CorrectionRecord)).map(tuple),
    watch=st.none() | st.builds(GuardState),
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
    memory: ReplicaState, waiting: dict[Source, PendingOutcome], written: dict[tuple[str, int], int]
) -> None:
    """The replica's part, the outcomes that wait and what is written come back as they were."""
    outcomes = PendingOutcomes(waiting, written)
    again = decode_deciding_state(encode_deciding_state(memory, outcomes))
    assert again.replica == memory
    assert dict(outcomes_of(again).items()) == dict(outcomes.items())
    assert outcomes_of(again).written == outcomes.written


def test_memory_from_before_guards_is_read() -> None:
    """What it has not seen has its default."""
    value = msgspec.msgpack.decode(encode_deciding_state(ReplicaState(sequence=7), PendingOutcomes()))
    del value["memory"]["replica"]["watch"]
    assert decode_deciding_state(msgspec.msgpack.encode(value)).replica == ReplicaState(sequence=7)


@pytest.mark.parametrize("value", [b"", b"rubbish", msgspec.msgpack.encode({"version": 1}), b"\x80"])
def test_other_bytes_are_refused(value: bytes) -> None:
    """Bytes that are no memory are one error, whatever is wrong with them."""
    with pytest.raises(UnreadableDecidingStateError):
        decode_deciding_state(value)


def test_a_newer_version_is_named() -> None:
    """Memory of a later twinsieve is refused with both versions, before its content is looked at."""
    with pytest.raises(UnreadableDecidingStateError, match="version 9, this twinsieve reads 1"):
        decode_deciding_state(msgspec.msgpack.encode({"version": 9, "memory": "otherwise"}))
