"""The cell index: finds entries that share min-hash keys, however common a key is, at a bounded cost.

A page has, in each of eight parts of its shingles, its `levels` smallest hashes in order (its keys,
`core.evidence.keys`), and belongs to one of `slots` slots. An entry is stored, in each part, under the first
of its keys whose *cell* (part, key, slot) is free. A cell holds one entry, and counts those that it turned
away. A probe looks at all slots under the first key of each part, then under the next key only at the slots
whose cell turned entries away, and so on.

So a key that the template of a site made common costs one entry a slot, not thousands; an entry from before
the crowd is found under its first key, and a later one under the first key that the template does not take.
Nothing is cut off: an entry whose keys all led to full cells is counted in them. A probe finds at most 8 ·
levels · slots entries, and the *sieve*, the first 128 bits of the sketch, leaves out most of those that
share a key by chance: bits of two sketches of similarity J are equal with probability (1 + J)/2. An entry passes with
.58 equal bits: .9997 of the matches do, and 6.8% of the rest.

The index holds rows, numbers below 2**32 - 1 that the caller gives its entries. Rows should be dense: each has 16 bytes
for its sieve.

Slots do not depend on one another: the entries that a probe finds are the union of what it finds in each
slot alone, so that slots can be spread over machines.
Invariants: answers are a function of the insertions and removals in their order. Putting the live entries
back by their paths, in any order, gives the same index. Not thread-safe.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service._native import CellIndex
from dedup_service.core.evidence.keys import LEVELS, PARTS

SIEVE_BYTES = 16
"""Bytes of a sketch that the sieve compares."""

MOST_DIFFERING = 53
"""Bits of the sieve in which an entry may differ from a page."""

EMPTY_PART = 128
"""Level of a part in which an entry is in no cell, plus the number of its keys there, all of which turned it away."""

Integers = npt.NDArray[np.int64]
RowNumbers = npt.NDArray[np.uint32]
Sieves = npt.NDArray[np.uint64]


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


@dataclass(frozen=True, slots=True, eq=False)
class CellChanges:
    """Insertions and removals of m entries, in the order in which they are applied.

    rows: uint32[m]. ordinals: int64[m]. removes: bool[m], False for an insertion. keys: uint32[m, PARTS, levels] of
    insertions, 0 after the last key of a part; all 0 for a removal. sieves: uint64[m, 2], of insertions. paths: of a
    removal the path that its insertion returned; b"" of insertions, and of a removal whose row an earlier change
    of the same batch inserted.
    """

    rows: RowNumbers
    ordinals: Integers
    removes: npt.NDArray[np.bool_]
    keys: npt.NDArray[np.uint32]
    sieves: Sieves
    paths: Sequence[bytes]


@dataclass(frozen=True, slots=True, eq=False)
class CellAnswers:
    """What n pages found, and where m changes went.

    offsets: int64[n + 1]; page i has rows[offsets[i]:offsets[i + 1]], uint32, ascending. probed: int64[n], how many
    entries each page had before the sieve. paths: of each insertion its path, b"" of removals.
    """

    offsets: Integers
    rows: RowNumbers
    probed: Integers
    paths: list[bytes]


class CellRows:
    """Rows by the keys of their entries. slots: 1 to 64. levels: keys of each part, 1 to 32. native: what is in it.

    The path of an entry, by which it can be removed or put back, has one byte a part for the level, and four for each
    key up to there.
    """

    __slots__ = ("_native", "levels", "slots")

    def __init__(self, *, slots: int = 8, levels: int = LEVELS, native: CellIndex | None = None) -> None:
        self._native = CellIndex(slots, levels) if native is None else native
        self.slots, self.levels = slots, levels

    def __len__(self) -> int:
        """Return the number of entries that are in at least one cell."""
        return len(self._native)

    def statistics(self) -> CellStatistics:
        """Return the sizes of the index."""
        return CellStatistics(*self._native.statistics())

    def restore(self, rows: RowNumbers, ordinals: Integers, sieves: Sieves, paths: bytes) -> None:
        """Put entries back by their paths, in any order.

        rows: uint32[n]. ordinals: int64[n]. sieves: uint64[n, 2]. paths: all paths, end to end. The index is
        empty or has other entries. StateError if the paths are cut off, and then nothing changes.
        """
        self._native.restore(rows, ordinals, sieves, paths)

    def release_sieves(self, first: int, end: int) -> None:
        """Give back the memory of the sieves of rows that are not used any more, as far as they fill chunks."""
        self._native.release_sieves(first, end)

    def follow(self, changes: CellChanges, due: Integers, keys: npt.NDArray[np.uint32], sieves: Sieves) -> CellAnswers:
        """Apply changes and probe pages between them, without the interpreter lock.

        due: int64[n], ascending: page i is probed after the first due[i] changes. All changes are applied at last.
        keys: uint32[n, PARTS, levels], sieves: uint64[n, 2], of the n pages.

        Raises:
            StateError: the index does not have the entry of a removal as its path says. Earlier changes are
                applied, this one and later ones are not. Or a row is too large, and then nothing changes.
        """
        found = self._native.follow(
            changes.rows,
            changes.ordinals,
            changes.removes.view(np.uint8),
            changes.keys,
            changes.sieves,
            changes.paths,
            due.astype(np.int64),
            keys,
            sieves,
        )
        offsets, rows, probed = (
            np.frombuffer(found.offsets, np.int64),
            np.frombuffer(found.rows, np.uint32),
            np.frombuffer(found.probed, np.int64),
        )
        return CellAnswers(offsets, rows, probed, found.paths)


def path_keys(path: bytes) -> npt.NDArray[np.uint32]:
    """Return the keys of a path, part after part: uint32[n]."""
    return np.frombuffer(path[PARTS:], "<u4").astype(np.uint32)
