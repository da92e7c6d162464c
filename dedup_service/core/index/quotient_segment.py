"""One segment of a quotient table: where an element is, and how it gets in and out, as kernels.

A table stores elements, each a 32-bit value under an identity: a hash of `HASH_BITS` bits, and a slot from 0
to `slots` - 1. It keeps no hash: the place of an element says most of it. A segment has the hashes of one
range in `rows` equal parts, and each part has one *home* place a slot. An element whose home is taken lies
behind it, elements of one home together (a *run*), runs in the order of their homes. Two bits a place say
which homes have a run (`HOMED`) and which elements continue one (`CONTINUES`); from them the home of every
element follows, so only the rest of its hash is stored beside the value. Equal hashes of all slots have
adjacent homes: one probe of all slots reads one cache line or two.

A place has a tag of 16 bits, a value of 32, and in segments of tables up to some million elements 8 bits more of
the rest of the hash (`WIDE` is BYTE_MORE), of small ones 16 (WORD_MORE). A tag has HOMED, CONTINUES and `FLAG`, one
bit for the caller, then the first part of the rest, which is not 0; an empty place has 0 there. Each column lies in
pages of `PAGE_PLACES` places, one of bytes in pages of twice as many; nearly all loops stay within one, so they step
from address to address.

Invariants: no empty place lies between the home of an element and the element; the last place of a segment is
empty, so every search ends; an empty place is no home of a run.

Source: Bender et al., "Don't thrash: how to cache your hash on flash", VLDB 2012 (quotient filter); Cleary,
"Compact hash tables using bidirectional linear probing", IEEE ToC 1984 (two bits a place).

The elements of a segment read to columns, and a segment filled from them, as kernels: how segments grow and split.

Elements come out in the order of their homes. Those of a new shape are counted by home; from the counts it follows
where each run begins; then each element goes to the next place of its run. No step depends on a comparison of two
elements, so a processor need not guess: that is what a sort of the nearly sorted homes took most of its time for.

An element is one int64 in a column: its hash, its slot (6 bits), and its flag (1 bit).
Terms, places and tags are those of `quotient_segment`.

Pieces of a quotient table as bytes: a segment is copied out and back in without a look at its elements.

A piece is the first words of a segment (`quotient_segment.FIELDS`), then its columns: tags, values and, if tags have
them, their upper halves. A table never joins segments, so a walk that goes on at the end of the range just copied
tiles the hash space, whatever is split meanwhile.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.block_lines import bit_length
from dedup_service.core.index.tag_blocks import (
    ALL_OF_BLOCK,
    BLOCK,
    BLOCK_BYTES,
    first_bit,
    move_tags,
    move_values,
    tags_with,
)
from dedup_service.core.kernels import (
    kernel,
    kernel_inline,
    load8,
    load16,
    load32,
    load64,
    long_kernel,
    popcount,
    prefetch_address,
    store8,
    store16,
    store32,
    store64,
)

HASH_BITS = 35
"""Bits of a hash: what a min-hash key and its part have."""

PAGE_PLACES = 2048
"""Places of a page of a column."""

COLUMN_PAGES = 32
"""Most pages of a column, so that rebuilding a segment takes less than some milliseconds."""

COLUMNS = 3
"""Tags, values, and the upper halves of wide tags."""

DEPTH, PREFIX, ROWS, PLACES, USED, LIMIT, WIDE, SPARSE_LIMIT, NUMBER = range(9)
FIELDS = 9
"""First words of a segment, int64. DEPTH, PREFIX: it has the hashes that begin with these bits. ROWS: equal parts of
its range. PLACES: of each column. USED: elements; from LIMIT on the segment has to grow, and below SPARSE_LIMIT it
has to shrink. WIDE: WORD_MORE or BYTE_MORE if tags have an upper half, else 0. NUMBER: of the segment. COLUMN_PAGES
addresses of pages follow for each column."""

_TAGS = 8 * FIELDS
_VALUES, _UPPER = _TAGS + 8 * COLUMN_PAGES, _TAGS + 16 * COLUMN_PAGES

DIRECTORY, DIRECTORY_DEPTH, ELEMENTS, SLOTS, FULL, SPARSE, SCANNED, MOVED = range(8)
TABLE_FIELDS = 8
"""Words of a table, int64. DIRECTORY: address of the addresses of segments, one for each value of the first
DIRECTORY_DEPTH bits of a hash. SLOTS: fixed. FULL: number of a segment that refused an element; SPARSE: of one that
should shrink; -1 for none. SCANNED, MOVED: places that were passed in search of a run, and written, since the table
began; tests bound them.

