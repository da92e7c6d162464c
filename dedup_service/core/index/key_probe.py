"""Find the entries that share a key: the first rows of some buckets, merged.

How: a cursor walks each bucket; the least sequence that any stands at is next, and all that stand at it move on.
So sequences come out ascending and once each, with no set and no sorting, and how many stood at one is how many keys
it shares.
Invariant: probing changes nothing.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.block_layout import Integers
from dedup_service.core.index.key_rows import WIDTH, KeyArrays
from dedup_service.core.index.key_table import KEY, LAST, Keys, slot_of
from dedup_service.core.kernels import kernel, kernel_inline

__all__ = ["probe_all"]

Shared = npt.NDArray[np.uint8]

SEQUENCE, ROW, END, LEFT = range(4)
"""Where a probe stands in a bucket: at which sequence (-1: at the end), row, last row; how many it may yet look at."""


@kernel_inline
def begin(number: int, key: np.uint32, maximum: int, cursors: Integers, arrays: KeyArrays) -> None:
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
    cursors[LEFT, number] = maximum
    cursors[SEQUENCE, number] = sequences[cursors[ROW, number] // WIDTH]


@kernel_inline
def advance(number: int, cursors: Integers, arrays: KeyArrays) -> None:
    """Move a cursor to the next row of its bucket, where there is one that may be looked at."""
    _, sequences, following, _ = arrays
    cursors[LEFT, number] -= 1
    if cursors[LEFT, number] == 0 or cursors[ROW, number] == cursors[END, number]:
        cursors[SEQUENCE, number] = -1
        return
    cursors[ROW, number] = following[cursors[ROW, number]]
    cursors[SEQUENCE, number] = sequences[cursors[ROW, number] // WIDTH]


@kernel_inline
def minimum(cursors: Integers) -> int:
    """Return the least sequence that a cursor stands at, or -1 where all are at their ends."""
    smallest = -1
    for number in range(WIDTH):
        sequence = cursors[SEQUENCE, number]
        if sequence >= 0 and (smallest < 0 or sequence < smallest):
            smallest = sequence
    return smallest


@kernel
def keep_best(start: int, count: int, best: int, output: Integers, shared: Shared) -> int:
    """Keep the `best` of `count` sequences that share most keys, the earliest of equals, in place; return how many."""
    if count <= best:
        return count
    of_share = np.zeros(WIDTH + 1, np.int64)
    for at in range(start, start + count):
        of_share[shared[at]] += 1
    min_shared, room = WIDTH, best
    while of_share[min_shared] < room:
        room -= of_share[min_shared]
        min_shared -= 1
    kept = start
    for at in range(start, start + count):
        if shared[at] < min_shared or (shared[at] == min_shared and room == 0):
            continue
        room -= shared[at] == min_shared
        output[kept], shared[kept] = output[at], shared[at]
        kept += 1
    return best


@kernel
def probe_all(
    keys: Keys, maximum: int, best: int, arrays: KeyArrays, offsets: Integers, output: Integers, shared: Shared
) -> tuple[int, int]:
    """Merge the first `maximum` rows of the buckets of each row of keys: uint32[n, 8], and keep the `best` of each.

    offsets: int64[n + 1] receives where each one's sequences begin in the output, and the end; shared: uint8, as long
    as the output, how many keys each shares. Returns the number of sequences in all, and the room that was needed;
    where that exceeds the room there is, the answer is none, and the caller probes again with as much.
    """
    cursors = np.empty((4, WIDTH), np.int64)
    found = needed = 0
    for query in range(len(keys)):
        offsets[query] = found
        for number in range(WIDTH):
            begin(number, keys[query, number], maximum, cursors, arrays)
        count = 0
        sequence = minimum(cursors)
        while sequence >= 0:
            at, sharing = found + count, 0
            for number in range(WIDTH):
                if cursors[SEQUENCE, number] == sequence:
                    sharing += 1
                    advance(number, cursors, arrays)
            if at < len(output):
                output[at], shared[at] = sequence, sharing
            count += 1
            sequence = minimum(cursors)
        needed = max(needed, found + count)
        found += keep_best(found, count, best, output, shared) if found + count <= len(output) else count
    offsets[len(keys)] = found
    return found, needed
