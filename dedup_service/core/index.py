"""What Python knows of the native indexes (`native/src/tables`): their sizes, and the paths of entries in the cells.

The block index finds every entry within a radius of a fingerprint. The cell index finds entries that share min-hash
keys, however common a key is: a key that the template of a site made common costs one entry a slot, not thousands; an
entry from before the crowd is found under its first key, and a later one under the first key that the template does
not take. Slots do not depend on one another: the entries that a probe finds are the union of what it finds in each
slot alone, so that slots can be spread over machines.
"""

import struct
from dataclasses import dataclass

from dedup_service._native import Entry
from dedup_service.core.evidence.keys import LEVELS, PARTS

_EMPTY_PART = 128
"""Level of a part in which an entry is in no cell, plus the number of its keys there, all of which turned it away."""


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """Sizes of the block index.

    entries: (row, fingerprint) pairs; fingerprints: distinct ones, which buckets store once. bytes: memory reserved.
    largest_bucket: entries of the longest list that one probe may scan; split_buckets: second levels. buckets: of one
    table.
    """

    entries: int
    fingerprints: int
    bytes: int
    largest_bucket: int
    split_buckets: int
    buckets: int = 1 << 16


@dataclass(frozen=True, slots=True)
class CellStatistics:
    """Sizes of a cell index.

    entries: stored in at least one cell. cells: with an entry, or that turned some away. overflowed: those
    that turned some away. bytes: memory reserved for all tables, sieve_bytes for the sieves among them.
    """

    entries: int
    cells: int
    overflowed: int
    bytes: int
    sieve_bytes: int = 0


def path_keys(path: bytes) -> tuple[int, ...]:
    """Return the keys of a path, part after part."""
    return struct.unpack(f"<{len(path[PARTS:]) // 4}I", path[PARTS:])


def keys_in(entry: Entry) -> bytes:
    """Return the packed keys that are known of an entry: of a settled one, those of its path, and 0 for the others."""
    if not entry.settled or not entry.keys:
        return entry.keys
    found = path_keys(entry.keys)
    keys: list[int] = []
    at = 0
    for level in entry.keys[:PARTS]:
        count = level + 1 if level < _EMPTY_PART else level - _EMPTY_PART
        keys += [*found[at : at + count], *[0] * (LEVELS - count)]
        at += count
    return struct.pack(f"<{PARTS * LEVELS}I", *keys)
