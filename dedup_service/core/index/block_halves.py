"""Where the compact layout stores a fingerprint, and how far each of its tables must search.

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

from dedup_service.core.index.block_lines import (
    HOT,
    LINE_BYTES,
    META,
    NEXT,
    OVERFLOW,
    Integers,
    append,
    chain_lines,
    detach,
    give_line,
    hash_in,
    head_address,
)
from dedup_service.core.index.block_memory import item_address
from dedup_service.core.kernels import kernel_inline, load32, popcount, store32

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
