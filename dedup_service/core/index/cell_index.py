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
share a key by chance: bits of two sketches of similarity J are equal with probability (1 + J)/2.

Slots do not depend on one another: the entries that a probe finds are the union of what it finds in each
slot alone, so that slots can be spread over machines.
Invariants: answers are a function of the insertions and removals in their order. Putting the live entries
back by their paths, in any order, gives the same index. Not thread-safe.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.evidence.keys import LEVELS, MAX_LEVELS, PARTS, unpacked_keys
from dedup_service.core.index.cell_table import (
    CELLS_USED,
    COUNTERS,
    EMPTY_PART,
    ENTRIES,
    FIRST_CELLS,
    FREE_ROW,
    OVERFLOWED,
    PROBED,
    Rows,
    insert_entry,
    larger_cells,
    probe_cells,
    remove_entry,
    restore_entries,
    room,
)

__all__ = ["MAX_SLOTS", "MOST_DIFFERING", "SIEVE_BYTES", "CellIndex", "CellStatistics", "path_keys", "path_size"]

MAX_SLOTS = 64
SIEVE_BYTES = 16
"""Bytes of a sketch that the sieve compares."""

MIN_EQUAL = 0.58
"""Share of equal bits from which an entry passes the sieve: .9997 of the matches do, and 6.8% of the rest."""

MOST_DIFFERING = int(8 * SIEVE_BYTES * (1 - MIN_EQUAL))
"""Bits of the sieve in which an entry may differ from a page."""

_FIRST_ROWS = 128


@dataclass(frozen=True, slots=True)
class CellStatistics:
    """Sizes of a cell index.

    entries: stored in at least one cell. cells: with an entry, or that turned some away. overflowed: those
    that turned some away. bytes: memory reserved for all arrays.
    """

    entries: int
    cells: int
    overflowed: int
    bytes: int


