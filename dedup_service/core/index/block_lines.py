"""Tables of the compact layout: buckets of one cache line, with linear hashing.

A table finds entries by a hash of 32 bits. A line holds six entries: for each the word that is compared
(uint32), its value (uint32), and the upper half of its hash (uint16). The lower half of the hash is known
from the bucket: a table has 2**16 buckets at least, and a bucket's number is the low bits of the hash. So the
hash and the word, 64 bits, are stored in 48, and no entry is compared through a pointer.

    byte 0: word x 6 | 24: value x 6 | 48: upper half of the hash x 6 | 60: count, hot mark, next line

Growth is linear hashing (Litwin, VLDB 1980): whenever the table is fuller than `LOAD`, its next bucket is split
in two. An insertion therefore pays for one split at most, a few dozen entries, at any size.

A full bucket continues in lines of the overflow pool. Its first overflow line is the only one that may be partly
full: insertion and removal touch the head and that line.

Invariants: an overflow line is never empty; if there is one, the head is full. A bucket with the hot mark has no
entries: they are in the refined tables (`block_halves_write`).

Memory of the compact layout: pools of small items that grow without being moved, read at their addresses.

A pool is a row of segments. Segment 0 holds the first 65,536 items; every other one holds as many as all
before it together. Growth adds a segment and copies nothing, so no insertion waits for it. A segment is
zeroed memory that the system provides when it is first written: unused room costs address space only.

Kernels find an item by its number with `item_address`: the bit length of the number selects the segment. They
read and write with `load32` and others of `core.kernels`. Addresses and all other numbers are int64 here,
because numba turns a mixture of int64 and uint64 into floating point.

Invariant: whoever passes `bases` to a kernel keeps the pools, and thereby the segments, alive.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dedup_service.core.index.memory_pages import HUGE_PAGE, huge_memory
from dedup_service.core.kernels import kernel_inline, load16, load32, long_kernel, prefetch_address, store16, store32

FIRST_BITS = 16
FIRST_ITEMS = 1 << FIRST_BITS
SEGMENTS = 17
"""Segments of a pool at most: 2**32 items."""

_CACHE_LINE = 64


class SegmentPool:
    """Items of one size. bases: int64[SEGMENTS], which kernels take, receives the addresses of segments."""

    __slots__ = ("_bases", "_item_bytes", "_segments")

    def __init__(self, item_bytes: int, bases: npt.NDArray[np.int64]) -> None:
        self._item_bytes, self._bases = item_bytes, bases
        self._segments: list[npt.NDArray[np.uint8]] = []

    @property
    def room(self) -> int:
        """Number of items for which there is room."""
        return FIRST_ITEMS << (len(self._segments) - 1) if self._segments else 0

    def grow(self) -> int:
        """Add a segment; return the new room."""
        first, number = self.room, len(self._segments)
        size_bytes = max(first, FIRST_ITEMS) * self._item_bytes
        if size_bytes >= 2 * HUGE_PAGE:
            segment = huge_memory(-(-size_bytes // HUGE_PAGE))
        else:
            segment = np.zeros(size_bytes + _CACHE_LINE, np.uint8)
        address = int(segment.ctypes.data)
        address += -address % _CACHE_LINE
        self._segments.append(segment)
        self._bases[number] = address - first * self._item_bytes
        return self.room


def _bit_length(_typing: Any, _number: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.int64(types.int64), emit


def _close_words(_typing: Any, _address: Any, _word: Any, _radius: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, word, radius = arguments
        number = ir.IntType(32)
        vector = ir.VectorType(number, 8)

        def all_lanes(value: Any) -> Any:
            lanes = builder.insert_element(ir.Constant(vector, ir.Undefined), builder.trunc(value, number), number(0))
            return builder.shuffle_vector(lanes, lanes, ir.Constant(vector, [0] * 8))

        words = builder.load(builder.inttoptr(address, vector.as_pointer()), align=32)
        popcount = builder.module.declare_intrinsic("llvm.ctpop.v8i32", (), ir.FunctionType(vector, [vector]))
        distances = builder.call(popcount, [builder.xor(words, all_lanes(word))])
        close = builder.icmp_unsigned("<=", distances, all_lanes(radius))
        return builder.zext(builder.bitcast(close, ir.IntType(8)), ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64), emit


bit_length = cast("Callable[[int], int]", intrinsic(_bit_length))
"""Return the number of bits of an int64 >= 0 without its leading zeros. Like the others, for kernels only."""

close_words = cast("Callable[[int, int, int], int]", intrinsic(_close_words))
"""Compare eight uint32 at an address, a multiple of 32, with a word; return a mask of 8 bits.

