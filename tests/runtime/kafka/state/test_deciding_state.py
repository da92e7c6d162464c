"""The deciding state as bytes."""

from copy import deepcopy
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.candidates import RemovedEntry
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import ROW as ENTRY_ROW
from dedup_service.core.decision.expiry import ExpiryState
from dedup_service.core.decision.guard_tracker import GuardState
from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.log_records import CorrectionRecord, LogBase, Policy, Source
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.state.deciding_state import (
    UnreadableDecidingStateError,
    decode_deciding_state,
    encode_deciding_state,
    pending_outcomes_of,
)
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes

rules = st.sampled_from([rule_for("both"), rule_for("words"), MatchRule(combined=Combined(800))])
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
pending_outcomes = st.builds(
    PendingOutcome,
    st.integers(0, 1 << 62),
    st.none() | st.text(),
    st.binary(),
    st.binary(),
    st.none() | st.text(),
    st.booleans(),
)
sources = st.builds(Source, st.text(), st.integers(0, 9), st.integers(0, 1 << 62))


@given(replica_states, st.dictionaries(sources, pending_outcomes), st.dictionaries(partitions, st.integers(0, 1 << 62)))
def test_a_state_survives_as_bytes(
    state: ReplicaState, pending: dict[Source, PendingOutcome], written: dict[tuple[str, int], int]
) -> None:
    """The replica's state, the pending outcomes and the written offsets are decoded as they were encoded."""
    outcomes = PendingOutcomes(pending, written)
    decoded = decode_deciding_state(encode_deciding_state(state, outcomes))
    assert decoded.replica == state
    assert dict(pending_outcomes_of(decoded).items()) == dict(outcomes.items())
    assert pending_outcomes_of(decoded).written == outcomes.written


STATE = ReplicaState(
    sequence=9,
    log="a-log",
    policy=Policy(
        MatchRule(
            (DistanceBound(body=7),),
            keys=True,
            verified=(MatchRow(name="row", jaccard=0.5, min_letters=160),),
            guards=Guards(max_pages=5, max_hosts=6, max_titles=7, surge_percent=8),
        ),
        Action.DROP,
        "space",
        IndexLayout(slots=2, window=3),
        Keep(max_pages=10),
        Keep(max_pages=20),
        (LogBase("corpus", "a-journal", "5f", 0, 70, 60),),
        "longest",
    ),
    policy_sequence=5,
    seen={("pages", 0): b"s"},
    counts={"unique": 3},
    corrections=(CorrectionRecord("u:1", "u:2", duplicate=False, reason="two"),),
    decider=DeciderState(
        ordinal=6,
        removed=(
            RemovedEntry(5, Entry(7, 1, None, 2, 3, evidence=b"e", ordinal=4, keys=b"keys", settled=True, row=11)),
        ),
        host_text=b"h",
        guards=GuardState(groups=b"g", decided=1, recent=b"r", before=2, learned=3, usual=4),
        expiry=ExpiryState(up_to=3, times=b"t", by_count=2, by_age=1),
    ),
)
PENDING = {Source("pages", 0, 4): PendingOutcome(9, "duplicate", b"{}", b"k", "u:2", drop=True)}
BOUNDS = (
    "containment",
    "title",
    "title_on_host",
    "sentences",
    "numbers",
    "missing_numbers",
    "swapped_numbers",
    "figures",
    "alphabetic",
    "unspaced",
    "length_ratio",
    "metadata",
    "combined",
)
ROW = {"name": "row", "least_letters": 160, "jaccard": 0.5, **dict.fromkeys(BOUNDS)}
VERSION_5: dict[str, Any] = {
    "version": 5,
    "memory": {
        "replica": {
            "sequence": 9,
            "log": "a-log",
            "policy": {
                "rule": {
                    "conditions": [{"words": None, "body": 7}],
                    "combined": None,
                    "keys": True,
                    "verified": [ROW | {"words_distance": None, "body_distance": None}],
                    "guards": {"most_pages": 5, "most_hosts": 6, "most_titles": 7, "jump_percent": 8},
                },
                "action": "drop",
                "space_id": "space",
                "layout": {"slots": 2, "window": 3},
                "keep": {"max_pages": 10, "max_age_minutes": None},
                "lowered": {"max_pages": 20, "max_age_minutes": None},
                "bases": [
                    {"name": "corpus", "log": "a-journal", "commit": "5f", "after": 0, "records": 70, "entries": 60}
                ],
                "canonical": "longest",
            },
            "policy_sequence": 5,
            "seen": {("pages", 0): b"s"},
            "counts": {"unique": 3},
            "corrections": [{"url": "u:1", "of": "u:2", "duplicate": False, "reason": "two"}],
        },
        "pending": [
            [
                {"topic": "pages", "partition": 0, "offset": 4},
                {
                    "sequence": 9,
                    "kind": "duplicate",
                    "value": b"{}",
                    "key": b"k",
                    "of_url": "u:2",
                    "drop": True,
                    "end": None,
                },
            ]
        ],
        "written": {("pages", 0): 4},
        "decider": msgspec.msgpack.encode(
            {
                "version": 2,
                "ordinal": 6,
                "removed_at": [5],
                "removed_rows": [11],
                "removed": np.array([(7, 1, 0, 2, 0, 3, 0, 4, 5, 4, 1 + 4 + 8 + 32)], ENTRY_ROW).tobytes(),
                "removed_evidence": b"ekeys",
                "young": b"",
                "young_evidence": b"",
                "host_text": b"h",
                "guards": {"groups": b"g", "decided": 1, "recent": b"r", "before": 2, "learned": 3, "usual": 4},
                "expiry": {"up_to": 3, "times": b"t", "by_count": 2, "by_age": 1},
            }
        ),
    },
}


