"""Many pages with one fingerprint form a chain, not a crowded bucket."""

import numpy as np

from dedup_service.core.index import BlockIndex
from tests.core.index.streams import pairs_of


def test_identical_fingerprints_are_compared_once() -> None:
    """Ten thousand pages with one fingerprint are all found with one comparison, and no bucket is split."""
    index = BlockIndex(3, min_split=8)
    for sequence in range(10_000):
        index.insert(sequence, 42)
    before = index.work()
    assert index.probe(43).sequences.tolist() == list(range(10_000))
    assert (
        index.work().entries - before.entries <= 2 * 4
    )  # all four tables, twice: the first output has too little room
    statistics = index.statistics()
    assert (statistics.entries, statistics.fingerprints) == (10_000, 1)
    assert (statistics.largest_bucket, statistics.split_buckets) == (1, 0)


def test_identical_fingerprints_can_be_removed_in_any_order() -> None:
    """The first, last and middle of a chain can be removed; the last removal empties the bucket."""
    index = BlockIndex(2)
    index.insert_many(np.array([3, 1, 2, 5, 4]), np.full(5, 9, np.uint64))
    remaining = [1, 2, 3, 4, 5]
    for sequence in (5, 1, 3, 4, 2):
        index.remove(sequence, 9)
        remaining.remove(sequence)
        assert index.probe(9).sequences.tolist() == remaining
    assert index.statistics().fingerprints == 0
    index.insert(6, 9)
    assert pairs_of(index.probe(8)) == [(1, 6)]
