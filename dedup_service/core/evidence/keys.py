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

from dedup_service.core.kernels import kernel, kernel_inline, kernel_inline_allocating
from dedup_service.core.splitmix import mix64_in_kernel

PARTS = 8
"""Parts of a page's shingles."""

LEVELS = 8
"""Keys of each part, at most. On a site whose template is .8 of each page, .8**8 of the parts have no own key."""

MAX_LEVELS = 32
"""Limit of `levels`: a record of the log has 32 bytes for each."""

_S61, _S3, _S32 = np.uint64(61), np.uint64(3), np.uint64(32)
_NONE = np.uint64(1 << 32)
_SEED = np.uint64(0x5851F42D4C957F2D)
_WANTED = 3
"""Keys of a part that are looked at first, for each level."""


@kernel
def min_hash_keys(shingles: npt.NDArray[np.uint64], levels: int) -> npt.NDArray[np.uint32]:
    """Return the keys of the shingles uint64[n], hashes in any order: uint32[PARTS, levels].

    Each row ascends; 0, which is no key, follows the last key of a part with fewer shingles.
    """
    values = np.empty(len(shingles), dtype=np.uint64)
    for i in range(len(shingles)):  # a loop of its own, which the compiler vectorises
        values[i] = mix64_in_kernel(shingles[i] ^ _SEED)
    # Keys are uniform, so larger ones than this are hardly ever among the smallest; if a part has too few below, all
    # are looked at (less than one page in a hundred).
    wanted = _WANTED * PARTS * levels
    bound = _NONE // np.uint64(max(len(values), 1)) * np.uint64(wanted) if wanted < len(values) else _NONE
    rows = _smallest(_below(values, bound), levels)
    if bound < _NONE and rows[:, levels - 1].max() == _NONE:
        rows = _smallest(values, levels)
    keys = np.empty((PARTS, levels), dtype=np.uint32)
    for part in range(PARTS):
        for level in range(levels):
            keys[part, level] = rows[part, level] if rows[part, level] != _NONE else np.uint64(0)
    return keys


@kernel_inline
def _key(value: np.uint64) -> np.uint64:
    """Return the key of a mixed hash, which the three bits above it are not part of: 1 to 2**32 - 1."""
    return max((value << _S3) >> _S32, np.uint64(1))


@kernel_inline_allocating
def _below(values: npt.NDArray[np.uint64], bound: np.uint64) -> npt.NDArray[np.uint64]:
    """Return the mixed hashes whose keys are below a bound. There are no branches, since none could be predicted."""
    kept = np.empty(len(values), dtype=np.uint64)
    count = 0
    for value in values:
        kept[np.uint64(count)] = value
        count += int(_key(value) < bound)
    return kept[:count]


@kernel
def _smallest(values: npt.NDArray[np.uint64], levels: int) -> npt.NDArray[np.uint64]:
    """Return the smallest different keys of each part: uint64[PARTS, levels], _NONE where there are no more."""
    rows = np.full((PARTS, levels), _NONE, dtype=np.uint64)
    for value in values:
        key, row = _key(value), rows[value >> _S61]
        if key >= row[levels - 1]:
            continue
        is_known = False
        for level in range(levels):
            is_known |= row[level] == key
        if not is_known:
            for level in range(levels):
                row[level], key = min(row[level], key), max(row[level], key)
    return rows


def packed_keys(keys: npt.NDArray[np.uint32]) -> bytes:
    """Return keys uint32[PARTS, levels] as bytes, little-endian; b"" without any key."""
    return packed_rows(keys[None])[0] if keys.any() else b""


def packed_rows(keys: npt.NDArray[np.uint32]) -> list[bytes]:
    """Return the keys of n pages with shingles, uint32[n, PARTS, levels], each as `packed_keys` does."""
    packed, size = keys.astype("<u4", copy=False).tobytes(), 4 * PARTS * keys.shape[2]
    return [packed[start : start + size] for start in range(0, len(packed), size)]


def unpacked_keys(packed: bytes, levels: int) -> npt.NDArray[np.uint32]:
    """Return packed keys as uint32[PARTS, levels]; all 0 if the bytes are no keys of so many levels."""
    if len(packed) != 4 * PARTS * levels:
        packed = bytes(4 * PARTS * levels)
    return np.frombuffer(packed, "<u4").reshape(PARTS, levels)
