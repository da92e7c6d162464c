"""Sizes and paths of the cell index, which finds entries that share min-hash keys, however common a key is.

`native/src/tables/cells.rs` is the index. A key that the template of a site made common costs one entry a slot, not
thousands; an entry from before the crowd is found under its first key, and a later one under the first key that the
template does not take. Slots do not depend on one another: the entries that a probe finds are the union of what it
finds in each slot alone, so that slots can be spread over machines.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service._native import Entry
from dedup_service.core.evidence.keys import LEVELS, PARTS

_EMPTY_PART = 128
"""Level of a part in which an entry is in no cell, plus the number of its keys there, all of which turned it away."""


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


def path_keys(path: bytes) -> npt.NDArray[np.uint32]:
    """Return the keys of a path, part after part: uint32[n]."""
    return np.frombuffer(path[PARTS:], "<u4").astype(np.uint32)


def keys_in(entry: Entry) -> bytes:
    """Return the packed keys that are known of an entry: of a settled one, those of its path, and 0 for the others."""
    if not entry.settled or not entry.keys:
        return entry.keys
    found = path_keys(entry.keys)
    keys = np.zeros((PARTS, LEVELS), "<u4")
    at = 0
    for part, level in enumerate(entry.keys[:PARTS]):
        count = level + 1 if level < _EMPTY_PART else level - _EMPTY_PART
        keys[part, :count] = found[at : at + count]
        at += count
    return keys.tobytes()
