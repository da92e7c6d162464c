"""Tests for the finaliser of SplitMix64."""

import numpy as np

from dedup_service.core.splitmix import GAMMA, mix64


def test_the_published_generator_is_reproduced() -> None:
    """The first outputs of SplitMix64 with seed 0, from the authors' reference implementation."""
    states = np.arange(1, 4, dtype=np.uint64) * GAMMA
    assert mix64(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
