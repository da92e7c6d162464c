"""Changes of cells applied again, after the tables were loaded from pieces that were copied at different moments.

The log of changes has every insertion and removal since the first piece was copied, in order, each with the path of
its entry. For a cell there are three things to restore:

- Its row: setting it is idempotent, since rows are never used again, so the changes are applied in order and the
  last one counts, whether or not the piece has them already.
- How many entries it turned away: a count, so a change is applied only if it came after its piece of that table was
  copied. Each piece has a stamp for that, the place in the log.
- Its flag, and whether it exists: both follow from the other two after the last change. A flag that the piece has is
  right unless the count changes later, and whatever changes the count sets the flag. So a change of the row alone
  leaves the flag, and needs no look at the counts.

So changes of different cells may be applied in any order. They are sorted by the hash, since neighbours in the table
share cache lines and pages, and lie in that order in memory, so that those that come next are read ahead of time.
Before that, tables get the places for what will come, by ranges of hashes: in this order, all that is new in a segment
would first crowd into its first places, and every insertion would walk over all of them.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.cell_table import MAX_TURNED, NO_ROW, cell_hash, keys_of_part
from dedup_service.core.index.quotient_segment import (
    ELEMENTS,
    HASH_BITS,
    add,
    field,
    flag_of,
    located,
    prefetch_home,
    seek,
    set_flag,
    set_value,
    take_out,
    value_at,
)
from dedup_service.core.kernels import kernel_inline, long_kernel

MAX_SLOTS = 64

SORTED_BITS = 16
"""Bits of a hash by which operations are sorted: so many that cells of one range are in the cache together."""

_AHEAD = 12

_SORTED_SHIFT = HASH_BITS - SORTED_BITS
_HASH = (1 << HASH_BITS) - 1
_SLOT_SHIFT = HASH_BITS
_HOLDS, _ADDED, _COUNTS = 1 << 41, 1 << 42, 1 << 43
"""An operation is an int64: hash, slot (6 bits) and flags. _HOLDS: the cell holds the entry, or has turned it away;
_ADDED: the entry is inserted, not removed; _COUNTS: the change came after the piece of the counts."""

Integers = npt.NDArray[np.int64]


@kernel_inline
def is_later(value: int, at: int, ends: Integers, stamps: Integers) -> bool:
    """Return whether the change at place `at` of the log came after the piece of a hash was copied.

    ends: int64[p], ascending, the hash behind each piece; stamps: int64[p], places in the log.
    """
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] > value:
            high = middle
        else:
            low = middle + 1
    return bool(at >= stamps[low])


@kernel_inline
def redo_count(value: int, slot: int, is_added: bool, turned: int) -> bool:
    """Change how many entries a cell turned away by one; False if the table has no room for the first one."""
    segment, home, rest = located(value, slot, turned)
    place, free = seek(home, rest, segment)
    if place < 0:
        return not is_added or add(free, home, rest, 1, segment, turned)
    count = value_at(place, segment)
    if is_added:
        set_value(place, min(count + 1, MAX_TURNED), segment)
    elif count == 1:
        take_out(place, home, segment, turned)
    elif count < MAX_TURNED:
        set_value(place, count - 1, segment)
    return True


@kernel_inline
def is_counted(value: int, slot: int, turned: int) -> bool:
    """Return whether a cell counts entries that it turned away."""
    if field(turned, ELEMENTS) == 0:
        return False
    segment, home, rest = located(value, slot, turned)
    place, _ = seek(home, rest, segment)
    return place >= 0


@kernel_inline
def redo_row(value: int, slot: int, row: int, is_added: bool, cells: int) -> bool:
    """Let a cell hold a row, or not any more; False without room for it."""
    segment, home, rest = located(value, slot, cells)
    place, free = seek(home, rest, segment)
    if place < 0:
        return not is_added or bool(add(free, home, rest, row, segment, cells))
    if is_added:
        set_value(place, row, segment)
    elif value_at(place, segment) == row:
        set_value(place, NO_ROW, segment)
        if not flag_of(place, segment):
            take_out(place, home, segment, cells)
    return True


@kernel_inline
def redo_flag(value: int, slot: int, cells: int, turned: int) -> bool:
    """Let a cell have the flag that its count says; False without room for it."""
    counted = is_counted(value, slot, turned)
    segment, home, rest = located(value, slot, cells)
    place, free = seek(home, rest, segment)
    if place < 0:
        if not counted:
            return True
        if not add(free, home, rest, NO_ROW, segment, cells):
            return False
        place = free
    set_flag(place, counted, segment)
    if not counted and value_at(place, segment) == NO_ROW:
        take_out(place, home, segment, cells)
    return True


@long_kernel
def list_operations(
    levels: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.uint32],
    path_starts: Integers,
    hashes: Integers,
    behind: Integers,
) -> None:
    """List the cells of paths, and count them by the first bits of their hash.

    levels: uint8[n, PARTS]; keys of all paths, those of entry i from path_starts[i] on. hashes: receives the hash of
    the cell of each key. behind: int64[1 << SORTED_BITS], zeros, receives where the cells of a range of hashes end
    when all are sorted by their ranges.
    """
    for number in range(len(levels)):
        at = path_starts[number]
        for part in range(PARTS):
            _, count = keys_of_part(levels[number, part])
            for _ in range(count):
                value = cell_hash(part, keys[at])
                hashes[at] = value
                behind[value >> _SORTED_SHIFT] += 1
                at += 1
    end = 0
    for place in range(len(behind)):
        end += behind[place]
        behind[place] = end


@long_kernel
def sort_operations(
    levels: npt.NDArray[np.uint8],
    path_starts: Integers,
    hashes: Integers,
    behind: Integers,
    entry_rows: npt.NDArray[np.uint32],
    slots: npt.NDArray[np.uint8],
    added: npt.NDArray[np.bool_],
    at: Integers,
    ends: Integers,
    stamps: Integers,
    cell_stamps: Integers,
    operations: Integers,
    rows: npt.NDArray[np.uint32],
    coming: Integers,
) -> None:
    """Write the operations in order of the ranges of their hashes, and within a range in order of the log.

    levels, path_starts, hashes, behind: of `list_operations`; `behind` changes. entry_rows: uint32[n], slots: uint8[n],
    added: bool[n], at: int64[n] of the entries, the last one the place in the log. ends, stamps: pieces of the second
    table; see `is_later`. cell_stamps: int64[1 << SORTED_BITS], place in the log when the cells of a range were copied.
    operations: for each receives hash, slot and flags; rows: the row; coming: int64[1 << SORTED_BITS], how many cells
    of each range will hold an entry that the copy has not.
    """
    for number in range(len(levels) - 1, -1, -1):
        key = path_starts[number + 1] if number + 1 < len(levels) else len(hashes)
        common = np.int64(slots[number]) << _SLOT_SHIFT
        if added[number]:
            common |= _ADDED
        for part in range(PARTS - 1, -1, -1):
            stored, count = keys_of_part(levels[number, part])
            for level in range(count - 1, -1, -1):
                key -= 1
                value = hashes[key]
                operation = value | common
                if stored and level == count - 1:
                    operation |= _HOLDS
                    if added[number] and at[number] >= cell_stamps[value >> _SORTED_SHIFT]:
                        coming[value >> _SORTED_SHIFT] += 1
                elif is_later(value, at[number], ends, stamps):
                    operation |= _COUNTS
                behind[value >> _SORTED_SHIFT] -= 1
                place = behind[value >> _SORTED_SHIFT]
                operations[place] = operation
                rows[place] = entry_rows[number]


def first_counts(operations: Integers) -> Integers:
    """Return how many cells of each range of hashes turned an entry away: int64[1 << SORTED_BITS].

    operations: of `sort_operations`. Cells that turned others away before count, too.
    """
    counts = _ADDED | _COUNTS
    cells = np.unique(operations[operations & (counts | _HOLDS) == counts] & (_HOLDS - 1))
    return np.bincount((cells & _HASH) >> _SORTED_SHIFT, minlength=1 << SORTED_BITS)


@long_kernel
def redo_operations(
    start: int,
    operations: Integers,
    rows: npt.NDArray[np.uint32],
    cells: int,
    turned: int,
    progress: Integers,
) -> int:
    """Apply the operations from number `start` on again; return how many are done.

    It stops where a table has to grow, and goes on with the same `progress`: int64[1], 0 at first. operations, rows:
    of `sort_operations`.
    """
    for number in range(start, len(operations)):
        if number + _AHEAD < len(operations):
            prefetch_home(operations[number + _AHEAD] & _HASH, cells)
        operation = operations[number]
        value, slot = operation & _HASH, (operation >> _SLOT_SHIFT) & (MAX_SLOTS - 1)
        is_added = operation & _ADDED != 0
        if operation & _HOLDS:
            if not redo_row(value, slot, int(np.int64(rows[number])), is_added, cells):
                return number
            continue
        if operation & _COUNTS and progress[0] == 0 and not redo_count(value, slot, is_added, turned):
            return number
        progress[0] = 1
        if not redo_flag(value, slot, cells, turned):
            return number
        progress[0] = 0
    return len(operations)
