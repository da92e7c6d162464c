"""Entries in the buckets of their keys: how they come and leave.

How: an entry owns eight rows, so a row needs to store neither its key nor its sequence, only the next row of
its bucket. A bucket is a ring, named by its last row, whose next row is the first. So the latest joins and the
earliest leaves without a walk; any other walks past all that are earlier.
Invariants: sequences ascend from a bucket's first row to its last, each once; a row in no bucket says `NOWHERE`.
"""

import numpy as np

from dedup_service.core.index.block_layout import Integers
from dedup_service.core.index.key_table import KEY, LAST, Buckets, Keys, empty_slot, room, slot_of
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
"""Keys, and rows, of an entry; those of entry e are e * WIDTH and following."""

NOWHERE = np.uint32(0xFFFFFFFF)

STATUS, ENTRIES, ENTRIES_USED, FREE_ENTRY, BUCKETS_USED = range(5)
COUNTERS = 5
"""Places in the counters; FREE_ENTRY is the first of the chained free entries, or -1."""

DONE, FULL, DUPLICATE = range(3)
"""Why `insert_all` came back: all inserted; no slots left; sequence already in the bucket of a key."""

KeyArrays = tuple[Buckets, Integers, Keys, Integers]
"""All that the index holds, as kernels take it: buckets, sequences, following, counters.

buckets: uint32[slots, 2], see `key_table`. sequences: int64[entries], of a free entry the next free one or -1.
following: uint32[entries * 8], the next row in the bucket of each row. counters: int64[5], the places above.
"""


@kernel_inline
def row_before(last: int, sequence: int, sequences: Integers, following: Keys) -> int:
    """Return the row behind which a sequence stands or belongs, in the bucket of the row `last`."""
    before = last
    if sequence <= sequences[last // WIDTH]:
        while sequences[np.int64(following[before]) // WIDTH] < sequence:
            before = int(np.int64(following[before]))
    return before


@kernel_inline
def row_of(key: np.uint32, sequence: int, arrays: KeyArrays) -> int:
    """Return the row of a sequence in the bucket of a key, or -1."""
    buckets, sequences, following, _ = arrays
    slot = slot_of(key, buckets)
    if buckets[slot, KEY] == 0:
        return -1
    before = row_before(int(np.int64(buckets[slot, LAST])), sequence, sequences, following)
    row = int(np.int64(following[before]))
    return row if sequences[row // WIDTH] == sequence else -1


@kernel_inline
def join(key: np.uint32, sequence: int, row: int, arrays: KeyArrays) -> None:
    """Put a row into the bucket of a key, unless its sequence is there: by the same key a second time."""
    buckets, sequences, following, counters = arrays
    slot = slot_of(key, buckets)
    if buckets[slot, KEY] == 0:
        buckets[slot, KEY] = key
        buckets[slot, LAST] = row
        following[row] = row
        counters[BUCKETS_USED] += 1
        return
    last = int(np.int64(buckets[slot, LAST]))
    before = row_before(last, sequence, sequences, following)
    if sequences[np.int64(following[before]) // WIDTH] == sequence:
        return
    following[row] = following[before]
    following[before] = row
    if sequence > sequences[last // WIDTH]:
        buckets[slot, LAST] = row


@kernel_inline
def leave(key: np.uint32, sequence: int, arrays: KeyArrays) -> None:
    """Take a sequence out of the bucket of a key, unless the same key did before."""
    buckets, sequences, following, counters = arrays
    slot = slot_of(key, buckets)
    if buckets[slot, KEY] == 0:
        return
    last = int(np.int64(buckets[slot, LAST]))
    before = row_before(last, sequence, sequences, following)
    row = int(np.int64(following[before]))
    if sequences[row // WIDTH] != sequence:
        return
    if row == before:
        empty_slot(slot, buckets)
        counters[BUCKETS_USED] -= 1
    elif row == last:
        buckets[slot, LAST] = before
    following[before] = following[row]
    following[row] = NOWHERE


@kernel_inline
def take_entry(sequence: int, sequences: Integers, following: Keys, counters: Integers) -> int:
    """Return a new entry in no bucket; the caller has seen to it that there is room for one."""
    entry = int(counters[FREE_ENTRY])
    if entry >= 0:
        counters[FREE_ENTRY] = sequences[entry]
    else:
        entry = int(counters[ENTRIES_USED])
        counters[ENTRIES_USED] += 1
    sequences[entry] = sequence
    following[entry * WIDTH : (entry + 1) * WIDTH] = NOWHERE
    counters[ENTRIES] += 1
    return entry


@long_kernel
def insert_all(new_sequences: Integers, keys: Keys, done: int, arrays: KeyArrays) -> int:
    """Insert entries from number `done` on; return how many are in, and in counters[STATUS] why it ended.

    keys: uint32[n, 8]. Entries must suffice for all.
    """
    buckets, sequences, following, counters = arrays
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
        entry = take_entry(sequence, sequences, following, counters)
        for number in range(WIDTH):
            if keys[at, number] != 0:
                join(keys[at, number], sequence, entry * WIDTH + number, arrays)
    counters[STATUS] = DONE
    return len(keys)


@kernel
def insert_few(new_sequences: Integers, keys: Keys, done: int, arrays: KeyArrays) -> int:
    """The same as `insert_all`, for the entries of one page or some."""
    return insert_all(new_sequences, keys, done, arrays)


@kernel_inline
def entry_of(sequence: int, keys: Keys, arrays: KeyArrays) -> int:
    """Return the entry that stands in the buckets of all keys: uint32[8], and in no others, or -1."""
    following = arrays[2]
    entry, found = -1, 0
    for number in range(WIDTH):
        if keys[number] != 0:
            row = row_of(keys[number], sequence, arrays)
            if row < 0 or (entry >= 0 and row // WIDTH != entry):
                return -1
            entry = row // WIDTH
            found |= 1 << (row % WIDTH)
    for number in range(WIDTH):
        if entry >= 0 and following[entry * WIDTH + number] != NOWHERE and (found >> number) & 1 == 0:
            return -1
    return entry


@kernel
def remove_one(sequence: int, keys: Keys, arrays: KeyArrays) -> bool:
    """Remove the entry of a sequence and keys: uint32[8], one of them not 0; return False where there is none."""
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
