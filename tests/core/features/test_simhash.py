"""Tests for SimHash: worked examples, and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.simhash import fixed_point, hamming, simhash

FEATURES = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 10**9)), min_size=1, max_size=40)


def bits_of(rows: list[str], weights: list[int]) -> str:
    """Return the fingerprint of features that are written as bit strings, first bit first."""
    fingerprint = simhash([int(row[::-1], 2) for row in rows], weights)
    assert fingerprint is not None
    return f"{fingerprint:0{len(rows[0])}b}"[::-1]


def test_the_vector_example_of_the_first_seed() -> None:
    """Five features with weights 1, 2, 0, 3, 0 have the sums (−4, −2, 6) and the fingerprint 001."""
    assert bits_of(["101", "011", "100", "001", "110"], [1, 2, 0, 3, 0]) == "001"


def test_the_levels_example() -> None:
    """100101 at 4 and 101011 at 5 sum to (9, −9, 1, −1, 1, 9) and reduce to 101011, 2 bits from 101000."""
    assert bits_of(["100101", "101011"], [4, 5]) == "101011"
    assert hamming(0b101011, 0b101000) == 2


@given(FEATURES, st.randoms(use_true_random=False))
def test_the_order_of_features_never_matters(features: list[tuple[int, int]], random: object) -> None:
    """Any permutation gives the same fingerprint."""
    shuffled = list(features)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fingerprint(features) == fingerprint(shuffled)


@given(FEATURES)
def test_every_bit_is_the_sign_of_its_sum(features: list[tuple[int, int]]) -> None:
    """As the definition says, bit by bit."""
    expected = 0
    for bit in range(64):
        total = sum(weight if value >> bit & 1 else -weight for value, weight in features)
        expected |= (total > 0) << bit
    assert fingerprint(features) == expected


def fingerprint(features: list[tuple[int, int]]) -> int | None:
    """Return the SimHash of (hash, weight) pairs."""
    return simhash([value for value, _ in features], [weight for _, weight in features])


def test_a_tie_is_0_and_in_the_seed_program_1() -> None:
    """A sum of zero gives 0, or 1 as in the seed program."""
    opposites, weights = [0b1011, ~0b1011 & 2**64 - 1], [3, 3]
    assert simhash(opposites, weights) == 0
    assert simhash(opposites, weights, zero_is_one=True) == 2**64 - 1


def test_no_features_give_no_fingerprint() -> None:
    """An empty page has no fingerprint, rather than one that all empty pages share."""
    assert simhash([], []) is None


def test_128_bits_are_two_lanes() -> None:
    """The low lane of 128 bits is the 64-bit fingerprint of the low halves."""
    hashes = [(7 << 64) | 5, (6 << 64) | 1]
    weights = [2, 3]
    value = simhash(hashes, weights, bits=128)
    assert value is not None
    assert value & 2**64 - 1 == simhash([5, 1], weights)
    assert value >> 64 == simhash([7, 6], weights)


def test_another_width_is_refused() -> None:
    """A fingerprint has 64 or 128 bits."""
    with pytest.raises(ConfigurationError, match="64 or 128 bits, got 32"):
        simhash([1], [1], bits=32)


def test_weights_become_integers() -> None:
    """The unit of fixed-point weights is 2⁻²⁰."""
    assert fixed_point([0.5, 3.0]) == [1 << 19, 3 << 20]
