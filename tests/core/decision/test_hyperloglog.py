"""Estimated numbers of different values."""

import statistics

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.duplicate_clusters import EMPTY, SKETCH_BYTES, estimate, with_value


def hashes(count: int, seed: int = 0) -> list[int]:
    """Hashes of `count` different values."""
    return [xxhash.xxh3_64_intdigest(f"{seed} {number}".encode()) for number in range(count)]


def sketch_of(values: list[int]) -> bytes:
    """The sketch of values."""
    sketch = EMPTY
    for value in values:
        sketch = with_value(sketch, value)
    return sketch


@given(st.lists(st.integers(0, 2**64 - 1)), st.randoms())
def test_neither_order_nor_repetition_counts(values: list[int], rng: object) -> None:
    """A sketch depends on the set of values alone."""
    shuffled = [*values, *values[: len(values) // 2]]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert sketch_of(shuffled) == sketch_of(values)
    assert len(sketch_of(values)) == SKETCH_BYTES


def test_none_and_one_are_exact() -> None:
    """This holds for any value, 0 included."""
    assert estimate(EMPTY) == 0
    assert {estimate(sketch_of([value])) for value in (0, 1, 31, 32, 2**64 - 1, *hashes(100))} == {1}


@pytest.mark.parametrize("count", [3, 10, 30, 80, 100, 300, 1000])
def test_the_error_is_a_fifth(count: int) -> None:
    """Over 200 sets the mean is within a twelfth of the count, and the standard error about a fifth."""
    estimates = [estimate(sketch_of(hashes(count, seed))) for seed in range(200)]
    assert abs(statistics.mean(estimates) - count) <= 0.08 * count
    assert statistics.pstdev(estimates) <= 0.21 * count
