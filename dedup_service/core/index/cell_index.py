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

The index holds rows, numbers below 2**32 that the caller gives its entries. About 60 bytes an entry, sieves not
counted (docs/performance.md).

Slots do not depend on one another: the entries that a probe finds are the union of what it finds in each
slot alone, so that slots can be spread over machines.
Invariants: answers are a function of the insertions and removals in their order. Putting the live entries
back by their paths, in any order, gives the same index. Not thread-safe.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.evidence.keys import LEVELS, MAX_LEVELS, PARTS, unpacked_keys
from dedup_service.core.index.cell_batch import (
    BATCH_PROGRESS,
    CHANGE,
    DONE,
    ENTRIES,
    MORE_FOUND,
    PATH_KEYS,
    REFUSED,
    CellAnswers,
    CellChanges,
    PathColumns,
    follow_changes,
    probe_many,
    sift,
)
from dedup_service.core.index.cell_table import (
    EMPTY_PART,
    MAX_ROWS,
    PROGRESS,
    STORED,
    TAKEN,
    insert_entry,
    remove_entry,
    restore_entries,
    split_paths,
)
from dedup_service.core.index.quotient_table import QuotientTable
from dedup_service.core.index.row_words import RowWords, read_words, write_words, write_words_of

__all__ = [
    "MAX_SLOTS",
    "MOST_DIFFERING",
    "SIEVE_BYTES",
    "CellAnswers",
    "CellChanges",
    "CellRows",
    "CellStatistics",
    "path_keys",
    "path_size",
]

MAX_SLOTS = 64

SIEVE_BYTES = 16
"""Bytes of a sketch that the sieve compares."""

MIN_EQUAL = 0.58
"""Share of equal bits from which an entry passes the sieve: .9997 of the matches do, and 6.8% of the rest."""

MOST_DIFFERING = int(8 * SIEVE_BYTES * (1 - MIN_EQUAL))
"""Bits of the sieve in which an entry may differ from a page."""

_SIEVE_WORDS = SIEVE_BYTES // 8
_FOUND = 1 << 16
"""Rows for which a batch of probes has room at first."""

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


