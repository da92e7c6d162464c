"""A set of shingles in 256 bytes, from which the Jaccard similarity of two sets is estimated.

Fast similarity sketching fills 2,048 bins with the least of independent hash values, as so many permutations would, in
some 16,000 steps whatever the size of the set; one bit of each bin's value is kept. Two sets of similarity J have
equal bits with probability (1 + J)/2, so J is estimated as 2·(share of equal bits) − 1 with standard error at most
√((1 − J²)/2048) from the bits, plus √(J(1 − J)/2048) where both sets are larger than the sketch: .022 at J = .5.

Keys: the least values of eight parts of the first round, as exact keys. Two sets have each in common with
probability J, so at J = .5 at least one of the eight with .996.

Source: Dahlgaard, Knudsen, Thorup, "Fast similarity sketching", FOCS 2017; Li and König, "b-bit minwise hashing",
WWW 2010.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel

__all__ = ["BINS", "KEYS", "SKETCH_BYTES", "estimated_jaccard", "sketch"]

BINS = 2048
SKETCH_BYTES = BINS // 8
KEYS = 8

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_S53 = np.uint64(53)
_LOW32 = np.uint64(0xFFFFFFFF)
_BIT = np.uint64(1)
_MANY = 160  # values and empty bins, from which to do without branches costs less than to guess them wrong


@kernel
def sketch(shingles: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Return the bits, uint8[256], and the keys, uint32[8], of the distinct hashes uint64[n].

    A key is 0 where its part of a small set is empty. No shingles: all bits and keys are 0.
    """
    bits, keys = np.zeros(BINS // 8, dtype=np.uint8), np.zeros(KEYS, dtype=np.uint32)
    if len(shingles) == 0:
        return bits, keys
    # What a value has to be below: EMPTY for an empty bin, 0 for one that an earlier turn settled.
    bound = np.full(BINS, _EMPTY, dtype=np.uint64)
    minimum = np.full(BINS, _EMPTY, dtype=np.uint64)
    values = np.empty(len(shingles), dtype=np.uint64)
    empty = BINS
    seed = np.uint64(0)
    for turn in range(2 * BINS):
        seed += GAMMA
        _hash_all(shingles, seed, values)
        if turn >= BINS:
            empty -= _settle(turn - BINS, values.min(), bound, minimum)
        elif len(values) >= _MANY and empty >= _MANY:
            empty = _throw_many(values, bound, minimum)
        else:
            empty -= _throw_few(values, bound, minimum)
        if turn == 0:
            _take_keys(minimum, keys)
        if empty == 0:
            break
    for place in range(0, BINS, 8):
        byte = np.uint64(0)
        for bit in range(8):
            byte |= (minimum[place + bit] & _BIT) << np.uint64(bit)
        bits[place >> 3] = np.uint8(byte)
    return bits, keys


@kernel
def _hash_all(shingles: npt.NDArray[np.uint64], seed: np.uint64, values: npt.NDArray[np.uint64]) -> None:
    """Set values uint64[n] to the hashes of one turn: a loop of its own, which the compiler turns into vectors."""
    for i in range(len(shingles)):
        values[i] = mix64_in_kernel(shingles[i] + seed)


@kernel
def _throw_many(values: npt.NDArray[np.uint64], bound: npt.NDArray[np.uint64], minimum: npt.NDArray[np.uint64]) -> int:
    """Throw the values at the bins and return how many are empty: no branches, whose outcome nothing could predict."""
    for i in range(len(values)):
        place = np.int64(values[i] >> _S53)
        bound[place] = min(bound[place], values[i])
    empty = 0
    for at in range(BINS):
        filled = bound[at] != _EMPTY
        minimum[at] = bound[at] if filled and bound[at] != np.uint64(0) else minimum[at]
        bound[at] = np.uint64(0) if filled else _EMPTY
        empty += not filled
    return empty


@kernel
def _throw_few(values: npt.NDArray[np.uint64], bound: npt.NDArray[np.uint64], minimum: npt.NDArray[np.uint64]) -> int:
    """Throw the values at the bins and return how many were filled: few are, so nothing is done for the others."""
    filled = np.empty(min(len(values), BINS), dtype=np.int64)
    new = 0
    for i in range(len(values)):
        place = np.int64(values[i] >> _S53)
        if values[i] < bound[place]:
            if bound[place] == _EMPTY:
                filled[new] = place
                new += 1
            bound[place] = values[i]
    for at in range(new):
        minimum[filled[at]] = bound[filled[at]]
        bound[filled[at]] = np.uint64(0)
    return new


@kernel
def _settle(place: int, value: np.uint64, bound: npt.NDArray[np.uint64], minimum: npt.NDArray[np.uint64]) -> int:
    """Fill one bin, if it is empty, and return how many were filled."""
    if bound[place] != _EMPTY:
        return 0
    minimum[place], bound[place] = value, np.uint64(0)
    return 1


@kernel
def _take_keys(minimum: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint32]) -> None:
    """Set each key to 32 bits of the least value of its part of the bins, the number of the bin apart."""
    for part in range(KEYS):
        best = _EMPTY
        for place in range(part * (BINS // KEYS), (part + 1) * (BINS // KEYS)):
            if minimum[place] != _EMPTY:
                best = min(best, minimum[place] << np.uint64(11))
        if best != _EMPTY:
            keys[part] = max(np.uint32((best >> np.uint64(11)) & _LOW32), np.uint32(1))


def estimated_jaccard(a: bytes, b: bytes) -> float:
    """Return the estimate for two sketches of SKETCH_BYTES each, 0 to 1; equal sketches give exactly 1."""
    differing = (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).bit_count()
    return max(0.0, 1.0 - 2.0 * differing / BINS)
