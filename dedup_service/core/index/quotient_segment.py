"""One segment of a quotient table: where an element is, and how it gets in and out, as kernels.

A table stores elements, each a 32-bit value under an identity: a hash of `HASH_BITS` bits, and a slot from 0
to `slots` - 1. It keeps no hash: the place of an element says most of it. A segment has the hashes of one
range in `rows` equal parts, and each part has one *home* place a slot. An element whose home is taken lies
behind it, elements of one home together (a *run*), runs in the order of their homes. Two bits a place say
which homes have a run (`HOMED`) and which elements continue one (`CONTINUES`); from them the home of every
element follows, so only the rest of its hash is stored beside the value. Equal hashes of all slots have
adjacent homes: one probe of all slots reads one cache line or two.

A place has three or four columns of 16 bits: tag, lower and upper half of the value, and the upper half of
the rest of the hash, which segments of a large table do not need (`WIDE` is 0). A tag has HOMED, CONTINUES and
`FLAG`, one bit for the caller, then the rest of the hash plus one; an empty place has 0 there.

Invariants: no empty place lies between the home of an element and the element; the last place of a segment is
empty, so every search ends; an empty place is no home of a run.

Source: Bender et al., "Don't thrash: how to cache your hash on flash", VLDB 2012 (quotient filter); Cleary,
"Compact hash tables using bidirectional linear probing", IEEE ToC 1984 (two bits a place).
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel_inline, load16, long_kernel, prefetch_address, store16

__all__ = [
    "BASE_BITS",
    "COLUMN_PAGES",
    "DEPTH",
    "DIRECTORY_DEPTH",
    "ELEMENTS",
    "FIELDS",
    "FLAG",
    "FULL",
    "HASH_BITS",
    "LIMIT",
    "MAX_NARROW",
    "MAX_WIDE",
    "MOVED",
    "PAGE_BYTES",
    "PAGE_PLACES",
    "PLACES",
    "PREFIX",
    "ROWS",
    "SCANNED",
    "SLOTS",
    "SPARSE",
    "SPARSE_LIMIT",
    "TABLE_COUNTERS",
    "USED",
    "WIDE",
    "QuotientArrays",
    "add",
    "find",
    "find_after",
    "find_run",
    "flag_of",
    "has_run",
    "prefetch_home",
    "rest_of",
    "row_of",
    "run_has",
    "run_start",
    "segment_of",
    "set_flag",
    "set_value",
    "tag_address",
    "tag_at",
    "take_out",
    "value_at",
    "write_in_order",
    "read_in_order",
]

HASH_BITS = 35
"""Bits of a hash: what a min-hash key and its part have."""

PAGE_PLACES = 2048
PAGE_BYTES = 2 * PAGE_PLACES
"""One column of so many places."""

COLUMN_PAGES = 32
"""Most pages of a column, so that rebuilding a segment takes less than some milliseconds."""

BASE_BITS = 7
"""A segment has 2**BASE_BITS page addresses: 4 columns of COLUMN_PAGES."""

DEPTH, PREFIX, ROWS, PLACES, USED, LIMIT, WIDE, SPARSE_LIMIT = range(8)
FIELDS = 8
"""Columns of the segments int64[n, FIELDS]. DEPTH, PREFIX: the segment has the hashes that begin with these bits.
ROWS: equal parts of its range. PLACES: of each column. USED: elements; from LIMIT on the segment has to grow, and
below SPARSE_LIMIT it has to shrink. WIDE: 1 if it has the fourth column."""

DIRECTORY_DEPTH, ELEMENTS, SLOTS, FULL, SPARSE, SCANNED, MOVED = range(7)
TABLE_COUNTERS = 7
"""Indexes into the counters int64[7]. DIRECTORY_DEPTH: bits of a hash that choose the segment. SLOTS: fixed. FULL: a
segment that refused an element; SPARSE: one that should shrink; -1 for none. SCANNED, MOVED: places that were looked
at and written since the table began, which tests bound."""

QuotientArrays = tuple[
    npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]
]
"""directory int32[2**depth]: number of the segment; segments int64[n, FIELDS]; pages int64[n << BASE_BITS], the
addresses of each segment's pages, column after column; counters int64[TABLE_COUNTERS]."""

HOMED, CONTINUES, FLAG = 1, 2, 4
_REST = 3
"""Shift of the rest of the hash."""
_ELEMENT = ~HOMED
_HAS = ~(HOMED | CONTINUES | FLAG)