close_words(address, word, radius): bit i is set if the i-th of them differs from `word` in at most `radius`
bits. One vector instruction each for XOR, population count and comparison where the processor has them.
"""


@kernel_inline
def item_address(bases: npt.NDArray[np.int64], pool: int, number: int, item_bytes: int) -> int:
    """Return the address of an item. bases: int64[pools, SEGMENTS]."""
    return int(bases[np.uint64(pool), np.uint64(bit_length(number >> FIRST_BITS))] + number * item_bytes)


Integers = npt.NDArray[np.int64]

LINE_BYTES, SLOTS = 64, 6
_VALUES, _TAGS, META = 24, 48, 60
COUNT_SHIFT, HOT, NEXT = 29, 1 << 28, (1 << 28) - 1

LOAD, LOAD_UNIT = 18, 4
"""Entries a bucket, 18 / 4, above which a table grows.

One bucket of six then overflows, and a fingerprint takes about 35 bytes (docs/adr/0005-block-index.md).
"""

_SPLITS_AHEAD = 4
"""Buckets whose lines are on the way when one is split."""

TABLES = 6
OVERFLOW, NODES = range(TABLES, TABLES + 2)
POOLS = TABLES + 2
"""Pools: heads of the two halves, of the four refined tables; overflow lines, crowd nodes."""

HEADS, HEAD_ROOM, ENTRIES = 0, TABLES, 2 * TABLES
LINES_USED, LINES_ROOM, LINES_FREE, FREE_LINE = range(3 * TABLES, 3 * TABLES + 4)
COUNTERS = 40
"""Length of the counters. HEADS, HEAD_ROOM and ENTRIES are the first of one for each table."""


@kernel_inline
def bucket_of(value: int, heads: int) -> int:
    """Return the bucket of a hash in a table of `heads` buckets."""
    half = 1 << (bit_length(heads) - 1)
    bucket = value & (2 * half - 1)
    return bucket if bucket < heads else bucket & (half - 1)


@kernel_inline
def head_address(table: int, value: int, bases: Integers, counters: Integers) -> int:
    """Return the address of the first line of a hash's bucket."""
    return item_address(bases, table, bucket_of(value, counters[HEADS + table]), LINE_BYTES)


@kernel_inline
def slot_value(address: int, slot: int) -> int:
    """Return the address of the value of an entry. address: of its line."""
    return address + _VALUES + 4 * slot


@kernel_inline
def slot_tag(address: int, slot: int) -> int:
    """Return the upper half of the hash of an entry."""
    return load16(address + _TAGS + 2 * slot)


@kernel_inline
def set_slot(address: int, slot: int, word: int, value: int, tag: int) -> None:
    """Write an entry."""
    store32(address + 4 * slot, word)
    store32(address + _VALUES + 4 * slot, value)
    store16(address + _TAGS + 2 * slot, tag)


@kernel_inline
def hash_in(bucket: int, tag: int) -> int:
    """Return the hash of an entry with this tag in a bucket."""
    return (tag << FIRST_BITS) | (bucket & ((1 << FIRST_BITS) - 1))


