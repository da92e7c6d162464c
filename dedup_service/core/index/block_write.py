"""Insertion into and removal from the tables of the seed layout.

Chains: a row is one entry, its sequence and the next row of the same fingerprint. Buckets have each distinct
fingerprint once, with the first row of its chain, so ten thousand identical pages cost one comparison. A
chain runs from the latest sequence to the earliest: appending in order is O(1), and a second insertion of an
entry is noticed on the way.

Buckets: a full bucket moves to the free end of the arena with a quarter more room. `block_arena` reclaims
what it leaves behind.

Invariants: the first row of a chain stays the same row for the life of the chain (contents move instead), so
no bucket is touched when a chain grows or shrinks. A fingerprint is stored once in every leaf bucket that
`leaves_of` returns, and in no other.
"""

import numpy as np

from dedup_service.core.index.block_layout import (
    BLOCK_BITS,
    CAPACITY,
    ENTRIES,
    FINGERPRINTS,
    FREE_ROW,
    LENGTH,
    QUANTUM,
    ROWS_USED,
    SLOTS_USED,
    START,
    STATUS,
    Arrays,
    Fingerprints,
    Headers,
    Integers,
    Rows,
    leaves_of,
)
from dedup_service.core.index.block_probe import position_of
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel

DONE, FULL, CROWDED, DUPLICATE = range(4)
"""Why `insert_all` returned: all inserted; no slots left; a bucket must be split; entry already there."""


@kernel_inline
def take_row(sequence: int, sequences: Integers, next_row: Rows, counters: Integers) -> int:
    """Return a new chain of one row for a sequence; the caller ensures that a row is free."""
    row = int(counters[FREE_ROW])
    if row >= 0:
        counters[FREE_ROW] = next_row[row]
    else:
        row = int(counters[ROWS_USED])
        counters[ROWS_USED] += 1
    sequences[row] = sequence
    next_row[row] = -1
    counters[ENTRIES] += 1
    return row


@kernel_inline
def free_row(row: int, next_row: Rows, counters: Integers) -> None:
    """Put a row into the chain of free rows."""
    next_row[row] = counters[FREE_ROW]
    counters[FREE_ROW] = row
    counters[ENTRIES] -= 1


@kernel_inline
def join_chain(first: int, sequence: int, sequences: Integers, next_row: Rows, counters: Integers) -> bool:
    """Insert a sequence into the chain that starts at row `first`; return False if it is there already."""
    before = int(first)
    if sequence > sequences[before]:
        sequence, sequences[before] = sequences[before], sequence
    else:
        while next_row[before] >= 0 and sequences[next_row[before]] >= sequence:
            before = int(next_row[before])
        if sequences[before] == sequence:
            return False
    row = take_row(sequence, sequences, next_row, counters)
    next_row[row] = next_row[before]
    next_row[before] = row
    return True


@kernel_inline
def leave_chain(first: int, sequence: int, sequences: Integers, next_row: Rows, counters: Integers) -> bool:
    """Remove a sequence from a chain of two rows or more; return False if it is not there."""
    before = int(first)
    row = int(next_row[before])
    if sequences[before] == sequence:
        sequences[before] = sequences[row]
    else:
        while row >= 0 and sequences[row] != sequence:
            before, row = row, int(next_row[row])
        if row < 0:
            return False
    next_row[before] = next_row[row]
    free_row(row, next_row, counters)
    return True


@kernel_inline
def slot_of(fingerprint: np.uint64, leaves: Integers, count: int, headers: Headers, stored: Fingerprints) -> int:
    """Return the slot of a fingerprint in the shortest of its leaf buckets, or -1."""
    shortest = leaves[0]
    for at in range(1, count):
        if headers[leaves[at], LENGTH] < headers[shortest, LENGTH]:
            shortest = leaves[at]
    start = int(headers[shortest, START]) * QUANTUM
    return position_of(stored, start, start + headers[shortest, LENGTH], fingerprint)


@kernel_inline
def grown(capacity: int) -> int:
    """Return the next capacity, in quanta, of a full bucket: a quarter more, and at least one."""
    return int(capacity) + capacity // 4 + 1


@kernel_inline
def slots_needed(leaves: Integers, count: int, headers: Headers) -> int:
    """Return how many slots of the arena one more entry in each leaf takes."""
    quanta = 0
    for at in range(count):
        leaf = leaves[at]
        if headers[leaf, LENGTH] == headers[leaf, CAPACITY] * QUANTUM:
            quanta += grown(headers[leaf, CAPACITY])
    return quanta * QUANTUM


