"""Where a fingerprint is stored: blocks, bucket headers, and how far each table must search.

Goal: each entry within the radius is found by exactly one probe, without a record of what was found before.
How: a fingerprint is cut into four blocks of 16 bits, with one table each. Block i has a tolerance t[i], and
sum(t[i] + 1) = radius + 1. If every block differed in more than t[i] bits, the distance would exceed the
radius. So some block differs in at most t[i] bits, and its table finds the entry. Tolerances are 0 (the key
itself) or 1 (the key and its 16 one-bit neighbours):

    radius       0     1      2        3        4        5        6        7
    tolerances   0     0 0    0 0 0    0 0 0 0  1 0 0 0  1 1 0 0  1 1 1 0  1 1 1 1

A radius below 3 needs fewer tables; radius 4 probes 20 buckets where 7 probes 68. The second level cuts the
other 48 bits of a crowded bucket into four blocks of 12 by the same rule. Its radius is what remains after
the bits in which the first key already differs.
Invariant: of all tables whose tolerance admits an entry, the first one reports it (`reported_earlier`).

Source: Manku, Jain, Das Sarma, WWW 2007 (blocks); Norouzi, Punjani, Fleet, CVPR 2012 (near keys); Qin
et al., "GPH", ICDE 2018 (uneven tolerances); Wang and Wang 2019 (4 x 12 bits for a crowded bucket).
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel_inline, popcount

MAX_RADIUS = 7
BLOCK_BITS, KEYS = 16, 1 << 16
SUB_BITS, SUB_KEYS = 12, 1 << 12

QUANTUM = 4
"""Slots are allocated in fours: a bucket starts on half a cache line, and int32 starts reach 2**33 slots."""

START, LENGTH, CAPACITY, CHILD = 0, 1, 2, 3
"""Columns of a bucket header: start and capacity in quanta, length in entries, first child bucket or 0."""

Headers = npt.NDArray[np.int32]
Fingerprints = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Arrays = tuple[Headers, Fingerprints, Rows, Integers, Rows, Integers]
"""The contents of an index, as kernels take it: headers, stored, rows, sequences, next_row, counters.

headers: int32[buckets, 4], the 65,536 of table 0 first, then those of the next tables, then the second
levels.
stored: uint64[slots] and rows: int32[slots], the arena: fingerprints and their first rows, by bucket.
sequences: int64[rows] and next_row: int32[rows], the entries: the sequence and the next row (or -1) of each.
counters: int64[9], indexed by the names below.
"""

STATUS, ROWS_USED, FREE_ROW, SLOTS_USED, ENTRIES, FINGERPRINTS, PROBES, BUCKETS, COMPARED = range(9)
COUNTERS = 9
"""Indexes into the counters. FREE_ROW: first free row of the chain, or -1. The last three count work."""


@kernel_inline
def tables_for(radius: int) -> int:
    """Return how many tables, or second-level tables, a radius needs: 1 to 4."""
    return min(radius + 1, 4)


@kernel_inline
def tolerance(radius: int, table: int) -> int:
    """Return in how many bits a key of `table` may differ: 0 or 1, or -1 if the table is not needed."""
    if table > radius:
        return -1
    return 1 if table < radius - 3 else 0


@kernel_inline
def home_bucket(fingerprint: np.uint64, table: int) -> int:
    """Return the first-level bucket of a fingerprint in `table`."""
    key = (fingerprint >> np.uint64(BLOCK_BITS * table)) & np.uint64(KEYS - 1)
    return (table << BLOCK_BITS) | int(np.int64(key))


@kernel_inline
def remaining_bits(fingerprint: np.uint64, table: int) -> np.uint64:
    """Return the 48 bits of a fingerprint (or of a difference) without the block of `table`."""
    below = np.uint64(BLOCK_BITS * table)
    low = fingerprint & ((np.uint64(1) << below) - np.uint64(1))
    return low | (((fingerprint >> below) >> np.uint64(BLOCK_BITS)) << below)


@kernel_inline
def sub_bucket(rest: np.uint64, sub: int) -> int:
    """Return the second-level bucket of 48 remaining bits in second-level table `sub`, from 0."""
    key = (rest >> np.uint64(SUB_BITS * sub)) & np.uint64(SUB_KEYS - 1)
    return (sub << SUB_BITS) | int(np.int64(key))


@kernel_inline
def reported_earlier(difference: np.uint64, radius: int, table: int, sub_radius: int, sub: int) -> bool:
    """Return whether a table before `table`, or a second-level table before `sub`, reports this difference.

    sub: 0 if the bucket has no second level.
    """
    for earlier in range(table):
        block = (difference >> np.uint64(BLOCK_BITS * earlier)) & np.uint64(KEYS - 1)
        if popcount(block) <= tolerance(radius, earlier):
            return True
    rest = remaining_bits(difference, table)
    for earlier in range(sub):
        block = (rest >> np.uint64(SUB_BITS * earlier)) & np.uint64(SUB_KEYS - 1)
        if popcount(block) <= tolerance(sub_radius, earlier):
            return True
    return False


@kernel_inline
def leaves_of(fingerprint: np.uint64, tables: int, headers: Headers, leaves: Integers) -> int:
    """Write the buckets to which `fingerprint` belongs into leaves: int64[16]; return their number."""
    count = 0
    for table in range(tables):
        bucket = home_bucket(fingerprint, table)
        child = headers[bucket, CHILD]
        if child == 0:
            leaves[count] = bucket
            count += 1
            continue
        rest = remaining_bits(fingerprint, table)
        for sub in range(tables):
            leaves[count] = child + sub_bucket(rest, sub)
            count += 1
    return count
