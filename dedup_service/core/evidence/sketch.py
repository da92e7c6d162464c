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

from dedup_service.core.kernels import kernel
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel

__all__ = ["BINS", "SKETCH_BYTES", "estimated_jaccard", "sketch"]

BINS = 2048
SKETCH_BYTES = BINS // 8

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_S53 = np.uint64(53)
_BIT = np.uint64(1)
_MANY = 160  # values and empty bins, from which code without branches is faster than mispredicted branches


@kernel
def sketch(shingles: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Return the bits, uint8[256], of the distinct hashes uint64[n]; without shingles all are 0."""
    bits = np.zeros(BINS // 8, dtype=np.uint8)
    if len(shingles) == 0:
        return bits
    # A bin takes values below its bound: _EMPTY if it is empty, 0 if an earlier round filled it.
    bound = np.full(BINS, _EMPTY, dtype=np.uint64)
    minima = np.full(BINS, _EMPTY, dtype=np.uint64)
    values = np.empty(len(shingles), dtype=np.uint64)
    empty = BINS
    seed = np.uint64(0)
    for number in range(2 * BINS):
        seed += GAMMA
        _hash_all(shingles, seed, values)
        if number >= BINS:
            empty -= _fill_one(number - BINS, values.min(), bound, minima)
        elif len(values) >= _MANY and empty >= _MANY:
            empty = _fill_many(values, bound, minima)
        else:
            empty -= _fill_few(values, bound, minima)
        if empty == 0:
            break
    for first in range(0, BINS, 8):
        byte = np.uint64(0)
        for bit in range(8):
            byte |= (minima[first + bit] & _BIT) << np.uint64(bit)
        bits[first >> 3] = np.uint8(byte)
    return bits


@kernel
def _hash_all(shingles: npt.NDArray[np.uint64], seed: np.uint64, values: npt.NDArray[np.uint64]) -> None:
    """Set values uint64[n] to the hashes of one round. A separate loop, which the compiler can vectorise."""
    for i in range(len(shingles)):
        values[i] = mix64_in_kernel(shingles[i] + seed)


@kernel
def _fill_many(values: npt.NDArray[np.uint64], bound: npt.NDArray[np.uint64], minima: npt.NDArray[np.uint64]) -> int:
    """Fill bins with the values, and return how many are still empty.

    There are no branches, since none could be predicted.
    """
    for i in range(len(values)):
        index = np.int64(values[i] >> _S53)
        bound[index] = min(bound[index], values[i])
    empty = 0
    for i in range(BINS):
        filled = bound[i] != _EMPTY
        minima[i] = bound[i] if filled and bound[i] != np.uint64(0) else minima[i]
        bound[i] = np.uint64(0) if filled else _EMPTY
        empty += not filled
    return empty


@kernel
def _fill_few(values: npt.NDArray[np.uint64], bound: npt.NDArray[np.uint64], minima: npt.NDArray[np.uint64]) -> int:
    """Fill bins with the values, and return how many were empty. Only these few are visited again."""
    filled = np.empty(min(len(values), BINS), dtype=np.int64)
    new = 0
    for i in range(len(values)):
        index = np.int64(values[i] >> _S53)
        if values[i] < bound[index]:
            if bound[index] == _EMPTY:
                filled[new] = index
                new += 1
            bound[index] = values[i]
    for i in range(new):
        minima[filled[i]] = bound[filled[i]]
        bound[filled[i]] = np.uint64(0)
    return new


@kernel
def _fill_one(index: int, value: np.uint64, bound: npt.NDArray[np.uint64], minima: npt.NDArray[np.uint64]) -> int:
    """Fill one bin if it is empty, and return how many bins were filled."""
    if bound[index] != _EMPTY:
        return 0
    minima[index], bound[index] = value, np.uint64(0)
    return 1


def estimated_jaccard(a: bytes, b: bytes) -> float:
    """Return the estimate for two sketches of SKETCH_BYTES each, 0 to 1; equal sketches give exactly 1."""
    differing = (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).bit_count()
    return max(0.0, 1.0 - 2.0 * differing / BINS)
