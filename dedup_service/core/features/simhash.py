"""SimHash: one fingerprint of many weighted features, which changes little when they change little.

Each feature adds its weight to the sum of every bit that its hash sets, and subtracts it from the sums of
the others. A bit of the fingerprint is 1 if its sum is > 0 (in the seed's Java program: ≥ 0), so a tie gives
0. Sums are integers, so the order of features cannot matter. Without features there is no fingerprint,
except in the seed's program. This is the definition, which serves the schemes of the papers; those of the usual
scheme and of n-grams are the crate's (`native/src/features/simhash.rs`).

Source: Charikar, STOC 2002; Manku, Jain, Das Sarma, WWW 2007, section 2.
"""

from collections.abc import Iterable, Sequence

from dedup_service.core.errors import ConfigurationError

FIXED_POINT = 1 << 20
"""The integer weight of a feature that weighs 1."""


def simhash(hashes: Sequence[int], weights: Sequence[int], *, bits: int = 64, zero_is_one: bool = False) -> int | None:
    """Return the fingerprint of features with unsigned `hashes` below 2**bits and an integer weight each.

    bits: 64 or 128. zero_is_one: a sum of 0 sets the bit. None if there are no features and a sum of 0 gives
    0.
    Raises ConfigurationError for another number of bits.

    >>> simhash([0b110101, 0b001010], [1, 2])
    10
    """
    if bits not in (64, 128):
        raise ConfigurationError(f"a fingerprint has 64 or 128 bits, got {bits}")
    if not hashes and not zero_is_one:
        return None
    total = sum(weights)
    fingerprint = 0
    for bit in range(bits):
        excess = 2 * sum(weight for hash_, weight in zip(hashes, weights, strict=True) if hash_ >> bit & 1) - total
        fingerprint |= (excess > 0 or (zero_is_one and excess == 0)) << bit
    return fingerprint


def fixed_point(weights: Iterable[float]) -> list[int]:
    """Return weights as integers, in units of 2**-20."""
    return [round(weight * FIXED_POINT) for weight in weights]


def hamming(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints differ."""
    return (a ^ b).bit_count()