def test_version_5_stays_as_it_is() -> None:
    """Fields keep the names that they were first written with, whatever the classes call them now."""
    value = msgspec.msgpack.encode(VERSION_5)
    assert encode_deciding_state(STATE, PendingOutcomes(PENDING, {("pages", 0): 4})) == value
    decoded = decode_deciding_state(value)
    assert (decoded.replica, dict(decoded.pending), decoded.written) == (STATE, PENDING, {("pages", 0): 4})


def test_a_state_without_later_fields_is_read() -> None:
    """A missing field has its default."""
    value = msgspec.msgpack.decode(encode_deciding_state(ReplicaState(sequence=7), PendingOutcomes()))
    del value["memory"]["replica"]["corrections"]
    assert decode_deciding_state(msgspec.msgpack.encode(value)).replica == ReplicaState(sequence=7)


def test_a_state_from_before_expiry_keeps_all() -> None:
    """Neither its policy has bounds, nor its decider anything that expired."""
    value = deepcopy(VERSION_5)
    decider = msgspec.msgpack.decode(value["memory"]["decider"])
    policy = value["memory"]["replica"]["policy"]
    del decider["expiry"], policy["keep"], policy["lowered"], policy["bases"], policy["canonical"]
    value["memory"]["decider"] = msgspec.msgpack.encode(decider)
    replica = decode_deciding_state(msgspec.msgpack.encode(value)).replica
    assert replica.policy is not None
    assert (replica.policy.keep, replica.policy.lowered) == (KEEP_ALL, KEEP_ALL)
    assert (replica.policy.bases, replica.policy.canonical) == ((), "earliest")
    assert replica.decider.expiry == ExpiryState()


@pytest.mark.parametrize("decider", [b"", b"rubbish", msgspec.msgpack.encode({"version": 2}), None])
def test_a_state_without_that_of_its_decider_is_refused(decider: bytes | None) -> None:
    """Entries without cells, window and host text would give other verdicts: there is no default for them."""
    value = msgspec.msgpack.decode(encode_deciding_state(ReplicaState(sequence=7), PendingOutcomes()))
    value["memory"]["decider"] = decider
    if decider is None:
        del value["memory"]["decider"]
    with pytest.raises(UnreadableDecidingStateError):
        decode_deciding_state(msgspec.msgpack.encode(value))


@pytest.mark.parametrize("value", [b"", b"rubbish", msgspec.msgpack.encode({"version": 5}), b"\x80"])
def test_other_bytes_are_refused(value: bytes) -> None:
    """Bytes that are not a deciding state raise one error, whatever is wrong with them."""
    with pytest.raises(UnreadableDecidingStateError):
        decode_deciding_state(value)


@pytest.mark.parametrize("version", [1, 4, 9])
def test_another_version_is_named(version: int) -> None:
    """It is refused, naming both versions, before its content is decoded."""
    with pytest.raises(UnreadableDecidingStateError, match=f"version {version}, this twinsieve reads 5"):
        decode_deciding_state(msgspec.msgpack.encode({"version": version, "memory": "otherwise"}))