class CellRows:
    """Rows by the keys of their entries. slots: 1 to 64. levels: keys of each part, 1 to 32.

    A row is a number below 2**32 - 1 that the caller gives an entry, and may give another one once that entry
    was removed, but not with another sieve within one call of `follow`. Rows should be dense: each has 16 bytes for
    its sieve.

    >>> index = CellRows(slots=2, levels=1)
    >>> keys = np.array([[1], [2], [3], [4], [5], [6], [7], [8]], "<u4").tobytes()
    >>> path = index.insert(10, 0, keys, bytes(16))
    >>> rows, probed = index.probe(keys, bytes(16))
    >>> rows.tolist(), probed
    ([10], 1)
    """

    __slots__ = ("_cells", "_entries", "_found", "_levels", "_sieves", "_slots", "_turned")

    def __init__(self, *, slots: int = 8, levels: int = LEVELS) -> None:
        if not 1 <= slots <= MAX_SLOTS or not 1 <= levels <= MAX_LEVELS:
            raise ConfigurationError(
                f"a cell index has 1 to {MAX_SLOTS} slots and 1 to {MAX_LEVELS} levels, got {slots} and {levels}"
            )
        self._slots, self._levels = slots, levels
        self._cells, self._turned = QuotientTable(slots), QuotientTable(slots)
        self._sieves = RowWords(_SIEVE_WORDS)
        self._entries = 0
        self._found = np.empty(_FOUND, np.int64)

    def __len__(self) -> int:
        """Return the number of entries that are in at least one cell."""
        return self._entries

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self._slots

    @property
    def levels(self) -> int:
        """Keys of each part."""
        return self._levels

    @property
    def largest_copy(self) -> int:
        """Most cells that were copied while one insertion waited."""
        return max(self._cells.largest_copy, self._turned.largest_copy)

    @property
    def work(self) -> tuple[int, int]:
        """Places from home to element, and places written, over all insertions and copies so far."""
        (scanned, written), (others, more) = self._cells.work, self._turned.work
        return scanned + others, written + more

    @property
    def cell_bytes_in_use(self) -> int:
        """Memory of the cells without pages that are free."""
        return self._cells.bytes_in_use + self._turned.bytes_in_use

    def statistics(self) -> CellStatistics:
        """Return the sizes of the index."""
        return CellStatistics(
            entries=self._entries,
            cells=len(self._cells),
            overflowed=len(self._turned),
            bytes=self._cells.size_bytes + self._turned.size_bytes + self._sieves.size_bytes,
            sieve_bytes=self._sieves.size_bytes,
        )

    def insert(self, row: int, ordinal: int, keys: bytes, sieve: bytes) -> bytes:
        """Store an entry and return its path, by which it can be removed, or put back into an empty index.

        keys: packed (`core.evidence.keys`), b"" for none. sieve: SIEVE_BYTES bytes. The path has one byte a
        part for the level, and four for each key up to there.
        """
        self._make_room(row)
        write_words(row, np.frombuffer(sieve, np.uint64), self._sieves.addresses)
        levels, path = np.empty(PARTS, np.uint8), np.empty(PARTS * self._levels, np.uint32)
        progress = np.zeros(PROGRESS, np.int64)
        unpacked = unpacked_keys(keys, self._levels)
        while not insert_entry(
            row,
            ordinal % self._slots,
            unpacked,
            self._cells.address,
            self._turned.address,
            levels,
            path,
            progress,
        ):
            self._reshape()
        self._entries += progress[STORED] > 0
        return levels.tobytes() + path[: progress[TAKEN]].tobytes()

    def remove(self, row: int, ordinal: int, path: bytes) -> bool:
        """Remove an entry by its path; return False if the index does not have it so, and then nothing changes."""
        levels = _levels_of(path)
        if levels is None:
            return False
        slot, keys = ordinal % self._slots, path_keys(path)
        held = remove_entry(row, slot, levels, keys, self._cells.address, self._turned.address)
        if held < 0:
            return False
        self._reshape()
        self._entries -= held > 0
        return True

    def restore(self, rows: RowNumbers, ordinals: Integers, sieves: Sieves, paths: bytes) -> None:
        """Put entries back by their paths, in any order.

        rows: uint32[n]. ordinals: int64[n]. sieves: uint64[n, 2]. paths: all paths, end to end. The index is
        empty or has other entries. StateError if the paths are cut off, and then nothing changes.
        """
        count = len(rows)
        if not count:
            return
        levels, keys, starts = _split(paths, count)
        self._cells.reserve(int(np.count_nonzero(levels < EMPTY_PART)))
        self._sieves.make_room(int(rows.max()) + 1)
        write_words_of(rows, sieves, self._sieves.addresses)
        slots = (ordinals % self._slots).astype(np.uint8)
        done, progress = 0, np.zeros(PROGRESS, np.int64)
        while done < count:
            done = restore_entries(
                done,
                rows,
                slots,
                levels,
                keys,
                starts,
                self._cells.address,
                self._turned.address,
                progress,
            )
            self._reshape()
        self._entries += int(np.count_nonzero((levels < EMPTY_PART).any(axis=1)))

    def sieves(self, rows: RowNumbers) -> Sieves:
        """Return the sieves of rows: uint64[n, 2]; those of rows that were never stored are arbitrary."""
        if len(rows):
            self._sieves.make_room(int(rows.max()) + 1)
        return read_words(rows, _SIEVE_WORDS, self._sieves.addresses)

    def keep_sieves(self, first: int, gone: range = range(0)) -> None:
        """Have no memory for the sieves of new rows before `first`, which are not used, nor for rows that are gone."""
        self._sieves.skip(first)
        self._sieves.release(gone)

    def reserve(self, entries: int) -> None:
        """Prepare an empty index for so many entries."""
        self._cells.reserve(entries * PARTS)

    def probe(self, keys: bytes, sieve: bytes) -> tuple[RowNumbers, int]:
        """Return the rows of the entries that the keys lead to and that pass the sieve, ascending: uint32[m].

        keys, sieve: as for `insert`. The number is how many entries there were before the sieve.
        """
        if not keys:
            return np.empty(0, np.uint32), 0
        unpacked = unpacked_keys(keys, self._levels)[np.newaxis].copy()  # writable, as others: one compiled loop
        _, rows, probed = self.probe_many(unpacked, np.frombuffer(sieve, np.uint64).reshape(1, -1).copy())
        return rows, int(probed[0])

    def probe_many(self, keys: npt.NDArray[np.uint32], sieves: Sieves) -> tuple[Integers, RowNumbers, Integers]:
        """Return what the keys of many pages lead to: in one loop, without the interpreter lock.

        keys: uint32[n, PARTS, levels], 0 after the last key of a part. sieves: uint64[n, 2].

        Returns:
            offsets int64[n + 1] and rows uint32[m]: page i has rows[offsets[i]:offsets[i + 1]], ascending; and
            how many entries each page had before the sieve, int64[n].
        """
        offsets, done = np.zeros(len(keys) + 1, np.int64), 0
        while (done := probe_many(done, keys, self._cells.address, offsets, self._found)) < len(keys):
            self._double_found()
        rows, probed = self._sifted(sieves, offsets)
        return offsets, rows, probed

    def _sifted(self, sieves: Sieves, offsets: Integers) -> tuple[RowNumbers, Integers]:
        """Return what passes the sieve of what was found, and how many rows there were before; see `sift`."""
        probed = np.zeros(len(sieves), np.int64)
        return sift(sieves, MOST_DIFFERING, self._sieves.addresses, offsets, probed, self._found), probed

    def follow(self, changes: CellChanges, due: Integers, keys: npt.NDArray[np.uint32], sieves: Sieves) -> CellAnswers:
        """Apply changes and probe pages between them: in one loop, without the interpreter lock.

        due: int64[n], ascending: page i is probed after the first due[i] changes. All changes are applied at last.
        keys, sieves: of the n pages, as for `probe_many`.

        Raises:
            StateError: the index does not have the entry of a removal as its path says. Earlier changes are
                applied, this one and later ones are not. Or a row is too large, and then nothing changes.
        """
        inserted = changes.rows[~changes.removes]
        if len(inserted):
            self._make_room(int(inserted.max()))
        paths, offsets = PathColumns(changes), np.zeros(len(keys) + 1, np.int64)
        arguments = (
            _plain(changes.rows, np.uint32),
            (changes.ordinals % self._slots).astype(np.uint8),
            _plain(changes.removes, np.bool_),
            _plain(changes.keys, np.uint32),
            _plain(changes.sieves, np.uint64),
            paths.levels,
            paths.spans,
            paths.keys,
            paths.of,
            _plain(due, np.int64),
            _plain(keys, np.uint32),
            self._cells.address,
            self._turned.address,
            self._sieves.addresses,
            offsets,
        )
        progress = np.zeros(BATCH_PROGRESS, np.int64)
        progress[PATH_KEYS] = paths.given
        outcome = -1
        while outcome not in {DONE, REFUSED}:
            outcome = follow_changes(*arguments, self._found, progress)
            self._reshape()
            if outcome == MORE_FOUND:
                self._double_found()
        self._entries += int(progress[ENTRIES])
        if outcome == REFUSED:
            row = changes.rows[progress[CHANGE]]
            raise StateError(f"row {row} is not in the cells of its path; the index and its entries differ")
        rows, probed = self._sifted(_plain(sieves, np.uint64), offsets)
        return CellAnswers(offsets, rows, probed, paths.inserted(changes.removes))

    def _make_room(self, row: int) -> None:
        """Have room for the sieve of a row."""
        if not 0 <= row < MAX_ROWS:
            raise StateError(f"a row is a number from 0 to {MAX_ROWS - 1}, got {row}: the index is full")
        self._sieves.make_room(row + 1)

    def _double_found(self) -> None:
        """Have more room for the rows that a batch finds."""
        self._found = np.concatenate([self._found, np.empty_like(self._found)])

    def _reshape(self) -> None:
        """Let tables grow that refused a cell, and shrink from which most cells were removed."""
        for table in (self._cells, self._turned):
            table.grow()
            table.shrink()