@kernel_inline
def append(
    bucket: int,
    fingerprint: np.uint64,
    row: int,
    headers: Headers,
    stored: Fingerprints,
    rows: Rows,
    counters: Integers,
) -> int:
    """Add a fingerprint to a bucket, which moves to the free end if it is full; return the new length."""
    start = int(headers[bucket, START]) * QUANTUM
    length = int(headers[bucket, LENGTH])
    if length == headers[bucket, CAPACITY] * QUANTUM:
        target = counters[SLOTS_USED]
        for offset in range(length):
            stored[target + offset] = stored[start + offset]
            rows[target + offset] = rows[start + offset]
        start = target
        headers[bucket, START] = target // QUANTUM
        headers[bucket, CAPACITY] = grown(headers[bucket, CAPACITY])
        counters[SLOTS_USED] += headers[bucket, CAPACITY] * QUANTUM
    stored[start + length] = fingerprint
    rows[start + length] = row
    headers[bucket, LENGTH] = length + 1
    return length + 1


@long_kernel
def insert_all(
    new_sequences: Integers,
    fingerprints: Fingerprints,
    done: int,
    crowded: int,
    tables: int,
    leaves: Integers,
    arrays: Arrays,
) -> int:
    """Insert entries from number `done` on; return how many are inserted.

    counters[STATUS] receives why it returned. new_sequences: int64[n]; fingerprints: uint64[n]. crowded:
    length above which a first-level bucket is reported.
    leaves: int64[16], scratch. The caller ensures that rows suffice for all.
    """
    headers, stored, rows, sequences, next_row, counters = arrays
    for at in range(done, len(fingerprints)):
        fingerprint = fingerprints[at]
        count = leaves_of(fingerprint, tables, headers, leaves)
        slot = slot_of(fingerprint, leaves, count, headers, stored)
        if slot >= 0:
            if join_chain(rows[slot], new_sequences[at], sequences, next_row, counters):
                continue
            counters[STATUS] = DUPLICATE
            return at
        if counters[SLOTS_USED] + slots_needed(leaves, count, headers) > len(stored):
            counters[STATUS] = FULL
            return at
        row = take_row(new_sequences[at], sequences, next_row, counters)
        counters[FINGERPRINTS] += 1
        longest = 0
        for leaf in range(count):
            length = append(leaves[leaf], fingerprint, row, headers, stored, rows, counters)
            if leaves[leaf] < tables << BLOCK_BITS:
                longest = max(longest, length)
        if longest > crowded:
            counters[STATUS] = CROWDED
            return at + 1
    counters[STATUS] = DONE
    return len(fingerprints)


@kernel
def insert_few(
    new_sequences: Integers,
    fingerprints: Fingerprints,
    done: int,
    crowded: int,
    tables: int,
    leaves: Integers,
    arrays: Arrays,
) -> int:
    """The same as `insert_all`, for one page or a few: it keeps the interpreter lock."""
    return insert_all(new_sequences, fingerprints, done, crowded, tables, leaves, arrays)


@kernel_inline
def erase(bucket: int, fingerprint: np.uint64, headers: Headers, stored: Fingerprints, rows: Rows) -> None:
    """Remove a fingerprint from a bucket; the last one fills its slot."""
    start = int(headers[bucket, START]) * QUANTUM
    last = start + headers[bucket, LENGTH] - 1
    at = position_of(stored, start, last + 1, fingerprint)
    stored[at] = stored[last]
    rows[at] = rows[last]
    headers[bucket, LENGTH] -= 1


@kernel
def remove_one(sequence: int, fingerprints: Fingerprints, tables: int, leaves: Integers, arrays: Arrays) -> bool:
    """Remove the entry of a sequence and fingerprints: uint64[1]; return False if there is none."""
    headers, stored, rows, sequences, next_row, counters = arrays
    fingerprint = fingerprints[0]
    count = leaves_of(fingerprint, tables, headers, leaves)
    slot = slot_of(fingerprint, leaves, count, headers, stored)
    if slot < 0:
        return False
    first = int(rows[slot])
    if next_row[first] >= 0:
        return leave_chain(first, sequence, sequences, next_row, counters)
    if sequences[first] != sequence:
        return False
    for leaf in range(count):
        erase(leaves[leaf], fingerprint, headers, stored, rows)
    free_row(first, next_row, counters)
    counters[FINGERPRINTS] -= 1
    return True
