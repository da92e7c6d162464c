"""Tests for runs of offsets, against a set."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.offset_runs import OffsetRuns

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda pair: (pair[0], sum(pair))), max_size=30)


@given(RANGES)
def test_runs_are_a_set_of_offsets(ranges: list[tuple[int, int]]) -> None:
    """Of any ranges in any order; runs are apart, and come back from bytes."""
    runs, offsets = OffsetRuns(), set[int]()
    for start, end in ranges:
        new = [offset for run in runs.add(start, end) for offset in run]
        assert new == [offset for offset in range(start, end) if offset not in offsets]
        offsets.update(range(start, end))
    assert [offset for offset in range(70) if offset in runs] == sorted(offsets)
    assert all(one.stop < other.start for one, other in pairwise(runs))
    assert list(OffsetRuns(runs.pack())) == list(runs)


def test_a_million_offsets_in_a_row_are_one_run() -> None:
    """Each added behind the other, as a log has them."""
    runs = OffsetRuns()
    for offset in range(10**6):
        runs.add(offset, offset + 1)
    assert list(runs) == [range(10**6)]
    assert len(runs.pack()) == 16
