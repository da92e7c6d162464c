"""What the index of fingerprints refuses."""

import pytest

from dedup_service._native import block_bounds
from dedup_service.core.errors import ConfigurationError, StateError
from tests.core.index.block_index import BlockIndex


@pytest.mark.parametrize("radius", [8, 64])
def test_a_radius_outside_is_refused(radius: int) -> None:
    """A radius that four 16-bit blocks cannot search exactly is an error that names the range."""
    with pytest.raises(ConfigurationError, match=rf"radius {radius} is outside 0\.\.7"):
        BlockIndex(radius).probe(1)
    with pytest.raises(ConfigurationError, match=rf"radius {radius} is outside 0\.\.7"):
        block_bounds(radius)


def test_numbers_that_do_not_fit_are_refused() -> None:
    """Outside of 32 and 64 bits, or not as many of both; nothing is inserted then."""
    index = BlockIndex(3)
    for rows, stored in (([-1], [1]), ([1 << 32], [1]), ([1], [-1]), ([1], [1 << 64])):
        with pytest.raises(OverflowError):
            index.insert_many(rows, stored)
    with pytest.raises((ConfigurationError, StateError)):
        index.insert_many([1, 2], [1])
    assert len(index) == 0
