"""The rest of a decider's state as bytes."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import Entry
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.entries import RemovedEntry
from dedup_service.runtime.store.decider_state import decode_state, encode_state

UNSIGNED = st.integers(0, (1 << 64) - 1)
MAYBE = st.none() | UNSIGNED
unsettled = st.builds(
    Entry,
    st.integers(0, 1 << 40),
    MAYBE,
    MAYBE,
    MAYBE,
    UNSIGNED,
    indexed=st.booleans(),
    evidence=st.binary(max_size=9),
    text_hash=MAYBE,
    host=st.integers(0, (1 << 32) - 1),
    ordinal=st.integers(0, 1 << 40),
    keys=st.binary(max_size=9),
)
entries = unsettled | st.builds(
    Entry, st.integers(0, 99), MAYBE, MAYBE, MAYBE, UNSIGNED, settled=st.just(True), row=st.integers(0, 1 << 31)
)
"""A settled entry has a row in the store, and no other one has."""


@given(st.lists(entries, max_size=9), st.lists(st.tuples(st.integers(0, 1 << 40), entries), max_size=9))
def test_entries_survive_a_commit(young: list[Entry], removed: list[tuple[int, Entry]]) -> None:
    """Every field is the same afterwards, absent values and the highest bit included; removed ones keep their rows."""
    state = DeciderState(young=tuple(young), removed=tuple(RemovedEntry(*one) for one in removed))
    again = decode_state(encode_state(state))
    assert again == state
    assert [one.entry.row for one in again.removed] == [entry.row for _, entry in removed]
