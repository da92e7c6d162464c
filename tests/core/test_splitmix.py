"""Tests for SplitMix64."""

from dedup_service.core.splitmix import GAMMA, splitmix64


def test_the_published_generator_is_reproduced() -> None:
    """The first outputs of SplitMix64 with seed 0, from the authors' reference implementation."""
    assert [splitmix64(number * GAMMA) for number in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]
