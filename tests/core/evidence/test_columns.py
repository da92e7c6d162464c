"""The bound on the bits in which sketches differ says what the estimated similarity says."""

import pytest

from dedup_service.core.evidence.columns import SKETCH_WORDS, most_bits_apart
from dedup_service.core.evidence.sketch import SKETCH_BYTES


@pytest.mark.parametrize("min_jaccard", [-1.0, 0.0, 1e-300, 0.15, 0.3, 1 / 3, 0.5, 0.85, 1 - 1e-16, 1.0, 1.0001, 2.0])
def test_the_bound_on_bits_is_that_on_the_similarity(min_jaccard: float) -> None:
    """Sketches that differ in any number of bits are similar enough if and only if that is within the bound."""
    bits = 8 * SKETCH_BYTES
    assert bits == 64 * SKETCH_WORDS
    most = most_bits_apart(min_jaccard)
    for differing in range(bits + 1):
        assert (differing <= most) == (max(0.0, 1.0 - 2.0 * differing / bits) >= min_jaccard), differing
