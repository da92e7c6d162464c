"""Many pages of one fingerprint: a chain, not a crowd."""

import numpy as np

from dedup_service.core.index import BlockIndex
from tests.core.index.streams import pairs_of


def test_identical_fingerprints_are_compared_once() -> None:
    """Ten thousand pages of one fingerprint are all found, at the cost of one comparison, and split nothing."""
    index = BlockIndex(3, min_split=8)
    for sequence in range(10_000):
        index.insert(sequence, 42)
    before = index.work()
    assert index.probe(43).sequences.tolist() == list(range(10_000))
    assert index.work().entries - before.entries <= 2 * 4  # all four tables, and a second time for lack of room
    statistics = index.statistics()
    assert (statistics.entries, statistics.fingerprints) == (10_000, 1)
    assert (statistics.largest_bucket, statistics.split_buckets) == (1, 0)


def test_identical_fingerprints_leave_in_any_order() -> None:
    """First, last and middle of a chain can be removed; the rest stays, and the last takes the bucket entry along."""
    index = BlockIndex(2)
    index.insert_many(np.array([3, 1, 2, 5, 4]), np.full(5, 9, np.uint64))
    left = [1, 2, 3, 4, 5]
    for sequence in (5, 1, 3, 4, 2):
        index.remove(sequence, 9)
        left.remove(sequence)
        assert index.probe(9).sequences.tolist() == left
    assert index.statistics().fingerprints == 0
    index.insert(6, 9)
    assert pairs_of(index.probe(8)) == [(1, 6)]
