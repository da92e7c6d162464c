"""Insertion into and removal from the compact layout.

Kernels stop where memory is short or a refined table is missing; `block_compact` provides it and continues them.
They read the lines of later fingerprints ahead of time, so that the lines of some of them arrive together.

A fingerprint is stored once, with the row number of its entry as its value. From its second entry on, the value
is a crowd (`block_crowd`), in every table.

Where the compact layout stores a fingerprint, and how far each of its tables must search.

A fingerprint is cut into two halves of 32 bits. Table 0 has the low half as its hash and compares the high one,
table 1 the other way round. By the pigeonhole principle of `block_layout`, with tolerances t[0] and t[1] where
t[0] + t[1] + 2 = radius + 1:

    radius       0     1      2      3
    tolerances   0     0 0    1 0    1 1

For radius 3 each half is probed as it is and with each of its 32 bits flipped; if both differ in two bits or more,
the distance is 4 or more. Buckets have the low bits of a half as their number, so flips of the other bits
lead to the same bucket: at 10**7 entries a probe reads 2 x 22 lines, not 66.

Hot buckets. A bucket of many entries (one half, or the part of it that selects the bucket, is common to many
fingerprints) gets the hot mark, and its entries move to the refined tables of this half: two, for the two blocks
of 16 bits of the other half, by the same tolerances with the bits that the first half leaves. Their hash is
half XOR mix(block), from which the half can be computed back, since the block is part of the stored word. So
nothing is compared by hash alone.

Invariants: a fingerprint is in table 0 and (radius > 0) in table 1; in each either in its bucket or, if that is
hot, in both refined tables. Of all searches that could report a fingerprint, the first one does.

Source: Norouzi, Punjani, Fleet, CVPR 2012 (near keys); Wang and Wang 2019 (a second level for crowded buckets).
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.block_crowd import (
    CROWD,
    FREE_NODE,
    NODES_FREE,
    NODES_ROOM,
    NODES_USED,
    crowd_add,
    crowd_has,
    crowd_remove,
    crowd_size,
    end_crowd,
    new_crowd,
    only_number,
)
from dedup_service.core.index.block_lines import (
    ENTRIES,
    HEAD_ROOM,
    HEADS,
    HOT,
    LINE_BYTES,
    LINES_FREE,
    LINES_ROOM,
    LINES_USED,
    LOAD,
    LOAD_UNIT,
    META,
    NEXT,
    OVERFLOW,
    TABLES,
    Integers,
    append,
    bucket_of,
    chain_lines,
    detach,
    entry_slot,
    erase,
    give_line,
    hash_in,
    head_address,
    item_address,
    slot_value,
    split_next,
)
from dedup_service.core.kernels import kernel, kernel_inline, load32, long_kernel, popcount, prefetch_address, store32

MAX_COMPACT_RADIUS = 3
HALF = 0xFFFF_FFFF
_BLOCK = 0xFFFF


@kernel_inline
def half_tolerance(radius: int, part: int) -> int:
    """Return in how many bits part 0 or 1 may differ: 0, 1, or -1 if it is not searched. radius: 0 to 3."""
    return radius >> 1 if part == 0 else ((radius + 1) >> 1) - 1


@kernel_inline
def bits_between(one: int, other: int) -> int:
    """Return in how many bits two halves differ."""
    return popcount(np.uint64(one ^ other))


@kernel_inline
def half_of(fingerprint: np.uint64, half: int) -> int:
    """Return the low (0) or the high half (1)."""
    return int(np.int64((fingerprint >> np.uint64(32 * half)) & np.uint64(HALF)))


@kernel_inline
def mixed_block(word: int, block: int) -> int:
    """Return 32 mixed bits of block 0 or 1 of a half."""
    mixed = np.uint64((word >> (16 * block)) & _BLOCK) + np.uint64(1)
    mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xD6E8FEB86659FD93)
    return int(np.int64(mixed >> np.uint64(32)))


@kernel_inline
def refined_of(half: int, block: int) -> int:
    """Return the refined table of a half for a block of the other half."""
    return 2 + 2 * half + block


@kernel_inline
def half_leaves(
    half: int, value: int, word: int, count: int, leaves: Integers, bases: Integers, counters: Integers
) -> int:
    """Write where a half stores a fingerprint to the rows of `leaves` from `count` on; return the number behind.

    value, word: this half and the other one. See `leaves_of`.
    """
    head = head_address(half, value, bases, counters)
    if load32(head + META) & HOT == 0:
        leaves[count, 0], leaves[count, 1], leaves[count, 2], leaves[count, 3] = half, head, value, word
        return count + 1
    for block in range(2):
        table, refined = refined_of(half, block), value ^ mixed_block(word, block)
        head = head_address(table, refined, bases, counters)
        leaves[count, 0], leaves[count, 1], leaves[count, 2], leaves[count, 3] = table, head, refined, word
        count += 1
    return count


@kernel_inline
def leaves_of(fingerprint: np.uint64, halves: int, leaves: Integers, bases: Integers, counters: Integers) -> int:
    """Write where a fingerprint is stored to leaves: int64[4, 4]; return their number.

    Columns: table, address of the bucket, hash, word. halves: tables of the first level, 1 or 2.
    """
    count = 0
    for half in range(halves):
        value, word = half_of(fingerprint, half), half_of(fingerprint, 1 - half)
        count = half_leaves(half, value, word, count, leaves, bases, counters)
    return count


@kernel_inline
def is_crowded(head: int, lines: int, bases: Integers) -> bool:
    """Return whether a bucket has more than so many lines."""
    return chain_lines(head, bases) > lines


@kernel_inline
def make_hot(half: int, bucket: int, taken: Integers, bases: Integers, counters: Integers) -> None:
    """Move the entries of a bucket to the refined tables, which have heads; taken: int64[6, 3], scratch."""
    head = item_address(bases, half, bucket, LINE_BYTES)
    number, following, line = 0, load32(head + META) & NEXT, head
    while True:
        count = detach(half, line, number == 0, taken, counters)
        if number:
            give_line(number, counters, bases)
        for at in range(count):
            value = hash_in(bucket, taken[at, 2])
            for block in range(2):
                table, refined = refined_of(half, block), value ^ mixed_block(taken[at, 0], block)
                place = head_address(table, refined, bases, counters)
                append(table, place, refined, taken[at, 0], taken[at, 1], bases, counters)
        if following == 0:
            break
        number = following
        line = item_address(bases, OVERFLOW, number, LINE_BYTES)
        following = load32(line + META) & NEXT
    store32(head + META, HOT)


_FIRST = FREE_NODE + 1
STATUS, ALL, DISTINCT, HOT_LINES, HOT_BUCKETS = range(_FIRST, _FIRST + 5)
WORK_PROBES, WORK_LINES, WORK_COMPARED = range(_FIRST + 5, _FIRST + 8)
"""Indexes into the counters, after those of `block_crowd`."""

DONE, SHORT, UNREFINED, PRESENT, ABSENT = range(5)
"""Why a kernel returned: all done; a pool is short; a hot bucket needs refined tables; entry there; or not there."""

GONE = -2
"""The value of a fingerprint whose last entry was removed."""

SPARE_LINES = 1024
"""Overflow lines that one insertion may take: those of a bucket that becomes hot, and of splits."""

_MOST_UNCHECKED, _LINES_EACH = 64, 32
"""Insertions between two looks at the pools, at most, and overflow lines that one takes at most.

