"""Tests for SimHash: worked examples, and properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.simhash import (
    bit_sums,
    fixed_point,
    hamming,
    majority,
    simhash,
)

FEATURES = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 10**9)), min_size=1, max_size=40)


def sums_of(rows: list[str], weights: list[int]) -> list[int]:
    """Return the sums of features that are written as bit strings, first bit first."""
    hashes = np.array([int(row[::-1], 2) for row in rows], dtype=np.uint64)
    return bit_sums(hashes, np.array(weights, dtype=np.int64))[: len(rows[0])].tolist()


def test_the_vector_example_of_the_first_seed() -> None:
    """Five features with weights 1, 2, 0, 3, 0 have the sums (−4, −2, 6) and the fingerprint 001."""
    sums = sums_of(["101", "011", "100", "001", "110"], [1, 2, 0, 3, 0])
    assert sums == [-4, -2, 6]
    assert [int(value > 0) for value in sums] == [0, 0, 1]


def test_the_levels_example() -> None:
    """100101 at 4 and 101011 at 5 sum to (9, −9, 1, −1, 1, 9) and reduce to 101011, 2 bits from 101000."""
    sums = sums_of(["100101", "101011"], [4, 5])
    assert sums == [9, -9, 1, -1, 1, 9]
    assert "".join(str(int(value > 0)) for value in sums) == "101011"
    assert hamming(0b101011, 0b101000) == 2


@given(FEATURES, st.randoms(use_true_random=False))
def test_the_order_of_features_never_matters(features: list[tuple[int, int]], random: object) -> None:
    """Any permutation gives the same fingerprint."""
    shuffled = list(features)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fingerprint(features) == fingerprint(shuffled)


@given(FEATURES)
def test_every_bit_is_the_sign_of_its_sum(features: list[tuple[int, int]]) -> None:
    """The kernel agrees with the definition, bit by bit."""
    expected = 0
    for bit in range(64):
        total = sum(weight if value >> bit & 1 else -weight for value, weight in features)
        expected |= (total > 0) << bit
    assert fingerprint(features) == expected


def fingerprint(features: list[tuple[int, int]]) -> int | None:
    """Return the SimHash of (hash, weight) pairs."""
    weights = np.array([weight for _, weight in features], dtype=np.int64)
    return simhash([value for value, _ in features], weights)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=70))
def test_unweighted_features_weigh_1(hashes: list[int]) -> None:
    """The fingerprint is that of the same hashes with a weight of 1 each."""
    ones = np.ones(len(hashes), dtype=np.int64)
    assert majority(np.array(hashes, dtype=np.uint64)) == (simhash(hashes, ones) or 0)


def test_a_tie_is_0_and_in_the_seed_program_1() -> None:
    """A sum of zero gives 0, or 1 as in the seed program."""
    opposites, weights = [0b1011, ~0b1011 & 2**64 - 1], np.array([3, 3])
    assert simhash(opposites, weights) == 0
    assert simhash(opposites, weights, zero_is_one=True) == 2**64 - 1


def test_no_features_give_no_fingerprint() -> None:
    """An empty page has no fingerprint, rather than one that all empty pages share."""
    assert simhash([], np.array([], dtype=np.int64)) is None


def test_128_bits_are_two_lanes() -> None:
    """The low lane of 128 bits is the 64-bit fingerprint of the low halves."""
    hashes = [(7 << 64) | 5, (6 << 64) | 1]
    weights = np.array([2, 3], dtype=np.int64)
    value = simhash(hashes, weights, bits=128)
    assert value is not None
    assert value & 2**64 - 1 == simhash([5, 1], weights)
    assert value >> 64 == simhash([7, 6], weights)


def test_another_width_is_refused() -> None:
    """A fingerprint has 64 or 128 bits."""
    with pytest.raises(ConfigurationError, match="64 or 128 bits, got 32"):
        simhash([1], np.array([1]), bits=32)


def test_weights_become_integers() -> None:
    """The unit of fixed-point weights is 2⁻²⁰."""
    assert fixed_point(np.array([0.5, 3.0])).tolist() == [1 << 19, 3 << 20]
