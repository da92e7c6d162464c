"""The table of the cell index: where a cell is, and insertion, removal and search as kernels.

A cell is identified by a part, a 32-bit key and a slot. It is one row of an open-addressed table: key, the
row of its entry or `NO_ROW`, and a word with part, slot and the number of entries that it turned away. The
cells of one key lie behind one another whatever their slots, so that a probe of all slots reads one run of
memory. Cells that hold nothing and turned nobody away are removed; later cells move up, so the table does
not degrade however many entries are added and removed.
Invariants: at most 7 of 10 table slots are taken, so every search ends.

Source: Knuth, TAOCP 3, 6.4, algorithms L (linear probing) and R (deletion).
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.hash_table import steps
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel, popcount

__all__ = [
    "CELLS_USED",
    "COUNTERS",
    "EMPTY_PART",
    "ENTRIES",
    "FIRST_CELLS",
    "FREE_ROW",
    "MAX_PATH",
    "OVERFLOWED",
    "PROBED",
    "ROWS_USED",
    "Cells",
    "Rows",
    "insert_entry",
    "larger_cells",
    "probe_cells",
    "remove_entry",
    "restore_entries",
    "room",
]

Cells = npt.NDArray[np.uint32]
"""uint32[cells, 3]: key, row, word. A word of 0 marks an empty place."""

Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]
"""Of each row: its sequence int64[rows], or the next free row; the first bits of its sketch uint64[rows, 2]."""

FIRST_CELLS = 1024
"""Places of an empty table."""

KEY, ROW, WORD = 0, 1, 2
NO_ROW = np.uint32(0xFFFFFFFF)

ENTRIES, ROWS_USED, FREE_ROW, CELLS_USED, OVERFLOWED, PROBED = range(6)
COUNTERS = 6
"""Indexes into the counters int64[6]: entries stored in some cell, rows ever used, first free row or -1, cells, cells
that turned entries away, and the entries that the last probe found before the sieve."""

EMPTY_PART = 128
"""Level of a part in which an entry is in no cell, plus the number of its keys there, all of which turned it away."""

MAX_PATH = PARTS * 32
"""The most keys of a path."""

_USED = np.uint32(1 << 31)
_TURNED = np.uint32((1 << 22) - 1)
"""Entries that a cell turned away: at 4,194,303 the count stays, so the cell counts as overflowed for good."""

_PART_BITS, _SLOT_BITS = 28, 22
_MIX = np.uint64(0x9E3779B1)
_LOW32, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONE = np.uint64(1)


@kernel_inline
def room(cells: int) -> int:
    """Return how many of the places may be taken: 70%."""
    return cells * 7 // 10


@kernel_inline
def home(key: np.uint32, part: int, cells: int) -> int:
    """Return the place at which the search for the cells of a key begins."""
    mixed = ((np.uint64(key) ^ (np.uint64(part) << np.uint64(29))) * _MIX) & _LOW32
    return int(np.int64((mixed * np.uint64(cells)) >> _S32))


@kernel_inline
def identity(part: int, slot: int) -> np.uint32:
    """Return the upper bits of the word of a cell: that it is used, its part and its slot."""
    return _USED | (np.uint32(part) << np.uint32(_PART_BITS)) | (np.uint32(slot) << np.uint32(_SLOT_BITS))


@kernel_inline
def find(key: np.uint32, part: int, slot: int, cells: Cells) -> int:
    """Return the place of a cell, or the empty place where it belongs."""
    count = len(cells)
    wanted = identity(part, slot)
    at = home(key, part, count)
    while cells[at, WORD] != 0 and (cells[at, KEY] != key or (cells[at, WORD] & ~_TURNED) != wanted):
        at = at + 1 if at + 1 < count else 0
    return at


@kernel_inline
def create(at: int, key: np.uint32, part: int, slot: int, cells: Cells, counters: npt.NDArray[np.int64]) -> None:
    """Make a cell without an entry at an empty place."""
    cells[at, KEY] = key
    cells[at, ROW] = NO_ROW
    cells[at, WORD] = identity(part, slot)
    counters[CELLS_USED] += 1


@kernel_inline
def drop_if_bare(at: int, cells: Cells, counters: npt.NDArray[np.int64]) -> None:
    """Remove a cell without an entry that turned nobody away; later cells that can be nearer home move up."""
    if cells[at, ROW] != NO_ROW or (cells[at, WORD] & _TURNED) != 0:
        return
    count = len(cells)
    hole = scanned = at
    while True:
        scanned = scanned + 1 if scanned + 1 < count else 0
        if cells[scanned, WORD] == 0:
            break
        part = int((cells[scanned, WORD] >> np.uint32(_PART_BITS)) & np.uint32(PARTS - 1))
        if steps(home(cells[scanned, KEY], part, count), scanned, count) >= steps(hole, scanned, count):
            for column in range(3):
                cells[hole, column] = cells[scanned, column]
            hole = scanned
    cells[hole, WORD] = 0
    counters[CELLS_USED] -= 1


@kernel_inline
def turn_away(at: int, cells: Cells, counters: npt.NDArray[np.int64]) -> None:
    """Count one more entry that a cell turned away."""
    turned = cells[at, WORD] & _TURNED
    counters[OVERFLOWED] += turned == 0
    if turned < _TURNED:
        cells[at, WORD] += np.uint32(1)


@kernel_inline
def take_back(at: int, cells: Cells, counters: npt.NDArray[np.int64]) -> None:
    """Count one entry fewer that a cell turned away."""
    turned = cells[at, WORD] & _TURNED
    if turned < _TURNED:
        cells[at, WORD] -= np.uint32(1)
        counters[OVERFLOWED] -= turned == 1


@kernel_inline
def keys_of_part(level: int) -> tuple[bool, int]:
    """Return whether an entry is in a cell of a part, and how many keys its path has there."""
    stored = level < EMPTY_PART
    return stored, level + 1 if stored else level - EMPTY_PART


@kernel_inline
def new_row(sequence: int, sieve: npt.NDArray[np.uint64], rows: Rows, counters: npt.NDArray[np.int64]) -> int:
    """Return a row for an entry; the caller ensures that there is one. sieve: uint64[2]."""
    sequences, sieves = rows
    row = counters[FREE_ROW]
    if row >= 0:
        counters[FREE_ROW] = sequences[row]
    else:
        row = counters[ROWS_USED]
        counters[ROWS_USED] += 1
    sequences[row] = sequence
    sieves[row, 0], sieves[row, 1] = sieve[0], sieve[1]
    counters[ENTRIES] += 1
    return int(row)


@kernel_inline
def free_row(row: int, rows: Rows, counters: npt.NDArray[np.int64]) -> None:
    """Give back the row of an entry."""
    rows[0][row] = counters[FREE_ROW]
    counters[FREE_ROW] = row
    counters[ENTRIES] -= 1


@kernel
def insert_entry(
    sequence: int,
    slot: int,
    keys: npt.NDArray[np.uint32],
    sieve: npt.NDArray[np.uint64],
    cells: Cells,
    rows: Rows,
    counters: npt.NDArray[np.int64],
    levels: npt.NDArray[np.uint8],
    path: npt.NDArray[np.uint32],
) -> int:
    """Store an entry, in each part under the first key whose cell is free.

    keys: uint32[PARTS, levels]; sieve: uint64[2]. levels: uint8[PARTS] receives where it is stored, path:
    uint32[keys] the keys up to there. Returns how many keys the path has. The caller ensures that there is a
    row, and room for all keys.
    """
    row = new_row(sequence, sieve, rows, counters)
    taken = stored = 0
    for part in range(PARTS):
        levels[part] = EMPTY_PART
        for level in range(keys.shape[1]):
            key = keys[part, level]
            if key == 0:
                break
            path[taken] = key
            taken += 1
            at = find(key, part, slot, cells)
            if cells[at, WORD] == 0:
                create(at, key, part, slot, cells, counters)
            if cells[at, ROW] == NO_ROW:
                cells[at, ROW] = row
                levels[part] = level
                stored += 1
                break
            turn_away(at, cells, counters)
            levels[part] = EMPTY_PART + level + 1
    if stored == 0:
        free_row(row, rows, counters)
    return taken


@kernel
def remove_entry(
    sequence: int,
    slot: int,
    levels: npt.NDArray[np.uint8],
    path: npt.NDArray[np.uint32],
    cells: Cells,
    rows: Rows,
    counters: npt.NDArray[np.int64],
) -> bool:
    """Remove an entry by the levels and the path that its insertion returned.

    Returns False, and changes nothing, if it is not stored so.
    """
    row, taken = np.int64(-1), 0
    for part in range(PARTS):
        stored, count = keys_of_part(levels[part])
        for level in range(count):
            at = find(path[taken + level], part, slot, cells)
            if stored and level == count - 1:
                if cells[at, WORD] == 0 or cells[at, ROW] == NO_ROW or rows[0][cells[at, ROW]] != sequence:
                    return False
                row = np.int64(cells[at, ROW])
            elif cells[at, WORD] & _TURNED == 0:
                return False
        taken += count
    taken = 0
    for part in range(PARTS):
        stored, count = keys_of_part(levels[part])
        for level in range(count):
            at = find(path[taken + level], part, slot, cells)
            if stored and level == count - 1:
                cells[at, ROW] = NO_ROW
            else:
                take_back(at, cells, counters)
            drop_if_bare(at, cells, counters)
        taken += count
    if row >= 0:
        free_row(int(row), rows, counters)
    return True


@long_kernel
def restore_entries(
    start: int,
    sequences: npt.NDArray[np.int64],
    slots: npt.NDArray[np.uint8],
    sieves: npt.NDArray[np.uint64],
    levels: npt.NDArray[np.uint8],
    paths: npt.NDArray[np.uint32],
    path_starts: npt.NDArray[np.int64],
    cells: Cells,
    rows: Rows,
    counters: npt.NDArray[np.int64],
) -> int:
    """Put entries from number `start` on back where they were; return how many are done.

    It stops where the table has no room left for an entry. sequences: int64[n]; slots: uint8[n]; sieves:
    uint64[n, 2]; levels: uint8[n, PARTS]; paths: uint32[m], those of entry i from path_starts[i] on.
    """
    for number in range(start, len(sequences)):
        if counters[CELLS_USED] + MAX_PATH > room(len(cells)):
            return number
        row = new_row(sequences[number], sieves[number], rows, counters)
        taken = path_starts[number]
        in_cells = 0
        for part in range(PARTS):
            stored, count = keys_of_part(levels[number, part])
            for place in range(count):
                key = paths[taken + place]
                at = find(key, part, slots[number], cells)
                if cells[at, WORD] == 0:
                    create(at, key, part, slots[number], cells, counters)
                if stored and place == count - 1:
                    cells[at, ROW] = row
                    in_cells += 1
                else:
                    turn_away(at, cells, counters)
            taken += count
        if in_cells == 0:
            free_row(row, rows, counters)
    return len(sequences)


@kernel_inline
def collect(
    key: np.uint32,
    part: int,
    active: np.uint64,
    cells: Cells,
    found: npt.NDArray[np.int64],
    count: int,
) -> tuple[int, np.uint64]:
    """Append the rows in the cells of a key at the active slots, one bit each, to `found`.

    Returns the new count, and the slots whose cell turned entries away.
    """
    places = len(cells)
    overflowed = np.uint64(0)
    at = home(key, part, places)
    while cells[at, WORD] != 0:
        word = cells[at, WORD]
        if cells[at, KEY] == key and (word >> np.uint32(_PART_BITS)) & np.uint32(PARTS - 1) == part:
            bit = _ONE << np.uint64((word >> np.uint32(_SLOT_BITS)) & np.uint32(63))
            if active & bit:
                if cells[at, ROW] != NO_ROW:
                    found[count] = cells[at, ROW]
                    count += 1
                if word & _TURNED:
                    overflowed |= bit
        at = at + 1 if at + 1 < places else 0
    return count, overflowed


@kernel
def probe_cells(
    keys: npt.NDArray[np.uint32],
    slots: int,
    sieve: npt.NDArray[np.uint64],
    most_differing: int,
    cells: Cells,
    rows: Rows,
    counters: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
) -> int:
    """Find the entries that a page's keys lead to; return how many there are, each once, ascending.

    In each part all slots are looked at for the first key, and for the next one those whose cell turned
    entries away. keys: uint32[PARTS, levels]. sieve: uint64[2]; an entry of which more than `most_differing`
    of these bits differ is left out. found: int64[PARTS * levels * slots] receives the sequences.
    """
    count = 0
    for part in range(PARTS):
        active = ~np.uint64(0) >> np.uint64(64 - slots)
        for level in range(keys.shape[1]):
            if keys[part, level] == 0 or active == 0:
                break
            count, active = collect(keys[part, level], part, active, cells, found, count)
    if count > 1:
        found[:count] = np.sort(found[:count])
    passed = different = 0
    before = np.int64(-1)
    for place in range(count):
        row = found[place]
        if row == before:
            continue
        before = row
        different += 1
        bits = popcount(sieve[0] ^ rows[1][row, 0]) + popcount(sieve[1] ^ rows[1][row, 1])
        if bits <= most_differing:
            found[passed] = rows[0][row]
            passed += 1
    counters[PROBED] = different
    if passed > 1:
        found[:passed] = np.sort(found[:passed])
    return passed


@long_kernel
def larger_cells(cells: Cells) -> Cells:
    """Return the same cells in a table half as large again."""
    larger = np.zeros((len(cells) + len(cells) // 2, 3), np.uint32)
    slots_mask = np.uint32((1 << (_PART_BITS - _SLOT_BITS)) - 1)
    for place in range(len(cells)):
        word = cells[place, WORD]
        if word != 0:
            part = int((word >> np.uint32(_PART_BITS)) & np.uint32(PARTS - 1))
            slot = int((word >> np.uint32(_SLOT_BITS)) & slots_mask)
            at = find(cells[place, KEY], part, slot, larger)
            for column in range(3):
                larger[at, column] = cells[place, column]
    return larger