@kernel_inline
def take_line(counters: Integers, bases: Integers) -> int:
    """Return the number of an overflow line that is not in use; the caller ensures that there is one."""
    line = counters[FREE_LINE]
    if line:
        counters[FREE_LINE] = load32(item_address(bases, OVERFLOW, line, LINE_BYTES) + META)
        counters[LINES_FREE] -= 1
        return int(line)
    line = counters[LINES_USED]
    counters[LINES_USED] += 1
    return int(line)


@kernel_inline
def give_line(line: int, counters: Integers, bases: Integers) -> None:
    """Return an overflow line to the free ones."""
    store32(item_address(bases, OVERFLOW, line, LINE_BYTES) + META, counters[FREE_LINE])
    counters[FREE_LINE] = line
    counters[LINES_FREE] += 1


@kernel_inline
def append(table: int, head: int, value: int, word: int, number: int, bases: Integers, counters: Integers) -> bool:
    """Add an entry to the bucket at address `head`; return whether that took a new line.

    value: its hash; number: its value.
    """
    counters[ENTRIES + table] += 1
    tag = value >> FIRST_BITS
    meta = load32(head + META)
    count = meta >> COUNT_SHIFT
    if count < SLOTS:
        set_slot(head, count, word, number, tag)
        store32(head + META, meta + (1 << COUNT_SHIFT))
        return False
    following = meta & NEXT
    if following:
        line = item_address(bases, OVERFLOW, following, LINE_BYTES)
        line_meta = load32(line + META)
        count = line_meta >> COUNT_SHIFT
        if count < SLOTS:
            set_slot(line, count, word, number, tag)
            store32(line + META, line_meta + (1 << COUNT_SHIFT))
            return False
    fresh = take_line(counters, bases)
    line = item_address(bases, OVERFLOW, fresh, LINE_BYTES)
    set_slot(line, 0, word, number, tag)
    store32(line + META, (1 << COUNT_SHIFT) | following)
    store32(head + META, (meta & ~NEXT) | fresh)
    return True


@kernel_inline
def entry_slot(head: int, value: int, word: int, bases: Integers) -> int:
    """Return address + slot of the entry with this hash and word in the bucket at `head`, or 0.

    Lines begin at multiples of 64, so `place & -64` is the line and `place & 63` the slot.
    """
    line, tag = head, value >> FIRST_BITS
    while True:
        meta = load32(line + META)
        for slot in range(meta >> COUNT_SHIFT):
            if load32(line + 4 * slot) == word and slot_tag(line, slot) == tag:
                return line + slot
        following = meta & NEXT
        if following == 0:
            return 0
        line = item_address(bases, OVERFLOW, following, LINE_BYTES)


@kernel_inline
def erase(table: int, head: int, place: int, bases: Integers, counters: Integers) -> None:
    """Remove the entry at a place that `entry_slot` returned; another one fills it."""
    counters[ENTRIES + table] -= 1
    meta = load32(head + META)
    following = meta & NEXT
    line = item_address(bases, OVERFLOW, following, LINE_BYTES) if following else head
    line_meta = load32(line + META)
    last = (line_meta >> COUNT_SHIFT) - 1
    set_slot(place & -64, place & 63, load32(line + 4 * last), load32(slot_value(line, last)), slot_tag(line, last))
    store32(line + META, line_meta - (1 << COUNT_SHIFT))
    if following and last == 0:
        store32(head + META, (meta & ~NEXT) | (line_meta & NEXT))
        give_line(following, counters, bases)


@kernel_inline
def chain_lines(head: int, bases: Integers) -> int:
    """Return the number of lines of a bucket."""
    lines, following = 1, load32(head + META) & NEXT
    while following:
        lines += 1
        following = load32(item_address(bases, OVERFLOW, following, LINE_BYTES) + META) & NEXT
    return lines


