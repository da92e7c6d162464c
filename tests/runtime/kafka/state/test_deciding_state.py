"""The deciding state as bytes."""

import msgspec
import pytest
from hypothesis import strategies as st

from dedup_service._native import Entry
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.entries import RemovedEntry
from dedup_service.core.decision.expiry import ExpiryState
from dedup_service.core.decision.guard_state import GuardState
from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.log_records import CorrectionRecord, LogBase, Policy
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.state.deciding_state import decode_deciding_state, encode_deciding_state
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.store.decider_state import UnreadableStateError

rules = st.sampled_from([rule_for(), rule_for("both"), rule_for("words"), MatchRule(combined=Combined(800))])
layouts = st.builds(IndexLayout, slots=st.sampled_from([1, 8, 64]), window=st.integers(1, 9999))
keeps = st.sampled_from([KEEP_ALL, Keep(max_pages=3), Keep(max_age_minutes=60), Keep.parse("9,1d")])
bases = st.sampled_from([(), (LogBase("corpus", "a-journal", "5f", 0, 70, 60), LogBase("b", "x", "", 70, 9, 0))])
policies = st.none() | st.builds(
    Policy, rules, st.sampled_from(Action), st.text(), layouts, keeps, keeps, bases, st.text()
)
words = st.integers(0, (1 << 64) - 1)
entries = st.builds(
    Entry,
    st.integers(0, 1 << 40),
    st.none() | words,
    st.none() | words,
    st.none() | words,
    words,
    st.booleans(),
    st.binary(max_size=9),
    st.none() | words,
    st.integers(0, (1 << 32) - 1),
    st.integers(0, 1 << 40),
    st.binary(max_size=9),
    st.booleans(),
)
deciders = st.builds(
    DeciderState,
    ordinal=st.integers(0, 1 << 40),
    removed=st.lists(st.builds(RemovedEntry, st.integers(0, 1 << 40), entries), max_size=3).map(tuple),
    host_text=st.binary(),
    guards=st.none() | st.builds(GuardState),
    expiry=st.builds(ExpiryState),
)
partitions = st.tuples(st.text(), st.integers(0, 9))
replica_states = st.builds(
    ReplicaState,
    sequence=st.integers(-1, 1 << 62),
    log=st.none() | st.text(),
    policy=policies,
    seen=st.dictionaries(partitions, st.binary()),
    counts=st.dictionaries(st.text(), st.integers(0, 1 << 40)),
    corrections=st.lists(st.builds(CorrectionRecord)).map(tuple),
    decider=deciders,
)


@pytest.mark.parametrize("decider", [b"", b"rubbish", None])
def test_a_state_without_that_of_its_decider_is_refused(decider: bytes | None) -> None:
    """Entries without cells, window and host text would give other verdicts: there is no default for them."""
    value = msgspec.msgpack.decode(encode_deciding_state(ReplicaState(sequence=7), PendingOutcomes()))
    value["state"]["decider"] = decider
    if decider is None:
        del value["state"]["decider"]
    with pytest.raises(UnreadableStateError):
        decode_deciding_state(msgspec.msgpack.encode(value))


@pytest.mark.parametrize("value", [b"", b"rubbish", msgspec.msgpack.encode({"version": 8}), b"\x80"])
def test_other_bytes_are_refused(value: bytes) -> None:
    """Bytes that are not a deciding state raise one error, whatever is wrong with them."""
    with pytest.raises(UnreadableStateError):
        decode_deciding_state(value)


@pytest.mark.parametrize("version", [1, 7, 9])
def test_another_version_is_named(version: int) -> None:
    """It is refused, naming both versions, before its content is decoded."""
    with pytest.raises(UnreadableStateError, match=f"version {version}, this twinsieve reads 8"):
        decode_deciding_state(msgspec.msgpack.encode({"version": version, "state": "otherwise"}))
