"""Put entries into the tables and take them out.

Buckets grow by moving to the free end of the arena, a quarter larger; what they leave behind is
reclaimed when the arena is laid out anew (`arena`).
Invariant: a fingerprint stands once in every leaf bucket that `leaves_of` names, in no other.
"""

import numpy as np

from dedup_service.core.index.chains import free_row, join_chain, leave_chain, take_row
from dedup_service.core.index.inlined import inlined
from dedup_service.core.index.layout import (
    BLOCK_BITS,
    CAPACITY,
    FINGERPRINTS,
    LENGTH,
    QUANTUM,
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
from dedup_service.core.index.scan import position_of
from dedup_service.core.kernels import kernel, long_kernel

__all__ = ["CROWDED", "DONE", "DUPLICATE", "FULL", "insert_all", "insert_few", "remove_one"]

DONE, FULL, CROWDED, DUPLICATE = range(4)
"""Why `insert_all` came back: all inserted; no slots left; a bucket wants splitting; entry already there."""


@inlined
def slot_of(fingerprint: np.uint64, leaves: Integers, count: int, headers: Headers, stored: Fingerprints) -> int:
    """Return the slot of a fingerprint in the shortest of its leaf buckets, or -1."""
    shortest = leaves[0]
    for at in range(1, count):
        if headers[leaves[at], LENGTH] < headers[shortest, LENGTH]:
            shortest = leaves[at]
    start = int(headers[shortest, START]) * QUANTUM
    return position_of(stored, start, start + headers[shortest, LENGTH], fingerprint)


@inlined
def grown(capacity: int) -> int:
    """Return the next capacity, in quanta, of a full bucket: a quarter more, and at least one."""
    return int(capacity) + capacity // 4 + 1


@inlined
def slots_needed(leaves: Integers, count: int, headers: Headers) -> int:
    """Return how many slots one more entry in each leaf takes from the arena."""
    quanta = 0
    for at in range(count):
        leaf = leaves[at]
        if headers[leaf, LENGTH] == headers[leaf, CAPACITY] * QUANTUM:
            quanta += grown(headers[leaf, CAPACITY])
    return quanta * QUANTUM


@inlined
def append(
    bucket: int,
    fingerprint: np.uint64,
    row: int,
    headers: Headers,
    stored: Fingerprints,
    rows: Rows,
    counters: Integers,
) -> int:
    """Add an entry to a bucket, moving a full one to the arena's free end; return its new length."""
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
    """Insert entries from number `done` on; return how many are in, and in counters[STATUS] why it ended.

    crowded: the length beyond which a first-level bucket is reported. leaves: int64[16], scratch.
    Rows must suffice for all.
    """
    headers, stored, rows, sequences, following, counters = arrays
    for at in range(done, len(fingerprints)):
        fingerprint = fingerprints[at]
        count = leaves_of(fingerprint, tables, headers, leaves)
        slot = slot_of(fingerprint, leaves, count, headers, stored)
        if slot >= 0:
            if join_chain(rows[slot], new_sequences[at], sequences, following, counters):
                continue
            counters[STATUS] = DUPLICATE
            return at
        if counters[SLOTS_USED] + slots_needed(leaves, count, headers) > len(stored):
            counters[STATUS] = FULL
            return at
        row = take_row(new_sequences[at], sequences, following, counters)
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
    """The same as `insert_all`, for the entries of one page or some."""
    return insert_all(new_sequences, fingerprints, done, crowded, tables, leaves, arrays)


@inlined
def erase(bucket: int, fingerprint: np.uint64, headers: Headers, stored: Fingerprints, rows: Rows) -> None:
    """Take a fingerprint out of a bucket, filling its slot with the last entry."""
    start = int(headers[bucket, START]) * QUANTUM
    last = start + headers[bucket, LENGTH] - 1
    at = position_of(stored, start, last + 1, fingerprint)
    stored[at] = stored[last]
    rows[at] = rows[last]
    headers[bucket, LENGTH] -= 1


@kernel
def remove_one(sequence: int, fingerprints: Fingerprints, tables: int, leaves: Integers, arrays: Arrays) -> bool:
    """Remove the entry (sequence, fingerprints[0]); return False where there is none."""
    headers, stored, rows, sequences, following, counters = arrays
    fingerprint = fingerprints[0]
    count = leaves_of(fingerprint, tables, headers, leaves)
    slot = slot_of(fingerprint, leaves, count, headers, stored)
    if slot < 0:
        return False
    first = int(rows[slot])
    if following[first] >= 0:
        return leave_chain(first, sequence, sequences, following, counters)
    if sequences[first] != sequence:
        return False
    for leaf in range(count):
        erase(leaves[leaf], fingerprint, headers, stored, rows)
    free_row(first, following, counters)
    counters[FINGERPRINTS] -= 1
    return True
