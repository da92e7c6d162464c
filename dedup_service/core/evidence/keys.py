"""Min-hash keys: by which an index finds pages that share shingles.

The shingles of a page are divided into eight parts by the upper bits of a hash. Of each part a page has its
`levels` smallest distinct hashes, in order. Two sets of similarity J share the smallest hash of a part with
probability J; at J = .5 they share at least one of the eight with probability .996. The further hashes of a
part are for pages whose smallest ones are common to a whole site (`core.index`).

Source: Broder, "On the resemblance and containment of documents", 1997 (min-hash); Li, Owen, Zhang, "One
permutation hashing", NIPS 2012 (one hash function, divided into parts).
"""

import struct

PARTS = 8
"""Parts of a page's shingles."""

LEVELS = 8
"""Keys of each part, at most. On a site whose template is .8 of each page, .8**8 of the parts have no own key."""

MAX_LEVELS = 32
"""Limit of `levels`: a record of the log has 32 bytes for each."""


def unpacked_keys(packed: bytes, levels: int) -> list[tuple[int, ...]]:
    """Return the keys of each part, ascending; 0, which is no key, follows the last key of a part with fewer shingles.

    packed: 32 bits each, little-endian. All are 0 if the bytes are no keys of so many levels.
    """
    if len(packed) != 4 * PARTS * levels:
        packed = bytes(4 * PARTS * levels)
    return list(struct.iter_unpack(f"<{levels}I", packed))