Kernels get tables and segments by address: as tuples of arrays, every step would count references to each array,
which made a probe take 1.6 times as long."""

HOMED, CONTINUES, FLAG = 1, 2, 4
REST = 3
ALL_RESTS = (1 << 16) - (1 << REST)
FIRST = (1 << 13) - 1
"""Rests that the lower half of a tag can tell apart: 1 to FIRST."""

MAX_NARROW, MAX_MIDDLE, MAX_WIDE = FIRST, FIRST << 8, FIRST << 16
"""Rests that a tag can tell apart without its upper half, and with one of 8 or 16 bits."""

WORD_MORE, BYTE_MORE = 1, 2
"""Kinds of upper halves: 16 and 8 bits."""

_LINE_BYTES = 64
"""Of a line of the processor's caches."""

_PAGE_SHIFT, _IN_PAGE = 11, PAGE_PLACES - 1
_TAG_PAGE = 2 * PAGE_PLACES
_BYTES_SHIFT, _IN_BYTES = _PAGE_SHIFT + 1, 2 * PAGE_PLACES - 1


@kernel_inline
def field(record: int, number: int) -> int:
    """Return a word of a table or of a segment."""
    return load64(record + 8 * number)


@kernel_inline
def change(record: int, number: int, difference: int) -> None:
    """Add to a word of a table or of a segment."""
    store64(record + 8 * number, load64(record + 8 * number) + difference)


@kernel_inline
def segment_of(value: int, table: int) -> int:
    """Return the segment of a hash."""
    return load64(field(table, DIRECTORY) + ((value >> (HASH_BITS - field(table, DIRECTORY_DEPTH))) << 3))


@kernel_inline
def row_of(value: int, segment: int) -> int:
    """Return the part of the segment's range to which a hash belongs."""
    width = HASH_BITS - field(segment, DEPTH)
    return int(((value & ((np.int64(1) << width) - 1)) * field(segment, ROWS)) >> width)


