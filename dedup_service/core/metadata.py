"""Keywords, tags and references of a page as one set, and the Jaccard similarity of two such sets.

Small sets (up to 64 members, nearly all pages) are kept as the hashes of their members and compared
exactly. A larger one is reduced to a MinHash signature of 128 independent permutations.

Source: Wang & Wang 2019 (metadata as one set, MinHash); Broder 1997. The paper's 100 functions
(x + i) mod 100 are rotations of one order and far from independent, so independent ones are used.
"""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.hashing import mix64
from dedup_service.core.normalise import fold

__all__ = ["EXACT_LIMIT", "PERMUTATIONS", "jaccard", "minhash", "pack"]

EXACT_LIMIT = 64
PERMUTATIONS = 128

_SET, _SIGNATURE = b"S", b"M"
_rows = np.arange(1, PERMUTATIONS + 1, dtype=np.uint64)
_STEPS = _rows * np.uint64(0x9E3779B97F4A7C15)


def pack(members: Iterable[str]) -> bytes:
    """Return the set of `members` (normalised, empty ones dropped) as bytes; no members give no bytes."""
    hashes = {xxhash.xxh3_64_intdigest(text.encode()) for member in members if (text := fold(member).strip())}
    if not hashes:
        return b""
    values = np.array(sorted(hashes), dtype=np.uint64)
    if len(values) <= EXACT_LIMIT:
        return _SET + values.tobytes()
    return _SIGNATURE + minhash(values).tobytes()


def minhash(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the signature uint64[PERMUTATIONS] of member hashes uint64[n], n ≥ 1: the least mixed hash of each row."""
    least: npt.NDArray[np.uint64] = mix64(values[None, :] + _STEPS[:, None]).min(axis=1)
    return least


def jaccard(a: bytes, b: bytes) -> Fraction | None:
    """Return the similarity of two packed sets, exact where both are small; None where either is empty."""
    if not a or not b:
        return None
    left, right = np.frombuffer(a[1:], np.uint64), np.frombuffer(b[1:], np.uint64)
    if a[:1] == b[:1] == _SET:
        common = len(np.intersect1d(left, right, assume_unique=True))
        return Fraction(common, len(left) + len(right) - common)
    rows = [values if kind == _SIGNATURE else minhash(values) for kind, values in ((a[:1], left), (b[:1], right))]
    return Fraction(int((rows[0] == rows[1]).sum()), PERMUTATIONS)