It appends to 4 buckets and splits one of each table, which takes two lines more meanwhile.
"""

_AHEAD = 12
"""Fingerprints whose lines are on the way: 2 lines each, and a core waits for 16 at a time or more."""

Fingerprints = npt.NDArray[np.uint64]


@kernel_inline
def free_nodes(counters: Integers) -> int:
    """Return how many nodes of crowds there is room for."""
    return int(counters[NODES_ROOM] - counters[NODES_USED] + counters[NODES_FREE])


@kernel_inline
def is_short(counters: Integers) -> bool:
    """Return whether a pool may not suffice for the next insertion."""
    for table in range(TABLES):
        if counters[HEADS + table] > 0 and counters[HEADS + table] + 4 > counters[HEAD_ROOM + table]:
            return True
    lines = counters[LINES_ROOM] - counters[LINES_USED] + counters[LINES_FREE]
    return lines < SPARE_LINES or free_nodes(counters) < 4


@kernel_inline
def insertions_left(counters: Integers) -> int:
    """Return how many insertions no pool is short for, unless one makes a bucket hot: 0 to `_MOST_UNCHECKED`.

    One takes a head of each table, 4 nodes, and a few lines of overflow for each of the tables, at most.
    """
    if is_short(counters):
        return 0
    lines = counters[LINES_ROOM] - counters[LINES_USED] + counters[LINES_FREE] - SPARE_LINES
    left = min(_MOST_UNCHECKED, 1 + lines // _LINES_EACH, free_nodes(counters) // 4)
    for table in range(TABLES):
        if counters[HEADS + table]:
            left = min(left, counters[HEAD_ROOM + table] - counters[HEADS + table] - 3)
    return int(left)


@kernel_inline
def fetch_heads(fingerprint: np.uint64, halves: int, bases: Integers, counters: Integers) -> None:
    """Ask for the first lines of a fingerprint."""
    for half in range(halves):
        prefetch_address(head_address(half, half_of(fingerprint, half), bases, counters))


@kernel_inline
def set_everywhere(leaves: Integers, count: int, value: int, bases: Integers) -> None:
    """Give a stored fingerprint another value in all its leaves."""
    for leaf in range(count):
        place = entry_slot(leaves[leaf, 1], leaves[leaf, 2], leaves[leaf, 3], bases)
        store32(slot_value(place & -64, place & 63), value)


@kernel_inline
def value_joined(value: int, row: int, bases: Integers, counters: Integers) -> int:
    """Add an entry to a stored fingerprint of this value; return its new value, or -1 if the entry is there already."""
    crowd = value
    if value < CROWD:
        if value == row:
            return -1
        crowd = new_crowd(bases, counters)
        crowd_add(crowd, value, bases, counters)
    elif crowd_has(crowd, row, bases):
        return -1
    crowd_add(crowd, row, bases, counters)
    return crowd


@kernel_inline
def value_left(value: int, row: int, bases: Integers, counters: Integers) -> int:
    """Remove an entry from a stored fingerprint of this value; return its new value.

    -1: the entry is not there. GONE: it was the only one, and the fingerprint has to be removed.
    """
    left = value
    if value >= CROWD:
        if not crowd_remove(value, row, bases, counters):
            return -1
        if crowd_size(value, bases) == 1:
            left = only_number(value, bases)
            end_crowd(value, bases, counters)
    else:
        if value != row:
            return -1
        left = GONE
        counters[DISTINCT] -= 1
    counters[ALL] -= 1
    return left


@kernel_inline
def join(place: int, leaves: Integers, count: int, row: int, bases: Integers, counters: Integers) -> bool:
    """Add an entry to a fingerprint that is stored in leaves; return False if it is there already."""
    value = load32(slot_value(place & -64, place & 63))
    joined = value_joined(value, row, bases, counters)
    if joined != value and joined >= 0:
        set_everywhere(leaves, count, joined, bases)
    return joined >= 0


@kernel_inline
def grow_tables(taken: Integers, bases: Integers, counters: Integers) -> None:
    """Split the next bucket of each table that is too full."""
    for table in range(TABLES):
        if counters[HEADS + table] and counters[ENTRIES + table] * LOAD_UNIT > counters[HEADS + table] * LOAD:
            split_next(table, taken, bases, counters)


@kernel_inline
def store_in(leaves: Integers, count: int, number: int, taken: Integers, bases: Integers, counters: Integers) -> bool:
    """Store a new fingerprint with its value in its leaves; return whether refined tables are missing for a bucket."""
    unrefined = False
    for leaf in range(count):
        table, head, value = leaves[leaf, 0], leaves[leaf, 1], leaves[leaf, 2]
        grew = append(table, head, value, leaves[leaf, 3], number, bases, counters)
        if grew and table < 2 and is_crowded(head, counters[HOT_LINES], bases):
            if counters[HEADS + 2 + 2 * table]:
                make_hot(table, bucket_of(value, counters[HEADS + table]), taken, bases, counters)
                counters[HOT_BUCKETS] += 1
            else:
                unrefined = True
    return unrefined


@kernel_inline
def insert_one(
    fingerprint: np.uint64,
    row: int,
    halves: int,
    leaves: Integers,
    taken: Integers,
    bases: Integers,
    counters: Integers,
) -> int:
    """Insert an entry; return DONE, UNREFINED (it is inserted), or PRESENT."""
    count = leaves_of(fingerprint, halves, leaves, bases, counters)
    place = entry_slot(leaves[0, 1], leaves[0, 2], leaves[0, 3], bases)
    if place:
        if not join(place, leaves, count, row, bases, counters):
            return PRESENT
        counters[ALL] += 1
        return DONE
    counters[ALL] += 1
    counters[DISTINCT] += 1
    unrefined = store_in(leaves, count, row, taken, bases, counters)
    grow_tables(taken, bases, counters)
    return UNREFINED if unrefined else DONE


@kernel_inline
def remove_one(
    fingerprint: np.uint64, row: int, halves: int, leaves: Integers, bases: Integers, counters: Integers
) -> bool:
    """Remove an entry; return False if it is not there."""
    count = leaves_of(fingerprint, halves, leaves, bases, counters)
    place = entry_slot(leaves[0, 1], leaves[0, 2], leaves[0, 3], bases)
    if place == 0:
        return False
    value = load32(slot_value(place & -64, place & 63))
    left = value_left(value, row, bases, counters)
    if left == GONE:
        for leaf in range(count):
            head = leaves[leaf, 1]
            place = entry_slot(head, leaves[leaf, 2], leaves[leaf, 3], bases)
            erase(leaves[leaf, 0], head, place, bases, counters)
    elif left >= 0 and left != value:
        set_everywhere(leaves, count, left, bases)
    return left != -1


@kernel_inline
def insert_range(
    rows: Integers,
    fingerprints: Fingerprints,
    done: int,
    halves: int,
    leaves: Integers,
    taken: Integers,
    bases: Integers,
    counters: Integers,
) -> int:
    """Insert entries from number `done` on; return how many are inserted. counters[STATUS]: why it returned."""
    left, hot = 0, counters[HOT_BUCKETS]
    for at in range(done, len(fingerprints)):
        if at + _AHEAD < len(fingerprints):
            fetch_heads(fingerprints[at + _AHEAD], halves, bases, counters)
        if left == 0 or counters[HOT_BUCKETS] != hot:
            left, hot = insertions_left(counters), counters[HOT_BUCKETS]
            if left == 0:
                counters[STATUS] = SHORT
                return at
        left -= 1
        status = insert_one(fingerprints[at], rows[at], halves, leaves, taken, bases, counters)
        if status != DONE:
            counters[STATUS] = status
            return at + (status == UNREFINED)
    counters[STATUS] = DONE
    return len(fingerprints)


@kernel_inline
def remove_range(
    rows: Integers,
    fingerprints: Fingerprints,
    halves: int,
    leaves: Integers,
    bases: Integers,
    counters: Integers,
) -> int:
    """Remove entries; return how many. counters[STATUS]: ABSENT if the next one is not there."""
    for at in range(len(fingerprints)):
        if at + _AHEAD < len(fingerprints):
            fetch_heads(fingerprints[at + _AHEAD], halves, bases, counters)
        if not remove_one(fingerprints[at], rows[at], halves, leaves, bases, counters):
            counters[STATUS] = ABSENT
            return at
    counters[STATUS] = DONE
    return len(fingerprints)


@long_kernel
def insert_numbers(
    rows: Integers, fingerprints: Fingerprints, done: int, halves: int, bases: Integers, counters: Integers
) -> int:
    """Insert entries from number `done` on; return how many are inserted. counters[STATUS]: why it returned.

    rows: int64[n]; fingerprints: uint64[n]. halves: 1 or 2 tables.
    """
    leaves, taken = np.empty((4, 4), np.int64), np.empty((6, 3), np.int64)
    return insert_range(rows, fingerprints, done, halves, leaves, taken, bases, counters)


@kernel
def insert_few(
    rows: Integers, fingerprints: Fingerprints, done: int, halves: int, bases: Integers, counters: Integers
) -> int:
    """The same as `insert_numbers`, for one page or a few: it keeps the interpreter lock."""
    return insert_numbers(rows, fingerprints, done, halves, bases, counters)


@long_kernel
def remove_numbers(rows: Integers, fingerprints: Fingerprints, halves: int, bases: Integers, counters: Integers) -> int:
    """Remove entries; return how many. counters[STATUS]: ABSENT if the next one is not there."""
    leaves = np.empty((4, 4), np.int64)
    return remove_range(rows, fingerprints, halves, leaves, bases, counters)


@kernel
def remove_few(rows: Integers, fingerprints: Fingerprints, halves: int, bases: Integers, counters: Integers) -> int:
    """The same as `remove_numbers`, for one page or a few: it keeps the interpreter lock."""
    return remove_numbers(rows, fingerprints, halves, bases, counters)
