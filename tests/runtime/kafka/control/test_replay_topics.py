"""Sequences of the old log, in the new one."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.kafka.control.replay_topics import NewSequences


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=60), st.integers(0, 1 << 40))
def test_sequences_are_those_of_a_table(steps: list[tuple[int, int]], start: int) -> None:
    """Records that were left out, and the markers of transactions in both logs, leave gaps of any size."""
    sequences, table = NewSequences(), {}
    old, new = start, 0
    for old_step, new_step in steps:
        old, new = old + old_step, new + new_step
        sequences.add(old, new)
        table[old] = new
    assert {at: sequences.get(at) for at in range(start, old + 2)} == {
        at: table.get(at) for at in range(start, old + 2)
    }
