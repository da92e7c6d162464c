"""Find the entries that share a key: the first rows of some buckets, merged.

How: a cursor walks each bucket; the least sequence that any stands at is next, and all that stand at it move on.
So sequences come out ascending and once each, with no set and no sorting.
Invariant: probing changes nothing.
"""

import numpy as np

from dedup_service.core.index.inlined import inlined
from dedup_service.core.index.key_rows import WIDTH, KeyArrays
from dedup_service.core.index.key_table import KEY, LAST, Keys, slot_of
from dedup_service.core.index.layout import Integers
from dedup_service.core.kernels import kernel

__all__ = ["probe_all"]

SEQUENCE, ROW, END, LEFT = range(4)
"""Where a probe stands in a bucket: at which sequence (-1: at the end), row, last row; how many it may yet look at."""


@inlined
def begin(number: int, key: np.uint32, most: int, cursors: Integers, arrays: KeyArrays) -> None:
    """Set a cursor to the first row of the bucket of a key."""
    buckets, sequences, following, _ = arrays
    cursors[SEQUENCE, number] = -1
    if key == 0:
        return
    slot = slot_of(key, buckets)
    if buckets[slot, KEY] == 0:
        return
    cursors[END, number] = buckets[slot, LAST]
    cursors[ROW, number] = following[buckets[slot, LAST]]
    cursors[LEFT, number] = most
    cursors[SEQUENCE, number] = sequences[cursors[ROW, number] // WIDTH]


@inlined
def advance(number: int, cursors: Integers, arrays: KeyArrays) -> None:
    """Move a cursor to the next row of its bucket, where there is one that may be looked at."""
    _, sequences, following, _ = arrays
    cursors[LEFT, number] -= 1
    if cursors[LEFT, number] == 0 or cursors[ROW, number] == cursors[END, number]:
        cursors[SEQUENCE, number] = -1
        return
    cursors[ROW, number] = following[cursors[ROW, number]]
    cursors[SEQUENCE, number] = sequences[cursors[ROW, number] // WIDTH]


@inlined
def least(cursors: Integers) -> int:
    """Return the least sequence that a cursor stands at, or -1 where all are at their ends."""
    smallest = -1
    for number in range(WIDTH):
        sequence = cursors[SEQUENCE, number]
        if sequence >= 0 and (smallest < 0 or sequence < smallest):
            smallest = sequence
    return smallest


@kernel
def probe_all(keys: Keys, most: int, arrays: KeyArrays, offsets: Integers, output: Integers) -> int:
    """Merge the first `most` rows of the buckets of each row of keys: uint32[n, 8].

    offsets: int64[n + 1] receives where each one's sequences begin in the output, and the end. Returns their number
    in all; where that exceeds the room of the output, the caller probes again with more.
    """
    cursors = np.empty((4, WIDTH), np.int64)
    found = 0
    for query in range(len(keys)):
        offsets[query] = found
        for number in range(WIDTH):
            begin(number, keys[query, number], most, cursors, arrays)
        sequence = least(cursors)
        while sequence >= 0:
            if found < len(output):
                output[found] = sequence
            found += 1
            for number in range(WIDTH):
                if cursors[SEQUENCE, number] == sequence:
                    advance(number, cursors, arrays)
            sequence = least(cursors)
    offsets[len(keys)] = found
    return found
