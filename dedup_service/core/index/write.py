"""Put entries into the tables and take them out.

Buckets grow by moving to the free end of the arena, a quarter larger; what they leave behind is
reclaimed when the arena is laid out anew (`arena`).
Invariant: a fingerprint stands once in every leaf bucket that `leaves_of` names, in no other.
"""

import numpy as np

from dedup_service.core.index.chains import free_row, join_chain, leave_chain, take_row
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
    Integers,
    leaves_of,
)
from dedup_service.core.index.scan import position_of
from dedup_service.core.kernels import kernel

__all__ = ["CROWDED", "DONE", "DUPLICATE", "FULL", "insert_all", "remove_one"]

DONE, FULL, CROWDED, DUPLICATE = range(4)
"""Why `insert_all` came back: all inserted; no slots left; a bucket wants splitting; entry already there."""


@kernel
def slot_of(fingerprint: np.uint64, leaves: Integers, arrays: Arrays) -> int:
    """Return the slot of a fingerprint in the shortest of its leaf buckets, or -1."""
    headers, stored, _, _, _, _ = arrays
    shortest = leaves[0]
    for leaf in leaves:
        if headers[leaf, LENGTH] < headers[shortest, LENGTH]:
            shortest = leaf
    start = np.int64(headers[shortest, START]) * QUANTUM
    return position_of(stored, start, start + headers[shortest, LENGTH], fingerprint)


@kernel
def grown(capacity: int) -> int:
    """Return the next capacity, in quanta, of a full bucket: a quarter more, and at least one."""
    return np.int64(capacity) + capacity // 4 + 1


@kernel
def slots_needed(leaves: Integers, arrays: Arrays) -> int:
    """Return how many slots one more entry in each leaf takes from the arena."""
    headers = arrays[0]
    quanta = 0
    for leaf in leaves:
        if headers[leaf, LENGTH] == headers[leaf, CAPACITY] * QUANTUM:
            quanta += grown(headers[leaf, CAPACITY])
    return quanta * QUANTUM


@kernel
def append(bucket: int, fingerprint: np.uint64, row: int, arrays: Arrays) -> int:
    """Add an entry to a bucket, moving a full one to the arena's free end; return its new length."""
    headers, stored, rows, _, _, counters = arrays
    start = np.int64(headers[bucket, START]) * QUANTUM
    length = np.int64(headers[bucket, LENGTH])
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


@kernel
def insert_all(
    new_sequences: Integers, fingerprints: Fingerprints, done: int, crowded: int, tables: int, arrays: Arrays
) -> int:
    """Insert entries from number `done` on; return how many are in, and in counters[STATUS] why it ended.

    crowded: the length beyond which a first-level bucket is reported. Rows must suffice for all.
    """
    headers, stored, rows, _, _, counters = arrays
    leaf_room = np.empty(16, np.int64)
    for at in range(done, len(fingerprints)):
        fingerprint = fingerprints[at]
        leaves = leaf_room[: leaves_of(fingerprint, tables, headers, leaf_room)]
        slot = slot_of(fingerprint, leaves, arrays)
        if slot >= 0:
            if join_chain(rows[slot], new_sequences[at], arrays):
                continue
            counters[STATUS] = DUPLICATE
            return at
        if counters[SLOTS_USED] + slots_needed(leaves, arrays) > len(stored):
            counters[STATUS] = FULL
            return at
        row = take_row(new_sequences[at], arrays)
        counters[FINGERPRINTS] += 1
        longest = 0
        for leaf in leaves:
            length = append(leaf, fingerprint, row, arrays)
            if leaf < tables << BLOCK_BITS:
                longest = max(longest, length)
        if longest > crowded:
            counters[STATUS] = CROWDED
            return at + 1
    counters[STATUS] = DONE
    return len(fingerprints)


@kernel
def erase(bucket: int, fingerprint: np.uint64, arrays: Arrays) -> None:
    """Take a fingerprint out of a bucket, filling its slot with the last entry."""
    headers, stored, rows, _, _, _ = arrays
    start = np.int64(headers[bucket, START]) * QUANTUM
    last = start + headers[bucket, LENGTH] - 1
    at = position_of(stored, start, last + 1, fingerprint)
    stored[at] = stored[last]
    rows[at] = rows[last]
    headers[bucket, LENGTH] -= 1


@kernel
def remove_one(sequence: int, fingerprints: Fingerprints, tables: int, arrays: Arrays) -> bool:
    """Remove the entry (sequence, fingerprints[0]); return False where there is none."""
    headers, _, rows, sequences, following, counters = arrays
    fingerprint = fingerprints[0]
    leaf_room = np.empty(16, np.int64)
    leaves = leaf_room[: leaves_of(fingerprint, tables, headers, leaf_room)]
    slot = slot_of(fingerprint, leaves, arrays)
    if slot < 0:
        return False
    first = np.int64(rows[slot])
    if following[first] >= 0:
        return leave_chain(first, sequence, arrays)
    if sequences[first] != sequence:
        return False
    for leaf in leaves:
        erase(leaf, fingerprint, arrays)
    free_row(first, arrays)
    counters[FINGERPRINTS] -= 1
    return True