def _plain(column: npt.NDArray[Any], kind: type) -> npt.NDArray[Any]:
    """Return an array of the one layout for which the loop is compiled."""
    if column.dtype == kind and column.flags.carray:  # what `require` asks for, which takes ten times as long
        return column
    return np.require(column, kind, ["C", "W"])


def _split(paths: bytes, count: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], Integers]:
    """Return levels: uint8[count, PARTS], the keys of all paths: uint32[m], and where those of each begin."""
    packed = np.frombuffer(paths, np.uint8)
    levels, starts = np.empty((count, PARTS), np.uint8), np.empty(count, np.int64)
    keys = np.empty(max(0, (len(packed) - PARTS * count)) // 4, np.uint32)
    if not split_paths(packed, levels, starts, keys):
        raise StateError(f"the paths of {count} entries are cut off or too long: {len(packed)} bytes")
    return levels, keys, starts


def _levels_of(path: bytes) -> npt.NDArray[np.uint8] | None:
    """Return the levels of a path; None if it has another length than they say."""
    if len(path) < PARTS or path_size(path) != len(path):
        return None
    return np.frombuffer(path[:PARTS], np.uint8).copy()


def path_keys(path: bytes) -> npt.NDArray[np.uint32]:
    """Return the keys of a path, part after part: uint32[n]."""
    return np.frombuffer(path[PARTS:], "<u4").astype(np.uint32)


def path_size(paths: bytes, start: int = 0) -> int:
    """Return how many bytes the path that begins at `start` has."""
    levels = paths[start : start + PARTS]
    return PARTS + 4 * sum(level + 1 if level < EMPTY_PART else level - EMPTY_PART for level in levels)
