"""The cells of the cell index: where a cell is, and insertion and removal as kernels (search: `cell_batch`).

A cell is identified by a part, a 32-bit key and a slot. The 35 bits of part and key are mixed by a bijection,
so that two cells never have the same hash, and are the identity of an element of a quotient table
(`quotient_segment`), whose value is the row of the cell's entry, or `NO_ROW`. The flag of an element says that
the cell turned entries away; how many is in a second table under the same identity, since few cells did.
A cell that holds nothing and turned nobody away is removed.

Kernels that store something return False when a table has no room in one segment. The caller lets that table
grow and calls again with the same `progress`: what was stored stays.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.quotient_segment import (
    add,
    flag_of,
    located,
    prefetch_home,
    seek,
    set_flag,
    set_value,
    take_out,
    value_at,
)
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel

NO_ROW = 0xFFFFFFFF
MAX_ROWS = NO_ROW
"""Rows are 0 to MAX_ROWS - 1."""

EMPTY_PART = 128
"""Level of a part in which an entry is in no cell, plus the number of its keys there, all of which turned it away."""

MAX_TURNED = (1 << 22) - 1
"""Entries that a cell turned away: at this count it stays, so the cell counts as overflowed for good."""

PART, LEVEL, TAKEN, STORED = range(4)
PROGRESS = 4
"""How far an insertion is: int64[4], zeros at first. Part and level that come next, keys of the path so far, and parts
in which the entry is in a cell."""

_HASH = np.int64((1 << 35) - 1)
_FIRST, _SECOND = np.int64(0x4F1BBCDCB), np.int64(0x5BD1E9955)
"""Odd multipliers below 2**35; each step of `cell_hash` can be undone, so no two cells share a hash."""


@kernel_inline
def cell_hash(part: int, key: np.uint32) -> int:
    """Return part and key, 35 bits, mixed by a bijection."""
    value = (np.int64(part) << np.int64(32)) | np.int64(key)
    value ^= value >> np.int64(18)
    value = (value * _FIRST) & _HASH
    value ^= value >> np.int64(17)
    value = (value * _SECOND) & _HASH
    return int(value ^ (value >> np.int64(18)))


@kernel_inline
def turn_away(value: int, slot: int, flagged: int, turned: int) -> bool:
    """Count one more entry that a cell turned away; False if the table has no room for the first one."""
    segment, home, rest = located(value, slot, turned)
    place, free = seek(home, rest, segment)
    if not flagged:
        return bool(add(free, home, rest, 1, segment, turned))
    count = value_at(place, segment)
    if count < MAX_TURNED:
        set_value(place, count + 1, segment)
    return True


@kernel_inline
def take_back(value: int, slot: int, turned: int) -> bool:
    """Count one entry fewer that a cell turned away; return whether it still counts some."""
    segment, home, rest = located(value, slot, turned)
    place, _ = seek(home, rest, segment)
    count = value_at(place, segment)
    if count == 1:
        take_out(place, home, segment, turned)
        return False
    if count < MAX_TURNED:
        set_value(place, count - 1, segment)
    return True


@kernel_inline
def keys_of_part(level: int) -> tuple[bool, int]:
    """Return whether an entry is in a cell of a part, and how many keys its path has there."""
    stored = level < EMPTY_PART
    return stored, level + 1 if stored else level - EMPTY_PART


@kernel_inline
def offer(row: int, value: int, slot: int, cells: int, turned: int) -> int:
    """Offer an entry to a cell: return 1 if it took the entry, 0 if it turned it away, -1 without room."""
    segment, home, rest = located(value, slot, cells)
    place, free = seek(home, rest, segment)
    if place < 0:
        return 1 if add(free, home, rest, row, segment, cells) else -1
    if value_at(place, segment) == NO_ROW:
        set_value(place, row, segment)
        return 1
    if not turn_away(value, slot, flag_of(place, segment), turned):
        return -1
    set_flag(place, True, segment)
    return 0


@kernel_inline
def prefetch_first(keys: npt.NDArray[np.uint32], cells: int) -> None:
    """Fetch the cells of the first key of each part: uint32[PARTS, levels]."""
    for part in range(PARTS):
        prefetch_home(cell_hash(part, keys[part, 0]), cells)


@kernel_inline
def insert_step(
    row: int,
    slot: int,
    keys: npt.NDArray[np.uint32],
    cells: int,
    turned: int,
    levels: npt.NDArray[np.uint8],
    path: npt.NDArray[np.uint32],
    progress: npt.NDArray[np.int64],
) -> bool:
    """Store an entry, in each part under the first key whose cell is free; False if a table has to grow first.

    keys: uint32[PARTS, levels]. levels: uint8[PARTS] receives where it is stored, path: uint32[keys] the keys up
    to there, of which there are progress[TAKEN].
    """
    for part in range(progress[PART], PARTS):
        if progress[LEVEL] == 0:
            levels[part] = EMPTY_PART
        for level in range(progress[LEVEL], keys.shape[1]):
            key = keys[part, level]
            if key == 0:
                break
            took = offer(row, cell_hash(part, key), slot, cells, turned)
            if took < 0:
                progress[PART], progress[LEVEL] = part, level
                return False
            path[progress[TAKEN]] = key
            progress[TAKEN] += 1
            if took:
                levels[part] = level
                progress[STORED] += 1
                break
            levels[part] = EMPTY_PART + level + 1
        progress[LEVEL] = 0
    return True


@kernel
def insert_entry(
    row: int,
    slot: int,
    keys: npt.NDArray[np.uint32],
    cells: int,
    turned: int,
    levels: npt.NDArray[np.uint8],
    path: npt.NDArray[np.uint32],
    progress: npt.NDArray[np.int64],
) -> bool:
    """Store one entry, as `insert_step` does."""
    prefetch_first(keys, cells)
    return bool(insert_step(row, slot, keys, cells, turned, levels, path, progress))


@kernel_inline
def remove_step(
    row: int,
    slot: int,
    levels: npt.NDArray[np.uint8],
    path: npt.NDArray[np.uint32],
    cells: int,
    turned: int,
) -> int:
    """Remove an entry by the levels and the path that its insertion returned; return in how many cells it was.

    Returns -1, and changes nothing, if it is not stored so. row: any for an entry in no cell.
    """
    held = 0
    for changes in (False, True):  # looks at all cells first
        taken = held = 0
        for part in range(PARTS):
            stored, count = keys_of_part(levels[part])
            for level in range(count):
                value = cell_hash(part, path[taken + level])
                holds = stored and level == count - 1
                if changes:
                    withdraw(holds, value, slot, cells, turned)
                elif not is_as_said(holds, row, value, slot, cells):
                    return -1
            taken += count
            held += stored
    return held


@kernel
def remove_entry(
    row: int,
    slot: int,
    levels: npt.NDArray[np.uint8],
    path: npt.NDArray[np.uint32],
    cells: int,
    turned: int,
) -> int:
    """Remove one entry, as `remove_step` does."""
    return int(remove_step(row, slot, levels, path, cells, turned))


@kernel_inline
def is_as_said(holds: bool, row: int, value: int, slot: int, cells: int) -> bool:
    """Return whether a cell holds a row, or, if it should not hold it, turned entries away."""
    segment, home, rest = located(value, slot, cells)
    place, _ = seek(home, rest, segment)
    if place < 0:
        return False
    return bool(value_at(place, segment) == row if holds else flag_of(place, segment) != 0)


@kernel_inline
def withdraw(holds: bool, value: int, slot: int, cells: int, turned: int) -> None:
    """Remove an entry from the cell that holds it, or from the count of one that turned it away."""
    segment, home, rest = located(value, slot, cells)
    place, _ = seek(home, rest, segment)
    if holds:
        set_value(place, NO_ROW, segment)
    else:
        set_flag(place, take_back(value, slot, turned), segment)
    if value_at(place, segment) == NO_ROW and not flag_of(place, segment):
        take_out(place, home, segment, cells)


@kernel_inline
def split_path(
    at: int,
    end: int,
    taken: int,
    paths: npt.NDArray[np.uint8],
    levels: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.uint32],
) -> int:
    """Split the path paths[at:end], or a longer piece that begins with one; return how many keys it has.

    levels: uint8[PARTS]; the keys are written from keys[taken] on. Returns -1 if the piece is too short.
    """
    if at + PARTS > end:
        return -1
    count = 0
    for part in range(PARTS):
        levels[part] = paths[at + part]
        count += keys_of_part(paths[at + part])[1]
    at += PARTS
    if at + 4 * count > end or taken + count > len(keys):
        return -1
    for key in range(taken, taken + count):
        keys[key] = (
            np.uint32(paths[at])
            | np.uint32(paths[at + 1]) << np.uint32(8)
            | np.uint32(paths[at + 2]) << np.uint32(16)
            | np.uint32(paths[at + 3]) << np.uint32(24)
        )
        at += 4
    return int(count)


@long_kernel
def split_paths(
    paths: npt.NDArray[np.uint8],
    levels: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint32],
) -> bool:
    """Split paths that lie end to end; False if their lengths are not as they say.

    paths: uint8[m]. Receive the levels: uint8[n, PARTS], and the keys of all paths, those of path i from starts[i]
    on: int64[n], uint32[(m - PARTS * n) / 4].
    """
    at = taken = 0
    for number in range(len(levels)):
        count = split_path(at, len(paths), taken, paths, levels[number], keys)
        if count < 0:
            return False
        starts[number] = taken
        taken += count
        at += PARTS + 4 * count
    return bool(at == len(paths))


@long_kernel
def restore_entries(
    start: int,
    rows: npt.NDArray[np.uint32],
    slots: npt.NDArray[np.uint8],
    levels: npt.NDArray[np.uint8],
    paths: npt.NDArray[np.uint32],
    path_starts: npt.NDArray[np.int64],
    cells: int,
    turned: int,
    progress: npt.NDArray[np.int64],
) -> int:
    """Put entries from number `start` on back where they were; return how many are done.

    It stops where a table has to grow. rows: uint32[n]; slots: uint8[n]; levels: uint8[n, PARTS]; paths:
    uint32[m], those of entry i from path_starts[i] on.
    """
    for number in range(start, len(rows)):
        taken = path_starts[number]
        for part in range(PARTS):
            stored, count = keys_of_part(levels[number, part])
            if part >= progress[PART]:
                for level in range(progress[LEVEL], count):
                    holds = stored and level == count - 1
                    value = cell_hash(part, paths[taken + level])
                    if not put_back(holds, rows[number], value, slots[number], cells, turned):
                        progress[PART], progress[LEVEL] = part, level
                        return number
                progress[LEVEL] = 0
            taken += count
        progress[PART] = 0
    return len(rows)


@kernel_inline
def put_back(holds: bool, row: int, value: int, slot: int, cells: int, turned: int) -> bool:
    """Let a cell hold a row, or count that it turned it away; False if a table has to grow first."""
    segment, home, rest = located(value, slot, cells)
    place, free = seek(home, rest, segment)
    if place < 0:
        if not add(free, home, rest, int(np.int64(row)) if holds else NO_ROW, segment, cells):
            return False
        place = free
    elif holds:
        set_value(place, int(np.int64(row)), segment)
    if not holds:
        if not turn_away(value, slot, flag_of(place, segment), turned):
            return False
        set_flag(place, True, segment)
    return True
