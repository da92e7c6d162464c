"""Positions past what is no record: committed once, and never before the offset that is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.steps.idle_offsets import IDLE_COMMIT_S, IdleOffsets

P0, P1 = TopicPartition("pages", 0), TopicPartition("pages", 1)

Positions = st.dictionaries(st.sampled_from([P0, P1]), st.integers(0, 9), max_size=2)


class Clock:
    """Monotonic time that a test moves."""

    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_step_is_due_some_seconds_after_its_last_transaction(clock: Clock) -> None:
    """Each transaction puts it off, whatever it was about."""
    offsets = IdleOffsets(clock)
    clock.now += IDLE_COMMIT_S - 1
    assert not offsets.due
    offsets.committed({P0: 3})
    clock.now += 1
    assert not offsets.due
    clock.now += IDLE_COMMIT_S - 1
    assert offsets.due


def test_only_what_has_moved_is_committed(clock: Clock) -> None:
    """A partition that is lost, or was never begun, is another member's."""
    offsets = IdleOffsets(clock)
    offsets.begin({P0: 4})
    assert offsets.moved({P0: 4, P1: 9}) == {}
    assert offsets.moved({P0: 6, P1: 9}) == {P0: 6}
    offsets.end({P0})
    assert offsets.moved({P0: 6}) == {}


@given(st.lists(Positions))
def test_offsets_go_forward_and_none_is_committed_twice(seen: list[dict[TopicPartition, int]]) -> None:
    """Whatever positions a consumer reports."""
    offsets, written = IdleOffsets(), {P0: 0, P1: 0}
    offsets.begin(written)
    for positions in seen:
        moved = offsets.moved(positions)
        assert all(position > written[partition] for partition, position in moved.items())
        written |= moved
        offsets.committed(moved)
        assert all(written[partition] >= position for partition, position in positions.items())
        assert offsets.moved(positions) == {}