MAX_NARROW, MAX_WIDE = (1 << 13) - 1, (1 << 29) - 1
"""Different rests that fit into a tag of one column and of two."""

_LOW, _HIGH, _UPPER_TAG = COLUMN_PAGES, 2 * COLUMN_PAGES, 3 * COLUMN_PAGES
_PAGE_SHIFT = 11
_IN_PAGE = PAGE_PLACES - 1


@kernel_inline
def segment_of(value: int, arrays: QuotientArrays) -> int:
    """Return the segment of a hash."""
    return int(arrays[0][value >> (HASH_BITS - arrays[3][DIRECTORY_DEPTH])])


@kernel_inline
def row_of(value: int, segment: int, segments: npt.NDArray[np.int64]) -> int:
    """Return the part of the segment's range to which a hash belongs."""
    width = HASH_BITS - segments[segment, DEPTH]
    return int(((value & ((np.int64(1) << width) - 1)) * segments[segment, ROWS]) >> width)


@kernel_inline
def first_of_row(row: int, width: int, rows: int) -> int:
    """Return the smallest hash, without its prefix, of a part."""
    return int(((np.int64(row) << width) + rows - 1) // rows)


@kernel_inline
def rest_of(value: int, row: int, segment: int, segments: npt.NDArray[np.int64]) -> int:
    """Return what a tag stores of a hash: its number within its part, plus one."""
    width = HASH_BITS - segments[segment, DEPTH]
    own = value & ((np.int64(1) << width) - 1)
    return int(own - first_of_row(row, width, segments[segment, ROWS]) + 1)


@kernel_inline
def tag_address(place: int, base: int, pages: npt.NDArray[np.int64]) -> int:
    """Return the address of the lower half of a tag. base: segment << BASE_BITS."""
    return int(pages[base + (place >> _PAGE_SHIFT)] + ((place & _IN_PAGE) << 1))


@kernel_inline
def tag_at(place: int, base: int, wide: int, pages: npt.NDArray[np.int64]) -> int:
    """Return the tag of a place."""
    page, at = base + (place >> _PAGE_SHIFT), (place & _IN_PAGE) << 1
    tag = load16(pages[page] + at)
    if wide:
        tag |= load16(pages[page + _UPPER_TAG] + at) << 16
    return tag


@kernel_inline
def put_tag(place: int, tag: int, base: int, wide: int, pages: npt.NDArray[np.int64]) -> None:
    """Write the tag of a place."""
    page, at = base + (place >> _PAGE_SHIFT), (place & _IN_PAGE) << 1
    store16(pages[page] + at, tag)
    if wide:
        store16(pages[page + _UPPER_TAG] + at, tag >> 16)


@kernel_inline
def value_at(place: int, base: int, pages: npt.NDArray[np.int64]) -> int:
    """Return the value of a place."""
    page, at = base + (place >> _PAGE_SHIFT), (place & _IN_PAGE) << 1
    return load16(pages[page + _LOW] + at) | (load16(pages[page + _HIGH] + at) << 16)


@kernel_inline
def set_value(place: int, value: int, base: int, pages: npt.NDArray[np.int64]) -> None:
    """Write the value of a place."""
    page, at = base + (place >> _PAGE_SHIFT), (place & _IN_PAGE) << 1
    store16(pages[page + _LOW] + at, value)
    store16(pages[page + _HIGH] + at, value >> 16)


@kernel_inline
def flag_of(place: int, base: int, pages: npt.NDArray[np.int64]) -> int:
    """Return FLAG if the flag of a place is set, or 0."""
    return load16(tag_address(place, base, pages)) & FLAG


@kernel_inline
def set_flag(place: int, on: bool, base: int, pages: npt.NDArray[np.int64]) -> None:
    """Set or clear the flag of a place."""
    address = tag_address(place, base, pages)
    tag = load16(address)
    store16(address, tag | FLAG if on else tag & ~FLAG)


@kernel_inline
def run_start(
    home: int, base: int, wide: int, pages: npt.NDArray[np.int64], counters: npt.NDArray[np.int64]
) -> int:
    """Return the place where the run of a home begins, or where it would; the place `home` is not empty."""
    place, runs = home, 0
    while place > 0:
        tag = tag_at(place - 1, base, wide, pages)
        if tag & _HAS == 0:
            break
        place -= 1
        runs += tag & HOMED
    counters[SCANNED] += home - place
    start = place
    while runs > 0:
        place += 1
        while load16(tag_address(place, base, pages)) & CONTINUES:
            place += 1
        runs -= 1
    counters[SCANNED] += place - start
    return place


@kernel_inline
def find(home: int, rest: int, segment: int, arrays: QuotientArrays) -> int:
    """Return the first place of an element, or -1."""
    _, segments, pages, counters = arrays
    base, wide = segment << BASE_BITS, segments[segment, WIDE]
    counters[SCANNED] += 1
    if not load16(tag_address(home, base, pages)) & HOMED:
        return -1
    place = run_start(home, base, wide, pages, counters)
    if tag_at(place, base, wide, pages) >> _REST == rest:
        return place
    return find_after(place, rest, segment, arrays)


@kernel_inline
def find_after(place: int, rest: int, segment: int, arrays: QuotientArrays) -> int:
    """Return the first place behind `place` in its run that has `rest`, or -1."""
    _, segments, pages, counters = arrays
    base, wide = segment << BASE_BITS, segments[segment, WIDE]
    while True:
        place += 1
        counters[SCANNED] += 1
        tag = tag_at(place, base, wide, pages)
        if not tag & CONTINUES:
            return -1
        if tag >> _REST == rest:
            return place


@kernel_inline
def has_run(home: int, base: int, arrays: QuotientArrays) -> bool:
    """Return whether an element has this home."""
    return bool(load16(tag_address(home, base, arrays[2])) & HOMED)


@kernel_inline
def find_run(home: int, segment: int, arrays: QuotientArrays) -> int:
    """Return the place where the run of a home begins; it has one."""
    _, segments, pages, counters = arrays
    return run_start(home, segment << BASE_BITS, segments[segment, WIDE], pages, counters)


@kernel_inline
def run_has(place: int, rest: int, base: int, wide: int, arrays: QuotientArrays) -> tuple[int, int]:
    """Return the first place of the run that begins at `place` that has `rest`, or -1, and where the run ends."""
    pages = arrays[2]
    at = place if tag_at(place, base, wide, pages) >> _REST == rest else -1
    while True:
        place += 1
        tag = tag_at(place, base, wide, pages)
        if not tag & CONTINUES:
            return at, place
        if at < 0 and tag >> _REST == rest:
            at = place


@kernel_inline
def prefetch_home(value: int, slots: int, arrays: QuotientArrays) -> None:
    """Fetch the cache line of the tags of a hash."""
    segment = segment_of(value, arrays)
    home = row_of(value, segment, arrays[1]) * slots
    prefetch_address(tag_address(home, segment << BASE_BITS, arrays[2]))


@kernel_inline
def add(home: int, rest: int, value: int, segment: int, arrays: QuotientArrays) -> int:
    """Store an element behind the others of its run and return its place, or -1 if the segment must grow first.

    Later elements up to the next empty place move by one.
    """
    _, segments, pages, counters = arrays
    base, wide = segment << BASE_BITS, segments[segment, WIDE]
    if segments[segment, USED] >= segments[segment, LIMIT]:
        counters[FULL] = segment
        return -1
    at_home = tag_at(home, base, wide, pages)
    continues = 0
    place = home
    if at_home & _HAS:
        place = run_start(home, base, wide, pages, counters)
        if at_home & HOMED:
            continues = CONTINUES
            place += 1
            while load16(tag_address(place, base, pages)) & CONTINUES:
                place += 1
    end = place
    while tag_at(end, base, wide, pages) & _HAS:
        end += 1
    counters[SCANNED] += end - place
    if end + 1 >= segments[segment, PLACES]:
        counters[FULL] = segment
        return -1
    counters[MOVED] += end - place + 1
    own = tag_at(end, base, wide, pages)
    while end > place:
        before = tag_at(end - 1, base, wide, pages)
        put_tag(end, (own & HOMED) | (before & _ELEMENT), base, wide, pages)
        set_value(end, value_at(end - 1, base, pages), base, pages)
        own = before
        end -= 1
    put_tag(place, (own & HOMED) | continues | (rest << _REST), base, wide, pages)
    set_value(place, value, base, pages)
    address = tag_address(home, base, pages)
    store16(address, load16(address) | HOMED)
    segments[segment, USED] += 1
    counters[ELEMENTS] += 1
    return place


@kernel_inline
def take_out(place: int, home: int, segment: int, arrays: QuotientArrays) -> None:
    """Remove the element at `place`, of the run of `home`; later ones that can be nearer home move by one."""
    _, segments, pages, counters = arrays
    base, wide = segment << BASE_BITS, segments[segment, WIDE]
    begins = not tag_at(place, base, wide, pages) & CONTINUES
    goes_on = tag_at(place + 1, base, wide, pages) & CONTINUES
    hole, latest = place, home  # latest: home of the run that is moved
    while True:
        tag = tag_at(hole + 1, base, wide, pages)
        if tag & _HAS == 0:
            break
        if not tag & CONTINUES:
            latest += 1
            while not load16(tag_address(latest, base, pages)) & HOMED:
                latest += 1
            if latest == hole + 1:
                break
        own = tag_at(hole, base, wide, pages)
        put_tag(hole, (own & HOMED) | (tag & _ELEMENT), base, wide, pages)
        set_value(hole, value_at(hole + 1, base, pages), base, pages)
        hole += 1
    counters[MOVED] += hole - place + 1
    put_tag(hole, tag_at(hole, base, wide, pages) & HOMED, base, wide, pages)
    if begins:
        address = tag_address(place if goes_on else home, base, pages)
        store16(address, load16(address) & ~(CONTINUES if goes_on else HOMED))
    segments[segment, USED] -= 1
    counters[ELEMENTS] -= 1
    if segments[segment, USED] < segments[segment, SPARSE_LIMIT]:
        counters[SPARSE] = segment


@long_kernel
def read_in_order(
    segment: int,
    arrays: QuotientArrays,
    hashes: npt.NDArray[np.int64],
    slots: npt.NDArray[np.uint8],
    values: npt.NDArray[np.uint32],
    flags: npt.NDArray[np.uint8],
) -> int:
    """Copy the elements of a segment, in the order of their homes, to the beginnings of columns; return their number."""
    _, segments, pages, counters = arrays
    base, wide = segment << BASE_BITS, segments[segment, WIDE]
    width, rows, all_slots = HASH_BITS - segments[segment, DEPTH], segments[segment, ROWS], counters[SLOTS]
    prefix = segments[segment, PREFIX] << width
    count, home, first = 0, -1, np.int64(0)
    for place in range(segments[segment, PLACES]):
        tag = tag_at(place, base, wide, pages)
        if tag & _HAS == 0:
            continue
        if not tag & CONTINUES:
            home += 1
            while not load16(tag_address(home, base, pages)) & HOMED:
                home += 1
            first = prefix + first_of_row(home // all_slots, width, rows)
        hashes[count] = first + (tag >> _REST) - 1
        slots[count] = home % all_slots
        values[count] = value_at(place, base, pages)
        flags[count] = (tag & FLAG) != 0
        count += 1
    return count


@long_kernel
def write_in_order(
    segment: int,
    arrays: QuotientArrays,
    count: int,
    hashes: npt.NDArray[np.int64],
    slots: npt.NDArray[np.uint8],
    values: npt.NDArray[np.uint32],
    flags: npt.NDArray[np.uint8],
    homes: npt.NDArray[np.int64],
    order: npt.NDArray[np.int32],
) -> int:
    """Fill a segment with those of the elements that are in its range; return their number, -1 if they do not fit.

    The columns are as `read_in_order` left them: nearly in the order of the new homes, so few are moved to sort them.
    """
    _, segments, pages, counters = arrays
    base, wide = segment << BASE_BITS, segments[segment, WIDE]
    depth, prefix, all_slots = segments[segment, DEPTH], segments[segment, PREFIX], counters[SLOTS]
    places = segments[segment, PLACES]
    for place in range(places):
        put_tag(place, 0, base, wide, pages)
    taken = 0
    for at in range(count):
        if hashes[at] >> (HASH_BITS - depth) != prefix:
            continue
        home = np.int64(row_of(hashes[at], segment, segments)) * all_slots + slots[at]
        to = taken
        while to > 0 and homes[to - 1] > home:
            homes[to], order[to] = homes[to - 1], order[to - 1]
            to -= 1
        homes[to], order[to] = home, at
        taken += 1
    place = latest = np.int64(-1)
    for number in range(taken):
        home, at = homes[number], order[number]
        place = max(home, place + 1)
        if place + 1 >= places:
            return -1
        rest = rest_of(hashes[at], home // all_slots, segment, segments)
        tag = (rest << _REST) | (CONTINUES if home == latest else 0) | (FLAG if flags[at] else 0)
        put_tag(place, tag, base, wide, pages)
        set_value(place, np.int64(values[at]), base, pages)
        address = tag_address(home, base, pages)
        store16(address, load16(address) | HOMED)
        latest = home
    counters[MOVED] += taken
    segments[segment, USED] = taken
    return taken
