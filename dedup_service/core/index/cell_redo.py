"""Changes of cells applied again, after the tables were loaded from pieces that were copied at different moments.

The log of changes has every insertion and removal since the first piece was copied, in order, each with the path of
its entry. For a cell there are three things to restore:

- Its row: setting it is idempotent, since rows are never used again, so the changes are applied in order and the
  last one counts, whether or not the piece has them already.
- How many entries it turned away: a count, so a change is applied only if it came after its piece of that table was
  copied. Each piece has a stamp for that, the place in the log.
- Its flag, and whether it exists: both follow from the other two after the last change.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.cell_table import LEVEL, MAX_TURNED, NO_ROW, PART, TAKEN, cell_hash, keys_of_part
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

__all__ = ["redo_changes"]

_AHEAD = 3

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


@kernel_inline
def prefetch_path(keys: npt.NDArray[np.uint32], taken: int, levels: npt.NDArray[np.uint8], cells: int) -> None:
    """Fetch the cells of a path, uint8[PARTS] and its keys from number `taken` on."""
    for part in range(PARTS):
        _, count = keys_of_part(levels[part])
        for level in range(count):
            prefetch_home(cell_hash(part, keys[taken + level]), cells)
        taken += count


@long_kernel
def redo_changes(
    start: int,
    is_added: bool,
    at: int,
    rows: npt.NDArray[np.uint32],
    slots: npt.NDArray[np.uint8],
    levels: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.uint32],
    path_starts: Integers,
    cells: int,
    turned: int,
    ends: Integers,
    stamps: Integers,
    progress: Integers,
) -> int:
    """Apply insertions or removals from number `start` on again; return how many are done.

    It stops where a table has to grow, and goes on with the same `progress` (int64[PROGRESS], zeros at first). rows:
    uint32[n]; slots: uint8[n]; levels: uint8[n, PARTS]; keys of all paths, those of entry i from path_starts[i] on.
    at, ends, stamps: place of these changes in the log, and the pieces of the second table; see `is_later`.
    """
    for number in range(start, len(rows)):
        if number + _AHEAD < len(rows):
            prefetch_path(keys, path_starts[number + _AHEAD], levels[number + _AHEAD], cells)
        taken = path_starts[number]
        row, slot = int(np.int64(rows[number])), int(np.int64(slots[number]))
        for part in range(PARTS):
            stored, count = keys_of_part(levels[number, part])
            if part >= progress[PART]:
                for level in range(progress[LEVEL], count):
                    holds = stored and level == count - 1
                    value = cell_hash(part, keys[taken + level])
                    done = True
                    if not holds and progress[TAKEN] == 0 and is_later(value, at, ends, stamps):
                        done = redo_count(value, slot, is_added, turned)
                    if done:
                        progress[TAKEN] = 1
                        done = redo_cell(value, slot, row, is_added, holds, cells, turned)
                    if not done:
                        progress[PART], progress[LEVEL] = part, level
                        return number
                    progress[TAKEN] = 0
                progress[LEVEL] = 0
            taken += count
        progress[PART] = 0
    return len(rows)