class CellIndex:
    """Entries by their keys. slots: 1 to 64. levels: keys of each part, 1 to 32.

    >>> index = CellIndex(slots=2, levels=1)
    >>> keys = np.array([[1], [2], [3], [4], [5], [6], [7], [8]], "<u4").tobytes()
    >>> path = index.insert(10, 0, keys, bytes(16))
    >>> index.probe(keys, bytes(16)).tolist()
    [10]
    """

    __slots__ = ("_cells", "_counters", "_found", "_levels", "_room_for", "_rows", "_slots")

    def __init__(self, *, slots: int = 8, levels: int = LEVELS) -> None:
        if not 1 <= slots <= MAX_SLOTS or not 1 <= levels <= MAX_LEVELS:
            raise ConfigurationError(
                f"a cell index has 1 to {MAX_SLOTS} slots and 1 to {MAX_LEVELS} levels, got {slots} and {levels}"
            )
        self._slots, self._levels = slots, levels
        self._cells = np.zeros((FIRST_CELLS, 3), np.uint32)
        self._rows: Rows = (np.empty(_FIRST_ROWS, np.int64), np.empty((_FIRST_ROWS, 2), np.uint64))
        self._counters = np.zeros(COUNTERS, np.int64)
        self._counters[FREE_ROW] = -1
        self._room_for = 0
        self._found = np.empty(PARTS * levels * slots, np.int64)

    def __len__(self) -> int:
        """Return the number of entries that are in at least one cell."""
        return int(self._counters[ENTRIES])

    @property
    def probed(self) -> int:
        """How many entries the last probe found before the sieve."""
        return int(self._counters[PROBED])

    def statistics(self) -> CellStatistics:
        """Return the sizes of the index."""
        return CellStatistics(
            entries=len(self),
            cells=int(self._counters[CELLS_USED]),
            overflowed=int(self._counters[OVERFLOWED]),
            bytes=self._cells.nbytes + sum(array.nbytes for array in self._rows),
        )

    def insert(self, sequence: int, ordinal: int, keys: bytes, sieve: bytes) -> bytes:
        """Store an entry and return its path, by which it can be removed, or put back into an empty index.

        keys: packed (`core.evidence.keys`), b"" for none. sieve: SIEVE_BYTES bytes. The path has one byte a
        part for the level, and four for each key up to there.
        """
        self._room_for -= 1
        if self._room_for < 0:
            self._make_room()
        levels, path = np.empty(PARTS, np.uint8), np.empty(PARTS * self._levels, np.uint32)
        taken = insert_entry(
            sequence,
            ordinal % self._slots,
            unpacked_keys(keys, self._levels),
            _sieve(sieve),
            self._cells,
            self._rows,
            self._counters,
            levels,
            path,
        )
        return levels.tobytes() + path[:taken].tobytes()

    def remove(self, sequence: int, ordinal: int, path: bytes) -> None:
        """Remove an entry by its path; StateError if the index does not have it so, and then nothing changes."""
        levels = np.frombuffer(path[:PARTS], np.uint8)
        if path_size(path) != len(path) or not remove_entry(
            sequence,
            ordinal % self._slots,
            levels.copy(),
            path_keys(path),
            self._cells,
            self._rows,
            self._counters,
        ):
            raise StateError(f"entry {sequence} is not in the cells of its path; the index and its entries differ")

    def restore(
        self,
        sequences: npt.NDArray[np.int64],
        ordinals: npt.NDArray[np.int64],
        sieves: npt.NDArray[np.uint64],
        paths: bytes,
    ) -> None:
        """Put entries back by their paths, in any order.

        sequences, ordinals: int64[n]. sieves: uint64[n, 2]. paths: all paths, end to end.
        """
        packed = np.frombuffer(paths, np.uint8)
        levels, keys, starts = (
            np.empty((len(sequences), PARTS), np.uint8),
            bytearray(),
            np.empty(len(sequences), np.int64),
        )
        at = 0
        for number in range(len(sequences)):
            levels[number] = packed[at : at + PARTS]
            end = at + path_size(paths, at)
            starts[number] = len(keys) // 4
            keys += paths[at + PARTS : end]
            at = end
        path_keys = np.frombuffer(keys, "<u4").astype(np.uint32, copy=False)
        slots = (ordinals % self._slots).astype(np.uint8)
        self._make_rows(len(self) + len(sequences))
        done = self._room_for = 0
        while True:
            done = restore_entries(
                done, sequences, slots, sieves, levels, path_keys, starts, self._cells, self._rows, self._counters
            )
            if done == len(sequences):
                return
            self._cells = larger_cells(self._cells)

    def probe(self, keys: bytes, sieve: bytes) -> npt.NDArray[np.int64]:
        """Return the sequences of the entries that the keys lead to and that pass the sieve: int64[m], ascending.

        keys, sieve: as for `insert`.
        """
        if not keys:
            self._counters[PROBED] = 0
            return self._found[:0].copy()
        count = probe_cells(
            unpacked_keys(keys, self._levels),
            self._slots,
            _sieve(sieve),
            MOST_DIFFERING,
            self._cells,
            self._rows,
            self._counters,
            self._found,
        )
        return self._found[:count].copy()

    def _make_room(self) -> None:
        """Make room for an entry, and count how many more there surely is room for."""
        self._make_rows(len(self) + 1)
        needed = PARTS * self._levels
        while self._counters[CELLS_USED] + needed > room(len(self._cells)):
            self._cells = larger_cells(self._cells)
        cells = (room(len(self._cells)) - int(self._counters[CELLS_USED])) // needed
        self._room_for = min(cells, len(self._rows[0]) - len(self)) - 1

    def _make_rows(self, needed: int) -> None:
        """Make room for so many entries, and for a quarter more than before at least."""
        sequences, sieves = self._rows
        if needed <= len(sequences):
            return
        size = max(needed, len(sequences) + len(sequences) // 4)
        grown: Rows = (np.empty(size, np.int64), np.empty((size, 2), np.uint64))
        grown[0][: len(sequences)], grown[1][: len(sieves)] = sequences, sieves
        self._rows = grown


def path_keys(path: bytes) -> npt.NDArray[np.uint32]:
    """Return the keys of a path, part after part: uint32[n]."""
    return np.frombuffer(path[PARTS:], "<u4").astype(np.uint32)


def path_size(paths: bytes, start: int = 0) -> int:
    """Return how many bytes the path that begins at `start` has."""
    levels = paths[start : start + PARTS]
    return PARTS + 4 * sum(level + 1 if level < EMPTY_PART else level - EMPTY_PART for level in levels)


def _sieve(sieve: bytes) -> npt.NDArray[np.uint64]:
    return np.frombuffer(sieve, np.uint64)
