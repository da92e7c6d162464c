"""Tests for the finaliser of SplitMix64."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.kernels import kernel
from dedup_service.core.splitmix import GAMMA, mix64, mix64_in_kernel, splitmix64


@kernel
def mixed_one_by_one(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return uint64[n], mixed in a kernel."""
    mixed = np.empty_like(values)
    for i in range(len(values)):
        mixed[i] = mix64_in_kernel(values[i])
    return mixed


def test_mixing_loses_nothing() -> None:
    """The finaliser maps distinct values to distinct values."""
    values = np.arange(10_000, dtype=np.uint64)
    assert len(np.unique(mix64(values))) == len(values)


def test_the_published_generator_is_reproduced() -> None:
    """The first outputs of SplitMix64 with seed 0, from the authors' reference implementation."""
    states = np.arange(1, 4, dtype=np.uint64) * GAMMA
    assert mix64(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_kernels_and_arrays_mix_alike(values: list[int]) -> None:
    """The form for kernels and the form for arrays give the same values."""
    array = np.array(values, dtype=np.uint64)
    assert mixed_one_by_one(array).tolist() == mix64(array).tolist()


@given(st.integers(0, (1 << 64) - 1))
def test_a_plain_integer_is_mixed_as_an_array_is(state: int) -> None:
    """`splitmix64` of a state is the finaliser of the state after it."""
    assert splitmix64(state) == int(mix64(np.array([state], np.uint64) + GAMMA)[0])
