"""Sets of offsets, against sets of Python."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.seen_records import OffsetRuns

OFFSETS = st.integers(0, 30)


@given(st.lists(st.tuples(OFFSETS, OFFSETS)))
def test_ranges_are_added_to_a_set(ranges: list[tuple[int, int]]) -> None:
    """Whatever is added in whatever order, the new offsets and all offsets are those of a set, also when packed."""
    offsets, expected = OffsetRuns(), set[int]()
    for first, end in ranges:
        missing = sorted(set(range(first, end)) - expected)
        if end == first + 1:
            assert offsets.add(first) == bool(missing)
        else:
            assert [offset for part in offsets.add_range(first, end) for offset in part] == missing
        expected.update(missing)
        offsets = OffsetRuns(offsets.pack())
        assert [offset for offset in range(32) if offset in offsets] == sorted(expected)
    assert len(offsets.pack()) == 16 * sum(offset - 1 not in expected for offset in expected)


def test_offsets_of_transactions_are_runs() -> None:
    """There is a gap after each transaction, some records come late, and the last offset there can be is one, too."""
    offsets = OffsetRuns()
    for first in range(0, 100_000, 4):
        for offset in (first + 1, first, first + 2):
            assert offsets.add(offset)
    assert len(offsets.pack()) == 400_000
    assert offsets.add_range(0, 1 << 62)[0] == range(3, 4)
    assert len(offsets.pack()) == 16
    assert offsets.add((1 << 63) - 1)
    assert (1 << 63) - 1 in OffsetRuns(offsets.pack())
