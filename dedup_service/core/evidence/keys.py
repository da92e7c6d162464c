"""Min-hash keys: by which an index finds pages that share shingles.

The shingles of a page are divided into eight parts by the upper bits of a hash. Of each part a page has its
`levels` smallest distinct hashes, in order. Two sets of similarity J share the smallest hash of a part with
probability J; at J = .5 they share at least one of the eight with probability .996. The further hashes of a
part are for pages whose smallest ones are common to a whole site (`core.index.cell_index`).

Source: Broder, "On the resemblance and containment of documents", 1997 (min-hash); Li, Owen, Zhang, "One
permutation hashing", NIPS 2012 (one hash function, divided into parts).
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel
from dedup_service.core.splitmix import mix64_in_kernel

__all__ = ["LEVELS", "MAX_LEVELS", "PARTS", "min_hash_keys", "packed_keys", "unpacked_keys"]

PARTS = 8
"""Parts of a page's shingles."""

LEVELS = 8
"""Keys of each part, at most. On a site whose template is .8 of each page, .8**8 of the parts have no own key."""

MAX_LEVELS = 32
"""Limit of `levels`: a record of the log has 32 bytes for each."""

_S61, _S3, _S32 = np.uint64(61), np.uint64(3), np.uint64(32)
_NO_BOUND = np.uint64(1 << 32)
_SEED = np.uint64(0x5851F42D4C957F2D)


@kernel
def min_hash_keys(shingles: npt.NDArray[np.uint64], levels: int) -> npt.NDArray[np.uint32]:
    """Return the keys of the shingles uint64[n], hashes in any order: uint32[PARTS, levels].

    Each row ascends; 0, which is no key, follows the last key of a part with fewer shingles.
    """
    best = np.zeros((PARTS, levels), dtype=np.uint32)
    count = np.zeros(PARTS, dtype=np.int64)
    largest = np.full(PARTS, _NO_BOUND, dtype=np.uint64)
    values = np.empty(len(shingles), dtype=np.uint64)
    for i in range(len(shingles)):  # a loop of its own, which the compiler vectorises
        values[i] = mix64_in_kernel(shingles[i] ^ _SEED)
    for value in values:
        part = np.int64(value >> _S61)
        key = max(np.uint32((value << _S3) >> _S32), np.uint32(1))
        if np.uint64(key) >= largest[part]:
            continue
        found = count[part]
        place = found
        while place > 0 and best[part, place - 1] > key:
            place -= 1
        if place > 0 and best[part, place - 1] == key:
            continue
        for later in range(min(found, levels - 1), place, -1):
            best[part, later] = best[part, later - 1]
        best[part, place] = key
        count[part] = min(found + 1, levels)
        if count[part] == levels:
            largest[part] = np.uint64(best[part, levels - 1])
    return best


def packed_keys(keys: npt.NDArray[np.uint32]) -> bytes:
    """Return keys uint32[PARTS, levels] as bytes, little-endian; b"" without any key."""
    return keys.astype("<u4", copy=False).tobytes() if keys.any() else b""


def unpacked_keys(packed: bytes, levels: int) -> npt.NDArray[np.uint32]:
    """Return packed keys as uint32[PARTS, levels]; all 0 if the bytes are no keys of so many levels."""
    if len(packed) != 4 * PARTS * levels:
        packed = bytes(4 * PARTS * levels)
    return np.frombuffer(packed, "<u4").reshape(PARTS, levels)
