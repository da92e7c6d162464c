"""SimHash: one fingerprint of many weighted features, which changes little when they change little.

Each feature adds its weight to the sum of every bit that its hash sets, and subtracts it from the sums of
the others. A bit of the fingerprint is 1 if its sum is > 0 (in the seed's Java program: ≥ 0), so a tie gives
0. Sums are integers, so the order of features cannot matter. Without features there is no fingerprint,
except in the seed's program.

Source: Charikar, STOC 2002; Manku, Jain, Das Sarma, WWW 2007, section 2.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.kernels import kernel

__all__ = [
    "FIXED_POINT",
    "bit_sums",
    "fixed_point",
    "hamming",
    "simhash",
    "simhash_of_lanes",
    "simhash_unweighted",
]

FIXED_POINT = 1 << 20
"""The integer weight of a feature that weighs 1."""

LANE = 64
"""Bits of a lane: fingerprints of 128 bits are computed in two."""


def simhash(
    hashes: Sequence[int], weights: npt.NDArray[np.int64], *, bits: int = 64, zero_is_one: bool = False
) -> int | None:
    """Return the fingerprint of features with unsigned `hashes` below 2**bits and integer weights int64[n].

    bits: 64 or 128. zero_is_one: a sum of 0 sets the bit. None if there are no features and a sum of 0 gives
    0.
    Raises ConfigurationError for another number of bits.

    >>> simhash([0b110101, 0b001010], np.array([1, 2]))
    10
    """
    if bits not in (64, 128):
        raise ConfigurationError(f"a fingerprint has 64 or 128 bits, got {bits}")
    lanes = [np.array(_lane(hashes, lane), dtype=np.uint64) for lane in range(bits // LANE)]
    return simhash_of_lanes(lanes, weights, zero_is_one=zero_is_one)


def simhash_of_lanes(
    lanes: Sequence[npt.NDArray[np.uint64]], weights: npt.NDArray[np.int64], *, zero_is_one: bool = False
) -> int | None:
    """Return the `simhash` of hashes given as 64-bit lanes, uint64[n] each, the low lane first."""
    if not len(weights) and not zero_is_one:
        return None
    return _joined(weighted(lane, weights, zero_is_one) for lane in lanes)


def simhash_unweighted(lanes: Sequence[npt.NDArray[np.uint64]]) -> int | None:
    """Return the fingerprint of features that weigh 1 each, by their lanes; None without features."""
    return _joined(majority(lane) for lane in lanes) if len(lanes[0]) else None


def _joined(parts: Iterable[np.uint64]) -> int:
    return sum(int(part) << LANE * number for number, part in enumerate(parts))


def _lane(hashes: Sequence[int], lane: int) -> list[int]:
    return [h >> LANE * lane & 0xFFFFFFFFFFFFFFFF for h in hashes]


def fixed_point(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return weights float64[n] as integers, in units of 2**-20."""
    return np.rint(weights * FIXED_POINT).astype(np.int64)


def hamming(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints differ."""
    return (a ^ b).bit_count()


@kernel
def bit_sums(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each bit the weights of the hashes uint64[n] that set it, less the others: int64[64]."""
    ones = np.zeros(64, dtype=np.int64)
    total = np.int64(0)
    for i in range(len(hashes)):
        value = hashes[i]
        weight = weights[i]
        total += weight
        for bit in range(64):
            ones[bit] += weight & -np.int64((value >> np.uint64(bit)) & np.uint64(1))
    return 2 * ones - total


@kernel
def weighted(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64], zero_is_one: bool) -> np.uint64:
    """Return the integer whose bits are 1 if their sums (`bit_sums`) are > 0, or ≥ 0 with `zero_is_one`."""
    sums = bit_sums(hashes, weights)
    result = np.uint64(0)
    for bit in range(64):
        if sums[bit] > 0 or (zero_is_one and sums[bit] == 0):
            result |= np.uint64(1) << np.uint64(bit)
    return result


@kernel
def majority(hashes: npt.NDArray[np.uint64]) -> np.uint64:
    """Return the integer whose bits are 1 if more than half of the hashes uint64[n] set them, n below 2**31.

    The 64 counters are stored as planes, bit j of every counter in plane j: an addition takes a few
    operations.
    """
    used = 0
    while len(hashes) >> used:
        used += 1
    planes = np.zeros(used, dtype=np.uint64)
    for i in range(len(hashes)):
        carry, plane = hashes[i], 0
        while carry != np.uint64(0):
            planes[plane], carry = planes[plane] ^ carry, planes[plane] & carry
            plane += 1
    result = np.uint64(0)
    for bit in range(64):
        ones = np.int64(0)
        for plane in range(used):
            ones += np.int64((planes[plane] >> np.uint64(bit)) & np.uint64(1)) << np.int64(plane)
        if 2 * ones > len(hashes):
            result |= np.uint64(1) << np.uint64(bit)
    return result