@kernel_inline
def first_of_row(row: int, width: int, rows: int) -> int:
    """Return the smallest hash, without its prefix, of a part."""
    return int(((np.int64(row) << width) + rows - 1) // rows)


@kernel_inline
def located(value: int, slot: int, table: int) -> tuple[int, int, int]:
    """Return segment, home and rest, which is the number of a hash within its part, of an identity."""
    segment = segment_of(value, table)
    width = HASH_BITS - field(segment, DEPTH)
    row = row_of(value, segment)
    rest = (value & ((np.int64(1) << width) - 1)) - first_of_row(row, width, field(segment, ROWS))
    return segment, row * field(table, SLOTS) + slot, int(rest)


@kernel_inline
def tag_address(place: int, segment: int) -> int:
    """Return the address of a tag."""
    return load64(segment + _TAGS + ((place >> _PAGE_SHIFT) << 3)) + ((place & _IN_PAGE) << 1)


@kernel_inline
def upper_address(place: int, segment: int) -> int:
    """Return the address of an upper half of 16 bits."""
    return load64(segment + _UPPER + ((place >> _PAGE_SHIFT) << 3)) + ((place & _IN_PAGE) << 1)


@kernel_inline
def upper_byte_address(place: int, segment: int) -> int:
    """Return the address of an upper half of 8 bits."""
    return load64(segment + _UPPER + ((place >> _BYTES_SHIFT) << 3)) + (place & _IN_BYTES)


@kernel_inline
def upper_at(place: int, wide: int, segment: int) -> int:
    """Return the upper half of a tag; there is one."""
    if wide == BYTE_MORE:
        return load8(upper_byte_address(place, segment))
    return load16(upper_address(place, segment))


@kernel_inline
def set_upper(place: int, value: int, wide: int, segment: int) -> None:
    """Write the upper half of a tag; there is one."""
    if wide == BYTE_MORE:
        store8(upper_byte_address(place, segment), value)
    else:
        store16(upper_address(place, segment), value)


@kernel_inline
def shift_uppers(place: int, end: int, wide: int, segment: int) -> None:
    """Move the upper halves from `place` to the place before `end` on by one."""
    if wide == WORD_MORE:
        for at in range(end, place, -1):
            store16(upper_address(at, segment), load16(upper_address(at - 1, segment)))
        return
    while end > place:  # from page to page, backwards
        first = max(place, end & ~_IN_BYTES)
        address = upper_byte_address(end, segment)
        for _ in range(end - first):
            store8(address, load8(address - 1))
            address -= 1
        end = first
        if end > place:
            store8(address, load8(upper_byte_address(end - 1, segment)))
            end -= 1


@kernel_inline
def value_address(place: int, segment: int) -> int:
    """Return the address of a value."""
    return load64(segment + _VALUES + ((place >> _PAGE_SHIFT) << 3)) + ((place & _IN_PAGE) << 2)


@kernel_inline
def value_at(place: int, segment: int) -> int:
    """Return the value of a place."""
    return load32(value_address(place, segment))


@kernel_inline
def set_value(place: int, value: int, segment: int) -> None:
    """Write the value of a place."""
    store32(value_address(place, segment), value)


@kernel_inline
def flag_of(place: int, segment: int) -> int:
    """Return FLAG if the flag of a place is set, or 0."""
    return load16(tag_address(place, segment)) & FLAG


@kernel_inline
def set_flag(place: int, on: bool, segment: int) -> None:
    """Set or clear the flag of a place."""
    address = tag_address(place, segment)
    tag = load16(address)
    store16(address, tag | FLAG if on else tag & ~FLAG)


@kernel_inline
def has_run(home: int, segment: int) -> bool:
    """Return whether an element has this home."""
    return bool(load16(tag_address(home, segment)) & HOMED)


@kernel_inline
def prefetch_home(value: int, table: int) -> None:
    """Fetch the cache lines of the tags and of the values at the first home of a hash."""
    segment = segment_of(value, table)
    home = row_of(value, segment) * field(table, SLOTS)
    tags = tag_address(home, segment)
    prefetch_address(tags)
    prefetch_address(tags + BLOCK_BYTES)
    prefetch_values(home, segment)
    if field(segment, WIDE) == BYTE_MORE:
        prefetch_address(upper_byte_address(home, segment))


@kernel_inline
def first_of_run(home: int, segment: int) -> int:
    """Return the place where the run of a home begins, or where it would; the place `home` is not empty.

    Looks back for the beginning of the cluster, counts the runs of homes before, and passes over as many.
    """
    block = home & -BLOCK
    tags = tag_address(block, segment)
    before = (1 << (home - block)) - 1
    empty, runs = tags_with(tags, ALL_RESTS, 0) & before, 0
    while empty == 0 and block > 0:
        runs += popcount(np.uint64(tags_with(tags, HOMED, HOMED) & before))
        block -= BLOCK
        tags = tag_address(block, segment)
        before = ALL_OF_BLOCK
        empty = tags_with(tags, ALL_RESTS, 0)
    begin = bit_length(empty)
    runs += popcount(np.uint64((tags_with(tags, HOMED, HOMED) & before) >> begin))
    if runs == 0:
        return int(block + begin)
    begins = ((tags_with(tags, CONTINUES, 0) >> begin) << begin) & ~(1 << begin)
    if begin == BLOCK:  # the cluster begins in the next block
        block += BLOCK
        begins = tags_with(tag_address(block, segment), CONTINUES, 0) & ~1
    passed = popcount(np.uint64(begins))
    while passed < runs:
        runs -= passed
        block += BLOCK
        begins = tags_with(tag_address(block, segment), CONTINUES, 0)
        passed = popcount(np.uint64(begins))
    for _ in range(runs - 1):
        begins &= begins - 1
    return int(block + first_bit(begins))


@kernel_inline
def next_empty(place: int, segment: int) -> int:
    """Return the first empty place from `place` on."""
    block = place & -BLOCK
    empty = tags_with(tag_address(block, segment), ALL_RESTS, 0) >> (place - block) << (place - block)
    while empty == 0:
        block += BLOCK
        empty = tags_with(tag_address(block, segment), ALL_RESTS, 0)
    return int(block + first_bit(empty))


@kernel_inline
def prefetch_tags(value: int, table: int) -> None:
    """Fetch the tags that a search at all slots of a hash looks at first: `may_have` seldom needs a value."""
    segment = segment_of(value, table)
    home = row_of(value, segment) * field(table, SLOTS)
    tags = tag_address(home, segment)
    prefetch_address(tags)
    prefetch_address(tags + BLOCK_BYTES)


@kernel_inline
def prefetch_values(home: int, segment: int) -> None:
    """Fetch the values of the elements at a home, most of which are not far behind it."""
    values = value_address(home, segment)
    prefetch_address(values)
    prefetch_address(values + _LINE_BYTES)


@kernel_inline
def may_have(first: int, homes: int, rest: int, segment: int) -> bool:
    """Return whether an element with the rest may have one of `homes` adjacent homes, of which `first` is the first.

    False is certain. Asks all places that elements of these homes can have, whose runs it does not look for: from the
    first home to the first empty place behind the last one.
    """
    wanted = (rest + 1 if not field(segment, WIDE) else rest % FIRST + 1) << REST
    block, last = first & -BLOCK, first + homes - 1
    shift = first - block
    tags = tag_address(block, segment)
    same = tags_with(tags, ALL_RESTS, wanted) >> shift
    while same == 0:
        empty = tags_with(tags, ALL_RESTS, 0)
        if empty >> max(0, min(last - block, BLOCK)):
            return False
        block += BLOCK
        tags = tag_address(block, segment)
        same = tags_with(tags, ALL_RESTS, wanted)
    return True


@kernel_inline
def is_rest(place: int, tag: int, rest: int, segment: int) -> bool:
    """Return whether the element at a place, with this tag, has the rest."""
    wide = field(segment, WIDE)
    if not wide:
        return bool(tag >> REST == rest + 1)
    lower, upper = rest % FIRST + 1, rest // FIRST
    return bool(tag >> REST == lower and upper_at(place, wide, segment) == upper)


@kernel_inline
def next_in_run(place: int, rest: int, segment: int) -> int:
    """Return the first place behind `place` in its run that has `rest`, or -1."""
    while True:
        place += 1
        tag = load16(tag_address(place, segment))
        if not tag & CONTINUES:
            return -1
        if is_rest(place, tag, rest, segment):
            return place


@kernel_inline
def run_holds(place: int, rest: int, segment: int) -> tuple[int, int]:
    """Return the first place with `rest` in the run that begins at `place`, or -1, and where the run ends."""
    found = -1
    tag = load16(tag_address(place, segment))
    while True:
        if found < 0 and is_rest(place, tag, rest, segment):
            found = place
        place += 1
        tag = load16(tag_address(place, segment))
        if not tag & CONTINUES:
            return found, place


@kernel_inline
def seek(home: int, rest: int, segment: int) -> tuple[int, int]:
    """Return the first place of an element, or -1, and the place where another one of its home belongs."""
    tag = load16(tag_address(home, segment))
    if tag >> REST == 0:
        return -1, home
    place = first_of_run(home, segment)
    if not tag & HOMED:
        return -1, place
    return run_holds(place, rest, segment)


@kernel_inline
def add(place: int, home: int, rest: int, value: int, segment: int, table: int) -> bool:
    """Store an element at the place that `seek` returned; False if the segment must grow first.

    Later elements up to the next empty place move by one.
    """
    if field(segment, USED) >= field(segment, LIMIT):
        store64(table + 8 * FULL, field(segment, NUMBER))
        return False
    end = next_empty(place, segment)
    if end + 1 >= field(segment, PLACES):
        store64(table + 8 * FULL, field(segment, NUMBER))
        return False
    change(table, SCANNED, place - home)
    change(table, MOVED, end - place + 1)
    wide = field(segment, WIDE)
    if wide:
        shift_uppers(place, end, wide, segment)
    while end > place:  # from page to page, backwards
        first = max(place, end & ~_IN_PAGE)
        tags, values = tag_address(end, segment), value_address(end, segment)
        move_tags(tags, end - first, HOMED)
        move_values(values, end - first)
        end = first
        if end > place:
            address = tag_address(end, segment)
            store16(address, (load16(address) & HOMED) | (load16(tag_address(end - 1, segment)) & ~HOMED))
            store32(value_address(end, segment), load32(value_address(end - 1, segment)))
            end -= 1
    home_address = tag_address(home, segment)
    continues = CONTINUES if place > home and load16(home_address) & HOMED else 0
    put_rest(place, (load16(tag_address(place, segment)) & HOMED) | continues, rest, wide, segment)
    store32(value_address(place, segment), value)
    store16(home_address, load16(home_address) | HOMED)
    change(segment, USED, 1)
    change(table, ELEMENTS, 1)
    return True


@kernel_inline
def put_rest(place: int, bits: int, rest: int, wide: int, segment: int) -> None:
    """Write the tag of an element."""
    if wide:
        store16(tag_address(place, segment), bits | ((rest % FIRST + 1) << REST))
        set_upper(place, rest // FIRST, wide, segment)
    else:
        store16(tag_address(place, segment), bits | ((rest + 1) << REST))


@kernel_inline
def take_out(place: int, home: int, segment: int, table: int) -> None:
    """Remove the element at `place`, of the run of `home`; later ones that can be nearer home move by one."""
    wide = field(segment, WIDE)
    begins = not load16(tag_address(place, segment)) & CONTINUES
    goes_on = load16(tag_address(place + 1, segment)) & CONTINUES
    hole, latest = place, home  # latest: home of the run that is moved
    while True:
        tag = load16(tag_address(hole + 1, segment))
        if tag >> REST == 0:
            break
        if not tag & CONTINUES:
            latest += 1
            while not load16(tag_address(latest, segment)) & HOMED:
                latest += 1
            if latest == hole + 1:
                break
        address = tag_address(hole, segment)
        store16(address, (load16(address) & HOMED) | (tag & ~HOMED))
        store32(value_address(hole, segment), load32(value_address(hole + 1, segment)))
        if wide:
            set_upper(hole, upper_at(hole + 1, wide, segment), wide, segment)
        hole += 1
    change(table, MOVED, hole - place + 1)
    address = tag_address(hole, segment)
    store16(address, load16(address) & HOMED)
    if begins:
        address = tag_address(place if goes_on else home, segment)
        store16(address, load16(address) & ~(CONTINUES if goes_on else HOMED))
    change(segment, USED, -1)
    change(table, ELEMENTS, -1)
    if field(segment, USED) < field(segment, SPARSE_LIMIT):
        store64(table + 8 * SPARSE, field(segment, NUMBER))


END = 1 << HASH_BITS
"""The end of the hash space, where a walk ends."""

HEAD_BYTES = 8 * FIELDS
MAX_PIECE_BYTES = HEAD_BYTES + 8 * COLUMN_PAGES * PAGE_PLACES

_BYTES_PAGE, _VALUE_PAGE = PAGE_PLACES, 4 * PAGE_PLACES
"""Bytes of PAGE_PLACES places in a column of bytes, of tags and of values."""


Bytes = npt.NDArray[np.uint8]


def piece_bytes(head: npt.NDArray[np.int64]) -> int:
    """Return the bytes of a piece. head: int64[FIELDS], its first words."""
    return HEAD_BYTES + int(head[PLACES]) * {0: 6, BYTE_MORE: 7, WORD_MORE: 8}.get(int(head[WIDE]), 0)


@kernel_inline
def copy_words(source: int, target: int, count: int) -> None:
    """Copy `count` words of 64 bits from one address to another."""
    for at in range(0, 8 * count, 8):
        store64(target + at, load64(source + at))


@kernel
def copy_out(position: int, table: int, piece: int) -> tuple[int, int]:
    """Copy the segment of the hash `position` to the address `piece`, which has room for MAX_PIECE_BYTES.

    Returns the hash behind its range, and the bytes of the piece. The largest one takes about 0.1 ms.
    """
    segment = segment_of(position, table)
    copy_words(segment, piece, FIELDS)
    at = piece + HEAD_BYTES
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        copy_words(tag_address(start, segment), at, _TAG_PAGE // 8)
        at += _TAG_PAGE
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        copy_words(value_address(start, segment), at, _VALUE_PAGE // 8)
        at += _VALUE_PAGE
    wide = field(segment, WIDE)
    if wide:
        for start in range(0, field(segment, PLACES), PAGE_PLACES):
            if wide == BYTE_MORE:
                copy_words(upper_byte_address(start, segment), at, _BYTES_PAGE // 8)
                at += _BYTES_PAGE
            else:
                copy_words(upper_address(start, segment), at, _TAG_PAGE // 8)
                at += _TAG_PAGE
    width = HASH_BITS - field(segment, DEPTH)
    return (field(segment, PREFIX) + 1) << width, at - piece


@long_kernel
def copy_in(segment: int, piece: int) -> None:
    """Copy the columns of the piece at an address back to a segment that has its first words and pages."""
    at = piece + HEAD_BYTES
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        copy_words(at, tag_address(start, segment), _TAG_PAGE // 8)
        at += _TAG_PAGE
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        copy_words(at, value_address(start, segment), _VALUE_PAGE // 8)
        at += _VALUE_PAGE
    wide = field(segment, WIDE)
    if wide:
        for start in range(0, field(segment, PLACES), PAGE_PLACES):
            if wide == BYTE_MORE:
                copy_words(at, upper_byte_address(start, segment), _BYTES_PAGE // 8)
                at += _BYTES_PAGE
            else:
                copy_words(at, upper_address(start, segment), _TAG_PAGE // 8)
                at += _TAG_PAGE


@kernel_inline
def is_live(row: int, first: int, bits: Bytes) -> bool:
    """Return whether the bit of a row is set. first: row of the first bit."""
    at = row - first
    return bool(0 <= at < 8 * len(bits) and (bits[at >> 3] >> (at & 7)) & 1)


@long_kernel
def keep_live(segment: int, table: int, first: int, bits: Bytes) -> None:
    """Take the elements out of a segment whose values are no live rows. bits: uint8[m], from row `first` on.

    The count of elements of the table does not change; that of the segment does.
    """
    dead = 0
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        tags, values = tag_address(start, segment), value_address(start, segment)
        for at in range(PAGE_PLACES):
            if load16(tags + 2 * at) >> REST and not is_live(load32(values + 4 * at), first, bits):
                dead += 1
    if dead == 0:
        return
    places = field(segment, PLACES)
    elements, rows, scratch = np.empty(places, np.int64), np.empty(places, np.uint32), np.empty(places, np.int64)
    count = read_in_order(segment, table, elements, rows, scratch)
    kept = 0
    for at in range(count):
        if is_live(int(np.int64(rows[at])), first, bits):
            elements[kept], rows[kept] = elements[at], rows[at]
            kept += 1
    write_in_order(segment, table, kept, elements, rows, scratch)


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
