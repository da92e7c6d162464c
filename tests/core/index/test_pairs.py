"""Pairs among the fingerprints of a batch, against a comparison of each with each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.features.simhash import hamming
from dedup_service.core.index import pairs_within

near_each_other = st.lists(st.integers(0, 255), max_size=90)


@given(near_each_other, st.integers(0, 7))
def test_all_pairs_are_found_in_order(values: list[int], radius: int) -> None:
    """Every pair within the radius is returned once, later index first, in order."""
    later, earlier = pairs_within(np.array(values, np.uint64), radius)
    expected = [(a, b) for a in range(len(values)) for b in range(a) if hamming(values[a], values[b]) <= radius]
    assert list(zip(later.tolist(), earlier.tolist(), strict=True)) == expected


def test_more_pairs_than_the_first_output_has_room_for() -> None:
    """A batch of one repeated fingerprint gives all its pairs."""
    later, earlier = pairs_within(np.full(200, 1 << 63, np.uint64), 0)
    assert (len(later), len(set(zip(later.tolist(), earlier.tolist(), strict=True)))) == (19_900, 19_900)
