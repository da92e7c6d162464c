"""Tests for sketches: the estimate differs from the exact similarity by no more than the stated error."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.sketch import BINS, SKETCH_BYTES, sketch
from dedup_service.core.splitmix import GAMMA, mix64
from tests.oracle.similarity import estimated_jaccard

SIZES = [3, 40, 200, 900, 3000, 9000]


def hashes(count: int, seed: int) -> npt.NDArray[np.uint64]:
    """Return distinct hashes."""
    return np.unique(np.random.default_rng(seed).integers(1, 1 << 63, size=count, dtype=np.uint64))


def pair(size: int, jaccard: float, seed: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], float]:
    """Return two sets of `size` with about this similarity, and their exact similarity."""
    common = round(2 * size * jaccard / (1 + jaccard))
    drawn = hashes(2 * size, seed)
    one, other = drawn[:size], np.concatenate([drawn[:common], drawn[size : 2 * size - common]])
    return one, other, len(np.intersect1d(one, other)) / len(np.union1d(one, other))


@pytest.mark.parametrize("size", SIZES[1:])
def test_the_error_of_the_estimate_is_as_stated(size: int) -> None:
    """There is no bias, and the standard error is at most .025, whatever the size of the sets."""
    errors = []
    for seed in range(60):
        one, other, exact = pair(size, 0.2 + 0.7 * seed / 60, seed)
        errors.append(estimated_jaccard(sketch(one).tobytes(), sketch(other).tobytes()) - exact)
    assert abs(np.mean(errors)) < 0.01
    assert np.std(errors) < 0.025


@pytest.mark.parametrize("size", SIZES)
def test_equal_sets_have_equal_sketches_in_any_order(size: int) -> None:
    """The order of the shingles does not matter, and the estimate is exactly 1."""
    one = hashes(size, 1)
    other = np.random.default_rng(2).permutation(one)
    assert sketch(one).tobytes() == sketch(other).tobytes()
    assert estimated_jaccard(sketch(one).tobytes(), sketch(other).tobytes()) == 1.0


def test_sets_that_share_nothing_are_estimated_near_0() -> None:
    """Half of the bits are equal by chance."""
    one, other = hashes(500, 3), hashes(500, 4)
    assert estimated_jaccard(sketch(one).tobytes(), sketch(other).tobytes()) < 0.1


def test_no_shingles_give_an_empty_sketch() -> None:
    """All bits are 0."""
    bits = sketch(np.empty(0, dtype=np.uint64))
    assert (len(bits), bits.any()) == (SKETCH_BYTES, False)


@given(st.sets(st.integers(1, (1 << 64) - 1), min_size=1, max_size=6))
def test_few_shingles_fill_every_bin(values: set[int]) -> None:
    """Even a single shingle fills them; about half of the bits are set."""
    bits = sketch(np.array(sorted(values), dtype=np.uint64))
    assert BINS // 3 < int.from_bytes(bits.tobytes(), "little").bit_count() < 2 * BINS // 3


def sketch_by_definition(values: npt.NDArray[np.uint64]) -> int:
    """Return the bits of a sketch, by loops: rounds of hashes over all bins, then one round for each empty bin."""
    bins: dict[int, int] = {}
    for number in range(1, 2 * BINS + 1):
        hashes = mix64(values + np.uint64(number * int(GAMMA) % (1 << 64))).tolist()
        if number <= BINS:
            reached: dict[int, int] = {}
            for value in hashes:
                reached[value >> 53] = min(value, reached.get(value >> 53, value))
            bins = reached | bins
        else:
            bins.setdefault(number - BINS - 1, min(hashes))
        if len(bins) == BINS:
            break
    return sum((value & 1) << place for place, value in bins.items())


@pytest.mark.parametrize("size", [1, 2, 7, 100, 600, 20_000])
def test_a_bin_has_the_smallest_value_of_the_first_round_that_reaches_it(size: int) -> None:
    """The compiled loops give the bits of the definition, whether rounds reach all bins or not."""
    values = hashes(size, size)
    assert int.from_bytes(sketch(values).tobytes(), "little") == sketch_by_definition(values)
