"""Search in the key index: merges the first rows of up to eight buckets.

How: a cursor walks each bucket. The smallest sequence at any cursor comes next, and all cursors at it
advance. Sequences therefore come out ascending and once each, without a set or a sort, and the number of
cursors at a sequence is the number of keys that it shares.
Invariant: a probe changes nothing in the index.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.key_rows import WIDTH, KeyArrays
from dedup_service.core.index.key_table import KEY, LAST, Integers, Keys, slot_of
from dedup_service.core.kernels import kernel, kernel_inline

__all__ = ["probe_all"]

Shared = npt.NDArray[np.uint8]
"""How many keys each found sequence shares."""

SEQUENCE, ROW, END, REMAINING = range(4)
"""Rows of cursors: int64[4, 8]: sequence (-1: at the end), row, last row, rows that it may still read."""


@kernel_inline
def begin(number: int, key: np.uint32, max_per_key: int, cursors: Integers, arrays: KeyArrays) -> None:
    """Set cursor `number` to the first row of the bucket of a key."""
    buckets, sequences, next_row, _ = arrays
    cursors[SEQUENCE, number] = -1
    if key == 0:
        return
    slot = slot_of(key, buckets)
    if buckets[slot, KEY] == 0:
        return
    cursors[END, number] = buckets[slot, LAST]
    cursors[ROW, number] = next_row[buckets[slot, LAST]]
    cursors[REMAINING, number] = max_per_key
    cursors[SEQUENCE, number] = sequences[cursors[ROW, number] // WIDTH]


@kernel_inline
def advance(number: int, cursors: Integers, arrays: KeyArrays) -> None:
    """Move cursor `number` to the next row of its bucket, or to the end."""
    _, sequences, next_row, _ = arrays
    cursors[REMAINING, number] -= 1
    if cursors[REMAINING, number] == 0 or cursors[ROW, number] == cursors[END, number]:
        cursors[SEQUENCE, number] = -1
        return
    cursors[ROW, number] = next_row[cursors[ROW, number]]
    cursors[SEQUENCE, number] = sequences[cursors[ROW, number] // WIDTH]


@kernel_inline
def next_sequence(cursors: Integers) -> int:
    """Return the smallest sequence at any cursor, or -1 if all are at their ends."""
    smallest = -1
    for number in range(WIDTH):
        sequence = cursors[SEQUENCE, number]
        if sequence >= 0 and (smallest < 0 or sequence < smallest):
            smallest = sequence
    return smallest


@kernel
def keep_best(start: int, count: int, max_found: int, output: Integers, shared: Shared) -> int:
    """Keep in place those of `count` sequences that share most keys, the earliest of equals.

    They begin at `start` in output: int64[room] and shared: uint8[room]; `max_found` are kept at most.
    Returns how many.
    """
    if count <= max_found:
        return count
    count_by_shared = np.zeros(WIDTH + 1, np.int64)
    for at in range(start, start + count):
        count_by_shared[shared[at]] += 1
    min_shared, room = WIDTH, max_found
    while count_by_shared[min_shared] < room:
        room -= count_by_shared[min_shared]
        min_shared -= 1
    kept = start
    for at in range(start, start + count):
        if shared[at] < min_shared or (shared[at] == min_shared and room == 0):
            continue
        room -= shared[at] == min_shared
        output[kept], shared[kept] = output[at], shared[at]
        kept += 1
    return max_found


@kernel
def probe_all(
    keys: Keys, max_per_key: int, max_found: int, arrays: KeyArrays, offsets: Integers, output: Integers, shared: Shared
) -> tuple[int, int]:
    """Merge the first `max_per_key` rows of the buckets of each row of keys, and keep `max_found` of them.

    keys: uint32[n, 8]. offsets: int64[n + 1] receives where the sequences of each row of keys begin in
    output: int64[room], and the end. shared: uint8[room] receives how many keys each sequence shares.
    Returns the total number of sequences, and the room that was needed. If that exceeds the room, the output
    is incomplete, and the caller must probe again with as much.
    """
    cursors = np.empty((4, WIDTH), np.int64)
    found = needed = 0
    for query in range(len(keys)):
        offsets[query] = found
        for number in range(WIDTH):
            begin(number, keys[query, number], max_per_key, cursors, arrays)
        count = 0
        sequence = next_sequence(cursors)
        while sequence >= 0:
            at, sharing = found + count, 0
            for number in range(WIDTH):
                if cursors[SEQUENCE, number] == sequence:
                    sharing += 1
                    advance(number, cursors, arrays)
            if at < len(output):
                output[at], shared[at] = sequence, sharing
            count += 1
            sequence = next_sequence(cursors)
        needed = max(needed, found + count)
        found += keep_best(found, count, max_found, output, shared) if found + count <= len(output) else count
    offsets[len(keys)] = found
    return found, needed