@kernel_inline
def detach(table: int, line: int, is_head: bool, taken: Integers, counters: Integers) -> int:
    """Copy the entries of one line into taken: int64[6, 3], columns word, value, tag; return their number.

    An emptied head loses its chain: the caller has read where it continues.
    """
    meta = load32(line + META)
    count = meta >> COUNT_SHIFT
    for slot in range(count):
        taken[slot, 0] = load32(line + 4 * slot)
        taken[slot, 1] = load32(slot_value(line, slot))
        taken[slot, 2] = slot_tag(line, slot)
    if is_head:
        store32(line + META, meta & HOT)
    counters[ENTRIES + table] -= count
    return int(count)


@kernel_inline
def split_head(one: int, other: int, difference: int) -> None:
    """Move the entries of a head whose hashes have the bit `difference` to the empty head `other`; end the chain.

    Each entry is copied once, to either head, without a branch that depends on its hash.
    """
    meta = load32(one + META)
    bit, kept, moved = difference >> FIRST_BITS, 0, 0
    for slot in range(meta >> COUNT_SHIFT):
        word, number, tag = load32(one + 4 * slot), load32(slot_value(one, slot)), slot_tag(one, slot)
        moves = 1 if tag & bit else 0
        set_slot(other if moves else one, moved if moves else kept, word, number, tag)
        moved += moves
        kept += 1 - moves
    store32(one + META, (meta & HOT) | (kept << COUNT_SHIFT))
    store32(other + META, (meta & HOT) | (moved << COUNT_SHIFT))


@kernel_inline
def fetch_split(table: int, source: int, target: int, bases: Integers) -> None:
    """Fetch what the next splits of a table read: the buckets that follow, and an overflow line of one of them."""
    prefetch_address(item_address(bases, table, source + _SPLITS_AHEAD, LINE_BYTES))
    prefetch_address(item_address(bases, table, target + _SPLITS_AHEAD, LINE_BYTES))
    following = load32(item_address(bases, table, source + _SPLITS_AHEAD // 2, LINE_BYTES) + META) & NEXT
    prefetch_address(item_address(bases, OVERFLOW, following, LINE_BYTES))


@kernel_inline
def split_next(table: int, taken: Integers, bases: Integers, counters: Integers) -> None:
    """Add a bucket and move half of another one's entries to it; the caller ensures room for its head.

    taken: int64[6, 3], scratch. Two overflow lines more than now are in use meanwhile, at most.
    """
    target = counters[HEADS + table]
    source = target - (1 << (bit_length(target) - 1))
    counters[HEADS + table] = target + 1
    one = item_address(bases, table, source, LINE_BYTES)
    other = item_address(bases, table, target, LINE_BYTES)
    fetch_split(table, source, target, bases)
    number = load32(one + META) & NEXT
    difference = target ^ source
    split_head(one, other, difference)
    while number:
        line = item_address(bases, OVERFLOW, number, LINE_BYTES)
        following = load32(line + META) & NEXT
        count = detach(table, line, False, taken, counters)
        give_line(number, counters, bases)
        for at in range(count):
            value = hash_in(source, taken[at, 2])
            head = other if value & difference else one
            append(table, head, value, taken[at, 0], taken[at, 1], bases, counters)
        number = following


@long_kernel
def longest_bucket(bases: Integers, counters: Integers) -> int:
    """Return the number of entries of the longest bucket of all tables, among 65,536 or more of each."""
    longest = 0
    for table in range(TABLES):
        for bucket in range(0, counters[HEADS + table], max(1, counters[HEADS + table] >> FIRST_BITS)):
            head = item_address(bases, table, bucket, LINE_BYTES)
            meta = load32(head + META)
            entries = int(meta >> COUNT_SHIFT)
            following = meta & NEXT
            if following:
                first = load32(item_address(bases, OVERFLOW, following, LINE_BYTES) + META)
                entries += (first >> COUNT_SHIFT) + SLOTS * (chain_lines(head, bases) - 2)
            longest = max(longest, entries)
    return longest
