"""Changes of cells applied again, after the tables were loaded from pieces that were copied at different moments.

The log of changes has every insertion and removal since the first piece was copied, in order, each with the path of
its entry. For a cell there are three things to restore:

- Its row: setting it is idempotent, since rows are never used again, so the changes are applied in order and the
  last one counts, whether or not the piece has them already.
- How many entries it turned away: a count, so a change is applied only if it came after its piece of that table was
  copied. Each piece has a stamp for that, the place in the log.
- Its flag, and whether it exists: both follow from the other two after the last change.

So changes of different cells may be applied in any order. They are sorted by the hash, since neighbours in the table
share cache lines and pages: 5 µs an entry in order of the log, 1 µs sorted, at 10^7 entries.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.cell_table import MAX_TURNED, NO_ROW, cell_hash, keys_of_part
from dedup_service.core.index.quotient_segment import (
    ELEMENTS,
    add,
    field,
    located,
    prefetch_home,
    seek,
    set_flag,
    set_value,
    take_out,
    value_at,
)
from dedup_service.core.kernels import kernel_inline, long_kernel

__all__ = ["list_operations", "redo_operations"]

_AHEAD = 8

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
def redo_cell(value: int, slot: int, row: int, is_added: bool, holds: bool, cells: int, turned: int) -> bool:
    """Let a cell hold a row, or not any more, with the flag that its count says; False without room for it.

    row: of the entry, which the cell holds, or turned away if `holds` is false.
    """
    counted = is_counted(value, slot, turned)
    segment, home, rest = located(value, slot, cells)
    place, free = seek(home, rest, segment)
    if place < 0:
        takes = is_added and holds
        if not takes and not counted:
            return True
        if not add(free, home, rest, row if takes else NO_ROW, segment, cells):
            return False
        place = free
    elif holds and is_added:
        set_value(place, row, segment)
    elif holds and value_at(place, segment) == row:
        set_value(place, NO_ROW, segment)
    set_flag(place, counted, segment)
    if not counted and value_at(place, segment) == NO_ROW:
        take_out(place, home, segment, cells)
    return True


@long_kernel
def list_operations(
    levels: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.uint32],
    path_starts: Integers,
    values: Integers,
    entries: npt.NDArray[np.uint32],
    holds: npt.NDArray[np.bool_],
) -> None:
    """List the cells of paths, those of an entry in order.

    levels: uint8[n, PARTS]; keys of all paths, those of entry i from path_starts[i] on. values, entries, holds: for
    each key receive the hash of its cell, the number of the entry, and whether the cell holds it.
    """
    for number in range(len(levels)):
        at = path_starts[number]
        for part in range(PARTS):
            stored, count = keys_of_part(levels[number, part])
            for level in range(count):
                values[at] = cell_hash(part, keys[at])
                entries[at] = number
                holds[at] = stored and level == count - 1
                at += 1


@long_kernel
def redo_operations(
    start: int,
    order: Integers,
    values: Integers,
    entries: npt.NDArray[np.uint32],
    holds: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.uint32],
    slots: npt.NDArray[np.uint8],
    added: npt.NDArray[np.bool_],
    at: Integers,
    cells: int,
    turned: int,
    ends: Integers,
    stamps: Integers,
    progress: Integers,
) -> int:
    """Apply the operations order[start:] again; return how many are done.

    It stops where a table has to grow, and goes on with the same `progress`: int64[1], 0 at first. values, entries,
    holds: of `list_operations`. rows: uint32[n], slots: uint8[n], added: bool[n], at: int64[n] of the entries, the
    last one the place in the log. ends, stamps: pieces of the second table; see `is_later`.
    """
    for number in range(start, len(order)):
        if number + _AHEAD < len(order):
            prefetch_home(values[order[number + _AHEAD]], cells)
        operation = order[number]
        entry, value, is_holder = entries[operation], values[operation], holds[operation]
        row, slot, is_added = int(np.int64(rows[entry])), int(np.int64(slots[entry])), added[entry]
        counts = not is_holder and progress[0] == 0 and is_later(value, at[entry], ends, stamps)
        if counts and not redo_count(value, slot, is_added, turned):
            return number
        progress[0] = 1
        if not redo_cell(value, slot, row, is_added, is_holder, cells, turned):
            return number
        progress[0] = 0
    return len(order)
