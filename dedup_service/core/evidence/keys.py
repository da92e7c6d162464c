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


def unpacked_keys(packed: bytes, levels: int) -> npt.NDArray[np.uint32]:
    """Return packed keys as uint32[PARTS, levels]; all 0 if the bytes are no keys of so many levels."""
    if len(packed) != 4 * PARTS * levels:
        packed = bytes(4 * PARTS * levels)
    return np.frombuffer(packed, "<u4").reshape(PARTS, levels)
