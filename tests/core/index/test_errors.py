"""Arguments that the index refuses, and its messages."""

import numpy as np
import pytest

from dedup_service.core.errors import ConfigurationError, StateError, TwinsieveError
from dedup_service.core.index.block_index import BlockIndex


@pytest.mark.parametrize("radius", [-1, 8, 64])
def test_radius_outside_is_refused(radius: int) -> None:
    """A radius that four 16-bit blocks cannot search exactly is an error that names the range."""
    with pytest.raises(ConfigurationError, match=rf"radius {radius} is outside 0\.\.7"):
        BlockIndex(radius)


@pytest.mark.parametrize("fingerprint", [-1, 1 << 64])
def test_fingerprints_outside_64_bits_are_refused(fingerprint: int) -> None:
    """A negative or a 65-bit fingerprint is refused by every call, and changes nothing."""
    index = BlockIndex(3)
    with pytest.raises(ConfigurationError, match=f"fingerprint {fingerprint} is outside"):
        index.insert(1, fingerprint)
    with pytest.raises(ConfigurationError, match="is outside"):
        index.probe(fingerprint)
    with pytest.raises(ConfigurationError, match="is outside"):
        index.remove(1, fingerprint)
    assert len(index) == 0


@pytest.mark.parametrize(
    ("sequences", "stored", "message"),
    [
        (np.array([1, 2]), np.array([1], np.uint64), "shape"),
        (np.array([1]), np.array([1], np.int64), "give int64 and uint64"),
        (np.array([-1]), np.array([1], np.uint64), "row -1 is outside"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(sequences: np.ndarray, stored: np.ndarray, message: str) -> None:
    """Bulk insertion refuses arrays of different lengths or other types, and negative sequences."""
    with pytest.raises(ConfigurationError, match=message):
        BlockIndex(3).insert_many(sequences, stored)


def test_errors_have_one_root_and_are_not_retried() -> None:
    """Errors of the index can be caught as TwinsieveError and are not retryable."""
    for error in (ConfigurationError, StateError):
        assert issubclass(error, TwinsieveError)
        assert not error.retryable
