"""Insertion into and removal from the buckets of the key index.

How: an entry owns eight rows. A row therefore stores neither its key nor its sequence, only the next row of
its bucket. A bucket is a ring, represented by its last row, whose next row is the first. So the latest entry
is appended and the earliest removed without a walk; for any other, all earlier rows are walked.
Invariants: sequences ascend from the first row of a bucket to the last, each once; a row in no bucket is
`NOWHERE`.
"""

import numpy as np

from dedup_service.core.index.key_table import KEY, LAST, Buckets, Integers, Keys, empty_slot, room, slot_of
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel

__all__ = [
    "COUNTERS",
    "DUPLICATE",
    "ENTRIES",
    "FREE_ENTRY",
    "FULL",
    "STATUS",
    "WIDTH",
    "KeyArrays",
    "insert_all",
    "insert_few",
    "remove_one",
]

WIDTH = 8
"""Keys, and rows, of an entry; those of entry e begin at e * WIDTH."""

NOWHERE = np.uint32(0xFFFFFFFF)

STATUS, ENTRIES, ENTRIES_USED, FREE_ENTRY, BUCKETS_USED = range(5)
COUNTERS = 5
"""Indexes into the counters. FREE_ENTRY: first entry of the chain of free entries, or -1."""

DONE, FULL, DUPLICATE = range(3)
"""Why `insert_all` returned: all inserted; no slots left; a sequence is in the bucket of a key already."""

KeyArrays = tuple[Buckets, Integers, Keys, Integers]
"""The contents of the index in the form that kernels take: buckets, sequences, next_row, counters.

buckets: uint32[slots, 2], see `key_table`. sequences: int64[entries]; for a free entry, the next
free one or -1. next_row: uint32[entries * 8], the next row in the bucket of each row. counters: int64[5],
indexed by the names above.
"""


@kernel_inline
def row_before(last: int, sequence: int, sequences: Integers, next_row: Keys) -> int:
    """Return the row before the place of a sequence in the bucket whose last row is `last`."""
    before = last
    if sequence <= sequences[last // WIDTH]:
        while sequences[np.int64(next_row[before]) // WIDTH] < sequence:
            before = int(np.int64(next_row[before]))
    return before


@kernel_inline
def row_of(key: np.uint32, sequence: int, arrays: KeyArrays) -> int:
    """Return the row of a sequence in the bucket of a key, or -1."""
    buckets, sequences, next_row, _ = arrays
    slot = slot_of(key, buckets)
    if buckets[slot, KEY] == 0:
        return -1
    before = row_before(int(np.int64(buckets[slot, LAST])), sequence, sequences, next_row)
    row = int(np.int64(next_row[before]))
    return row if sequences[row // WIDTH] == sequence else -1


@kernel_inline
def join(key: np.uint32, sequence: int, row: int, arrays: KeyArrays) -> None:
    """Insert a row into the bucket of a key, unless its sequence is there: the key is repeated."""
    buckets, sequences, next_row, counters = arrays
    slot = slot_of(key, buckets)
    if buckets[slot, KEY] == 0:
        buckets[slot, KEY] = key
        buckets[slot, LAST] = row
        next_row[row] = row
        counters[BUCKETS_USED] += 1
        return
    last = int(np.int64(buckets[slot, LAST]))
    before = row_before(last, sequence, sequences, next_row)
    if sequences[np.int64(next_row[before]) // WIDTH] == sequence:
        return
    next_row[row] = next_row[before]
    next_row[before] = row
    if sequence > sequences[last // WIDTH]:
        buckets[slot, LAST] = row


@kernel_inline
def leave(key: np.uint32, sequence: int, arrays: KeyArrays) -> None:
    """Remove a sequence from the bucket of a key, unless it is removed already: the key is repeated."""
    buckets, sequences, next_row, counters = arrays
    slot = slot_of(key, buckets)
    if buckets[slot, KEY] == 0:
        return
    last = int(np.int64(buckets[slot, LAST]))
    before = row_before(last, sequence, sequences, next_row)
    row = int(np.int64(next_row[before]))
    if sequences[row // WIDTH] != sequence:
        return
    if row == before:
        empty_slot(slot, buckets)
        counters[BUCKETS_USED] -= 1
    elif row == last:
        buckets[slot, LAST] = before
    next_row[before] = next_row[row]
    next_row[row] = NOWHERE


@kernel_inline
def take_entry(sequence: int, sequences: Integers, next_row: Keys, counters: Integers) -> int:
    """Return a new entry in no bucket; the caller ensures that there is room for one."""
    entry = int(counters[FREE_ENTRY])
    if entry >= 0:
        counters[FREE_ENTRY] = sequences[entry]
    else:
        entry = int(counters[ENTRIES_USED])
        counters[ENTRIES_USED] += 1
    sequences[entry] = sequence
    next_row[entry * WIDTH : (entry + 1) * WIDTH] = NOWHERE
    counters[ENTRIES] += 1
    return entry


@long_kernel
def insert_all(new_sequences: Integers, keys: Keys, done: int, arrays: KeyArrays) -> int:
    """Insert entries from number `done` on; return how many are inserted.

    counters[STATUS] receives why it returned. new_sequences: int64[n]; keys: uint32[n, 8]. The caller
    ensures that entries suffice for all.
    """
    buckets, sequences, next_row, counters = arrays
    for at in range(done, len(keys)):
        if counters[BUCKETS_USED] + WIDTH > room(len(buckets)):
            counters[STATUS] = FULL
            return at
        sequence = new_sequences[at]
        used = 0
        for number in range(WIDTH):
            key = keys[at, number]
            if key != 0:
                used += 1
                if row_of(key, sequence, arrays) >= 0:
                    counters[STATUS] = DUPLICATE
                    return at
        if used == 0:
            continue
        entry = take_entry(sequence, sequences, next_row, counters)
        for number in range(WIDTH):
            if keys[at, number] != 0:
                join(keys[at, number], sequence, entry * WIDTH + number, arrays)
    counters[STATUS] = DONE
    return len(keys)


@kernel
def insert_few(new_sequences: Integers, keys: Keys, done: int, arrays: KeyArrays) -> int:
    """The same as `insert_all`, for one page or a few: it keeps the interpreter lock."""
    return insert_all(new_sequences, keys, done, arrays)


@kernel_inline
def entry_of(sequence: int, keys: Keys, arrays: KeyArrays) -> int:
    """Return the entry that is in the buckets of all keys: uint32[8], and in no others, or -1."""
    next_row = arrays[2]
    entry, found = -1, 0
    for number in range(WIDTH):
        if keys[number] != 0:
            row = row_of(keys[number], sequence, arrays)
            if row < 0 or (entry >= 0 and row // WIDTH != entry):
                return -1
            entry = row // WIDTH
            found |= 1 << (row % WIDTH)
    for number in range(WIDTH):
        if entry >= 0 and next_row[entry * WIDTH + number] != NOWHERE and (found >> number) & 1 == 0:
            return -1
    return entry


@kernel
def remove_one(sequence: int, keys: Keys, arrays: KeyArrays) -> bool:
    """Remove the entry of a sequence and keys: uint32[8], not all 0; return False if there is none."""
    _, sequences, _, counters = arrays
    entry = entry_of(sequence, keys, arrays)
    if entry < 0:
        return False
    for number in range(WIDTH):
        if keys[number] != 0:
            leave(keys[number], sequence, arrays)
    sequences[entry] = counters[FREE_ENTRY]
    counters[FREE_ENTRY] = entry
    counters[ENTRIES] -= 1
    return True
