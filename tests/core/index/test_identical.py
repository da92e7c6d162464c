"""Many pages with one fingerprint form a chain, not a crowded bucket."""

from hypothesis import given
from hypothesis import strategies as st

from tests.core.index.block_index import BlockIndex


def test_identical_fingerprints_are_compared_once() -> None:
    """Ten thousand pages with one fingerprint are all found with one comparison, and no bucket is split."""
    index = BlockIndex(3)
    for sequence in range(10_000):
        index.insert(sequence, 42)
    before = index.work()
    assert index.probe(43) == [(1, row) for row in range(10_000)]
    assert index.work().entries - before.entries <= 4
    statistics = index.statistics()
    assert (statistics.entries, statistics.fingerprints) == (10_000, 1)
    assert (statistics.largest_bucket, statistics.split_buckets) == (1, 0)


def test_identical_fingerprints_can_be_removed_in_any_order() -> None:
    """The first, last and middle of a chain can be removed; the last removal empties the bucket."""
    index = BlockIndex(2)
    index.insert_many([3, 1, 2, 5, 4], [9] * 5)
    remaining = [1, 2, 3, 4, 5]
    for sequence in (5, 1, 3, 4, 2):
        index.remove(sequence, 9)
        remaining.remove(sequence)
        assert index.probe(9) == [(0, row) for row in remaining]
    assert index.statistics().fingerprints == 0
    index.insert(6, 9)
    assert index.probe(8) == [(1, 6)]


@given(
    sequences=st.lists(st.integers(0, 2**31 - 2), unique=True, min_size=1, max_size=200),
    order=st.randoms(),
    most=st.integers(1, 9),
)
def test_the_smallest_sequences_of_one_fingerprint(sequences: list[int], order: object, most: int) -> None:
    """A limit returns the smallest sequences of each fingerprint, after insertions and removals in any order."""
    index = BlockIndex(3)
    for sequence in sequences:
        index.insert(2 * sequence, 42)
        index.insert(2 * sequence + 1, 43)
    order.shuffle(sequences)  # type: ignore[attr-defined]
    for sequence in sequences[::2]:
        index.remove(2 * sequence, 42)
    (found,) = index.probe_many([42], most_identical=most)
    kept = sorted(sequences[1::2])[:most]
    expected = [(0, 2 * row) for row in kept] + [(1, 2 * row + 1) for row in sorted(sequences)[:most]]
    assert found == expected
