"""What the index of fingerprints refuses."""

from array import array

import pytest

from dedup_service._native import HammingIndex, block_bounds
from dedup_service.core.errors import ConfigurationError, StateError
from tests.core.index.block_index import BlockIndex


@pytest.mark.parametrize("radius", [8, 64])
def test_a_radius_outside_is_refused(radius: int) -> None:
    """A radius that four 16-bit blocks cannot search exactly is an error that names the range."""
    with pytest.raises(ConfigurationError, match=rf"radius {radius} is outside 0\.\.7"):
        BlockIndex(radius).probe(1)
    with pytest.raises(ConfigurationError, match=rf"radius {radius} is outside 0\.\.7"):
        block_bounds(radius)


def test_buffers_that_do_not_fit_are_refused() -> None:
    """Of other types, or of different lengths; nothing is inserted then."""
    index = HammingIndex()
    for rows, stored in ((array("q", [1]), array("Q", [1])), (array("I", [1]), array("q", [1]))):
        with pytest.raises(BufferError):
            index.insert(rows, stored)
    with pytest.raises((ConfigurationError, StateError)):
        index.insert(array("I", [1, 2]), array("Q", [1]))
    assert len(index) == 0
