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

__all__ = ["BINS", "KEYS", "SKETCH_BYTES", "estimated_jaccard", "sketch"]

BINS = 2048
SKETCH_BYTES = BINS // 8
KEYS = 8

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S53 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(53)
_LOW32 = np.uint64(0xFFFFFFFF)
_BIT = np.uint64(1)


@kernel
def sketch(shingles: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Return the bits, uint8[256], and the keys, uint32[8], of the distinct hashes uint64[n].

    A key is 0 where its part of a small set is empty. No shingles: all bits and keys are 0.
    """
    bits, keys = np.zeros(BINS // 8, dtype=np.uint8), np.zeros(KEYS, dtype=np.uint32)
    if len(shingles) == 0:
        return bits, keys
    least = np.full(BINS, _EMPTY, dtype=np.uint64)
    settled = np.zeros(BINS, dtype=np.bool_)
    empty = BINS
    seed = np.uint64(0)
    for turn in range(2 * BINS):
        seed += _STEP
        for i in range(len(shingles)):
            value = shingles[i] + seed
            value = (value ^ (value >> _S30)) * _MIX1
            value = (value ^ (value >> _S27)) * _MIX2
            value ^= value >> _S31
            place = np.int64(value >> _S53) if turn < BINS else turn - BINS
            if not settled[place] and value < least[place]:
                if least[place] == _EMPTY:
                    empty -= 1
                least[place] = value
        if turn == 0:
            _take_keys(least, keys)
        if empty == 0:
            break
        for place in range(BINS):
            settled[place] = least[place] != _EMPTY
    for place in range(BINS):
        bits[place >> 3] |= np.uint8((least[place] & _BIT) << np.uint64(place & 7))
    return bits, keys


@kernel
def _take_keys(least: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint32]) -> None:
    """Set each key to 32 bits of the least value of its part of the bins, the number of the bin apart."""
    for part in range(KEYS):
        best = _EMPTY
        for place in range(part * (BINS // KEYS), (part + 1) * (BINS // KEYS)):
            if least[place] != _EMPTY:
                best = min(best, least[place] << np.uint64(11))
        if best != _EMPTY:
            keys[part] = max(np.uint32((best >> np.uint64(11)) & _LOW32), np.uint32(1))


def estimated_jaccard(a: bytes, b: bytes) -> float:
    """Return the estimate for two sketches of SKETCH_BYTES each, 0 to 1; equal sketches give exactly 1."""
    differing = (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).bit_count()
    return max(0.0, 1.0 - 2.0 * differing / BINS)
