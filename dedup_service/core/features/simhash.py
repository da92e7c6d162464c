"""SimHash: one fingerprint of many weighted features, which changes little when they change little.

Each feature adds its weight to the sum of every bit that its hash sets, and subtracts it from the sums of
the others. A bit of the fingerprint is 1 if its sum is > 0 (in the seed's Java program: ≥ 0), so a tie gives
0. Sums are integers, so the order of features cannot matter. Without features there is no fingerprint,
except in the seed's program.

Source: Charikar, STOC 2002; Manku, Jain, Das Sarma, WWW 2007, section 2.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.kernels import kernel, kernel_inline

FIXED_POINT = 1 << 20
"""The integer weight of a feature that weighs 1."""

LANE = 64
"""Bits of a lane: fingerprints of 128 bits are computed in two."""

_PLANES = 32


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
    return sum(int(weighted(lane, weights, zero_is_one)) << LANE * number for number, lane in enumerate(lanes))


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

    The 64 counters are stored as planes, bit j of every counter in plane j: an addition takes a few operations. Eight
    hashes are added at once by a tree of adders, of which only the carry to the fourth plane has to be taken further.
    Source: Muła, Kurz, Lemire, "Faster population counts using AVX2 instructions", 2018 (Harley-Seal).
    """
    count = len(hashes)
    planes = np.zeros(_PLANES, dtype=np.uint64)
    ones = twos = fours = np.uint64(0)
    for i in range(0, count - 7, 8):
        ones, first = _added(ones, hashes[i], hashes[i + 1])
        ones, second = _added(ones, hashes[i + 2], hashes[i + 3])
        twos, third = _added(twos, first, second)
        ones, first = _added(ones, hashes[i + 4], hashes[i + 5])
        ones, second = _added(ones, hashes[i + 6], hashes[i + 7])
        twos, fourth = _added(twos, first, second)
        fours, eights = _added(fours, third, fourth)
        _carry(planes, 3, eights)
    planes[0], planes[1], planes[2] = ones, twos, fours
    for i in range(count - count % 8, count):
        _carry(planes, 0, hashes[i])
    # Each counter is compared with half of the hashes, from the lowest plane on: a higher one outweighs those before.
    larger = np.uint64(0)
    for plane in range(_PLANES):
        larger = larger & planes[plane] if (count // 2) >> plane & 1 else larger | planes[plane]
    return larger


@kernel_inline
def _added(one: np.uint64, two: np.uint64, three: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the sum of three bits and its carry, for 64 places at once."""
    differing = one ^ two
    return differing ^ three, (one & two) | (differing & three)


@kernel_inline
def _carry(planes: npt.NDArray[np.uint64], plane: int, carry: np.uint64) -> None:
    """Add bits of the weight of a plane to the counters."""
    while carry != np.uint64(0):
        planes[plane], carry = planes[plane] ^ carry, planes[plane] & carry
        plane += 1
