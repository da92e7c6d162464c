"""A set of shingles in 256 bytes, from which the Jaccard similarity of two sets is estimated.

Fast similarity sketching fills 2,048 bins with the smallest of independent hash values, as so many
permutations would, in some 16,000 steps whatever the size of the set. One bit of the value of each bin is
kept. Two sets of similarity J have equal bits with probability (1 + J)/2, so J is estimated as 2·(share of
equal bits) − 1. The standard error is at most √((1 − J²)/2048) from the bits, plus √(J(1 − J)/2048) if both
sets are larger than the sketch: .022 at J = .5.

Source: Dahlgaard, Knudsen, Thorup, "Fast similarity sketching", FOCS 2017; Li and König, "b-bit minwise
hashing", WWW 2010.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel, kernel_inline, kernel_inline_allocating
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel

BINS = 2048
SKETCH_BYTES = BINS // 8

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_S53, _S56, _LOW53 = np.uint64(53), np.uint64(56), np.uint64((1 << 53) - 1)
_BIT = np.uint64(1)
_PACK = np.uint64(0x0102040810204080)
"""Multiplied by a word of eight bytes that are 0 or 1, gives them as bits of the highest byte."""


@kernel
def sketch(shingles: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Return the bits, uint8[256], of the distinct hashes uint64[n]; without shingles all are 0."""
    if len(shingles) == 0:
        return np.zeros(SKETCH_BYTES, dtype=np.uint8)
    minima = np.full(BINS, _EMPTY, dtype=np.uint64)
    if not _fill_by_rounds(shingles, minima):
        _fill_rest(shingles, minima)
    lowest = np.empty(BINS, dtype=np.uint8)
    for i in range(BINS):
        lowest[i] = minima[i] & _BIT
    words = lowest.view(np.uint64)
    bits = np.empty(SKETCH_BYTES, dtype=np.uint8)
    for i in range(SKETCH_BYTES):
        bits[i] = np.uint8((words[i] * _PACK) >> _S56)
    return bits


@kernel_inline_allocating
def _fill_by_rounds(shingles: npt.NDArray[np.uint64], minima: npt.NDArray[np.uint64]) -> bool:
    """Fill bins with hash values in BINS rounds at most, and return whether none is empty: uint64[BINS].

    The upper bits of a value choose its bin. A round fills only bins that were empty when it began, since the smallest
    value of a bin is of the first round that reached it. There are no branches, since none could be predicted. Most
    values of later rounds reach bins that are full: those for empty ones are collected first, in a loop that writes to
    no place that it reads.
    """
    values, chosen = np.empty(len(shingles), dtype=np.uint64), np.empty(len(shingles) + 1, dtype=np.uint64)
    is_empty = np.empty(BINS, dtype=np.uint8)
    empty = BINS
    seed = np.uint64(0)
    for number in range(BINS):
        seed += GAMMA
        for i in range(len(shingles)):  # a loop of its own, which the compiler vectorises
            values[i] = mix64_in_kernel(shingles[i] + seed)
        if number == 0:
            for i in range(len(shingles)):
                put_smallest(minima, values[np.uint64(i)])
            empty = 0
            for i in range(BINS):
                is_empty[i] = minima[i] == _EMPTY
                empty += minima[i] == _EMPTY
        else:
            count = np.uint64(0)
            for i in range(len(shingles)):
                value = values[np.uint64(i)]
                chosen[count] = value
                count += np.uint64(is_empty[value >> _S53])
            for i in range(count):
                place = chosen[np.uint64(i)] >> _S53
                put_smallest(minima, chosen[np.uint64(i)])
                empty -= int(is_empty[place])
                is_empty[place] = 0
        if empty == 0:
            return True
    return False


@kernel_inline
def put_smallest(minima: npt.NDArray[np.uint64], value: np.uint64) -> None:
    """Put a hash value into its bin of minima, uint64[BINS], by its upper 11 bits, unless a smaller one is there."""
    place = value >> _S53
    minima[place] = min(minima[place], value & _LOW53)


@kernel_inline
def _fill_rest(shingles: npt.NDArray[np.uint64], minima: npt.NDArray[np.uint64]) -> None:
    """Fill each bin that is still empty with the smallest value of a round of its own."""
    for i in range(BINS):
        if minima[i] == _EMPTY:
            seed = np.uint64(BINS + i + 1) * GAMMA
            smallest = _EMPTY
            for shingle in shingles:
                smallest = min(smallest, mix64_in_kernel(shingle + seed))
            minima[i] = smallest
