"""The elements of a segment read to columns, and a segment filled from them, as kernels: how segments grow and split.

Elements come out in the order of their homes. Those of a new shape are counted by home; from the counts it follows
where each run begins; then each element goes to the next place of its run. No step depends on a comparison of two
elements, so a processor need not guess: that is what a sort of the nearly sorted homes took most of its time for.

An element is one int64 in a column: its hash, its slot (6 bits), and its flag (1 bit).
Terms, places and tags are those of `quotient_segment`.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.quotient_segment import (
    ALL_RESTS,
    CONTINUES,
    DEPTH,
    FIRST,
    FLAG,
    HASH_BITS,
    HOMED,
    MOVED,
    PAGE_PLACES,
    PLACES,
    PREFIX,
    REST,
    ROWS,
    SLOTS,
    USED,
    WIDE,
    change,
    field,
    set_upper,
    tag_address,
    upper_at,
    value_address,
)
from dedup_service.core.index.tag_blocks import ALL_OF_BLOCK, BLOCK, first_bit, tags_with
from dedup_service.core.kernels import kernel_inline, load16, load32, long_kernel, store16, store32, store64

HASH_SHIFT = 7
"""Bits of an element below its hash."""

_SLOT_SHIFT, _SLOT = 1, 63
_TAG_BYTES, _VALUE_BYTES = 2, 4


@kernel_inline
def quotient(number: int, divisor: int) -> int:
    """Return number // divisor, of a number from 0 to 2**53: a division of floating point is faster, and exact here.

    A quotient that is no integer is at least 1 / divisor below the next one, which is more than the error.
    """
    return int(np.int64(np.float64(number) / np.float64(divisor)))


@kernel_inline
def list_runs(segment: int, table: int, runs: npt.NDArray[np.int64]) -> None:
    """Write, of each run in order, the element with the rest 0 of its home."""
    slots, rows = field(table, SLOTS), field(segment, ROWS)
    width = HASH_BITS - field(segment, DEPTH)
    prefix = field(segment, PREFIX) << width
    count, row, first = 0, -1, 0
    for block in range(0, field(segment, PLACES), BLOCK):
        homed = tags_with(tag_address(block, segment), HOMED, HOMED)
        while homed:
            home = block + first_bit(homed)
            homed &= homed - 1
            if home >= (row + 1) * slots:
                row = quotient(home, slots)
                first = (prefix + quotient((row << width) + rows - 1, rows)) << HASH_SHIFT
            runs[count] = first | ((home - row * slots) << _SLOT_SHIFT)
            count += 1


@long_kernel
def read_in_order(
    segment: int,
    table: int,
    elements: npt.NDArray[np.int64],
    values: npt.NDArray[np.uint32],
    runs: npt.NDArray[np.int64],
) -> int:
    """Copy the elements of a segment, in the order of their homes, to columns; return their number.

    elements, values: receive them. runs: scratch. Each column has room for a number for each place of the segment.
    """
    list_runs(segment, table, runs)
    wide, count, run = field(segment, WIDE), np.int64(0), -1
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        tags, contents = tag_address(start, segment), value_address(start, segment)
        for block in range(0, PAGE_PLACES, BLOCK):
            there = tags_with(tags + _TAG_BYTES * block, ALL_RESTS, 0) ^ ALL_OF_BLOCK
            while there:
                at = block + first_bit(there)
                there &= there - 1
                tag = load16(tags + _TAG_BYTES * at)
                run += tag & CONTINUES == 0
                rest = (tag >> REST) - 1
                if wide:
                    rest += upper_at(start + at, wide, segment) * FIRST
                elements[count] = runs[run] + (rest << HASH_SHIFT) + (tag & FLAG != 0)
                values[count] = load32(contents + _VALUE_BYTES * at)
                count += 1
    return int(count)


@kernel_inline
def scaled_hash(element: int, width: int, rows: int) -> int:
    """Return the hash of an element within its segment times the rows: the row from bit `width` on."""
    return int(((element >> HASH_SHIFT) & ((np.int64(1) << width) - 1)) * rows)


@kernel_inline
def home_in(scaled: int, element: int, width: int, slots: int) -> int:
    """Return the home of an element, by `scaled_hash`."""
    return (scaled >> width) * slots + ((element >> _SLOT_SHIFT) & _SLOT)


@kernel_inline
def place_runs(segment: int, slots: int, next_places: npt.NDArray[np.int64]) -> bool:
    """Turn the number of elements of each home into twice the place where its run begins; False if they do not fit.

    Then the tags of the segment have the bits of homes, and are empty otherwise.
    """
    places, homes = field(segment, PLACES), field(segment, ROWS) * slots
    free = np.int64(0)
    for home in range(homes):
        count = next_places[home]
        place = max(np.int64(home), free)
        next_places[home] = place << 1 | (count > 0)
        free = place + count if count > 0 else free
    if free >= places:
        return False
    for start in range(0, places, PAGE_PLACES):
        tags = tag_address(start, segment)
        for at in range(max(0, min(homes - start, PAGE_PLACES))):
            store16(tags + _TAG_BYTES * at, next_places[start + at] & 1)
            next_places[start + at] &= -2
        for at in range(max(0, homes - start), PAGE_PLACES):
            store16(tags + _TAG_BYTES * at, 0)
    return True


@long_kernel
def write_in_order(
    segment: int,
    table: int,
    count: int,
    elements: npt.NDArray[np.int64],
    values: npt.NDArray[np.uint32],
    next_places: npt.NDArray[np.int64],
) -> int:
    """Fill a segment with those of `count` elements that are in its range.

    Returns their number, -1 if they do not fit. elements, values: as `read_in_order` left them. next_places: scratch
    for a number for each place of the segment.
    """
    wide, slots, prefix = field(segment, WIDE), field(table, SLOTS), field(segment, PREFIX)
    width, rows = HASH_BITS - field(segment, DEPTH), field(segment, ROWS)
    shift, within = HASH_SHIFT + width, int((np.int64(1) << width) - 1)
    next_places[: rows * slots] = 0
    taken = 0
    for at in range(count):
        if elements[at] >> shift == prefix:
            next_places[home_in(scaled_hash(elements[at], width, rows), elements[at], width, slots)] += 1
            taken += 1
    if not place_runs(segment, slots, next_places):
        return -1
    for at in range(count):
        element = elements[at]
        if element >> shift == prefix:
            scaled = scaled_hash(element, width, rows)
            home, lower = home_in(scaled, element, width, slots), quotient(scaled & within, rows)
            place, continues = next_places[home] >> 1, next_places[home] & 1
            next_places[home] = (place + 1) << 1 | 1
            if wide:
                set_upper(place, lower // FIRST, wide, segment)
                lower %= FIRST
            tags = tag_address(place, segment)
            bits = (load16(tags) & HOMED) | continues * CONTINUES | (element & 1) * FLAG
            store16(tags, bits | ((lower + 1) << REST))
            store32(value_address(place, segment), int(np.int64(values[at])))
    change(table, MOVED, taken)
    store64(segment + 8 * USED, taken)
    return taken
