"""Search in the compact layout: the lines of several fingerprints in flight at a time.

The lines that a fingerprint must read go to a list, and each is fetched when it goes there. It is read one list
later, while the lines of the next fingerprints are on the way; where a bucket continues, the next line goes to the
list that is being written. So a core waits for many lines at once, in chains of overflow lines, too. Hot buckets
are noted and expanded into lines of the refined tables.

A line's six words are compared at once (`close_words`), which rejects nearly all; what passes is checked in full.
`block_halves` explains why this misses nothing and reports nothing twice.

Invariant: a probe changes no entry, only the work counters.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.block_crowd import (
    CROWD,
    STACK,
    crowd_size,
    crowd_start,
    key_of,
    next_number,
    step,
)
from dedup_service.core.index.block_halves import (
    bits_between,
    half_of,
    half_tolerance,
    mixed_block,
    refined_of,
)
from dedup_service.core.index.block_halves_write import WORK_COMPARED, WORK_LINES, WORK_PROBES, Fingerprints
from dedup_service.core.index.block_lines import (
    COUNT_SHIFT,
    HEADS,
    HOT,
    LINE_BYTES,
    META,
    NEXT,
    OVERFLOW,
    Integers,
    bucket_of,
    hash_in,
    head_address,
    slot_tag,
    slot_value,
)
from dedup_service.core.index.block_memory import bit_length, close_words, fetch, item_address, load32
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel

__all__ = ["CompactOutput", "probe_few", "probe_numbers"]

CompactOutput = tuple[Integers, Integers, npt.NDArray[np.uint8]]
"""Room for candidates: queries int64[room], sequences int64[room] and distances uint8[room]."""

State = tuple[Integers, Integers]
"""Of a shard: bases int64[POOLS, SEGMENTS] and counters int64[COUNTERS]."""

_GROUP = 8
"""Fingerprints listed at once: some 100 lines, more than a core can wait for."""

_ROOM = 2048
"""Lines of a list. At most half of it is overflow lines of the list before."""

_MOST_REFINED = 34 + 32 * 18
"""Lines of the refined tables that one hot bucket leads to, at most: of the half itself and of its neighbours."""

_MOST_HOT = 256
"""Hot buckets that are noted before they are expanded."""

_FLIP, _NEAR, _QUERY = 3, 9, 14
"""Shifts of what a list item knows beside the address of its line.

The table (3 bits), the flipped bit of the half plus 1, or 0 (6 bits), the same for the block of the other half in a
refined table (5 bits), and the number of the query.
"""


@kernel_inline
def push(items: Integers, count: int, address: int, known: int) -> int:
    """Add a line to a list, fetch it, and return the new length of the list."""
    items[np.uint64(count), 0], items[np.uint64(count), 1] = address, known
    return count + 1


@kernel_inline
def list_half(half: int, query: int, value: int, radius: int, items: Integers, count: int, state: State) -> int:
    """Add the first-level lines of a fingerprint's half to a list: int64[_ROOM, 2]; return its length."""
    bases, counters = state
    heads = counters[HEADS + half]
    home = bucket_of(value, heads)
    known = (query << _QUERY) | half
    count = push(items, count, item_address(bases, half, home, LINE_BYTES), known)
    if half_tolerance(radius, half) == 1:
        for bit in range(min(bit_length(heads), 32)):
            bucket = bucket_of(value ^ (1 << bit), heads)
            if bucket != home:
                address = item_address(bases, half, bucket, LINE_BYTES)
                count = push(items, count, address, known | ((bit + 1) << _FLIP))
    return count


@kernel_inline
def list_refined(known: int, value: int, word: int, radius: int, items: Integers, count: int, state: State) -> int:
    """Add the refined lines for one value of a half to a list; return its length.

    known: query, half and flip. word: the other half. radius: what the flip leaves.
    """
    bases, counters = state
    half = known & 7
    for block in range(2):
        table = refined_of(half, block)
        for near in range(1 + 16 * half_tolerance(radius, block)):
            block_word = word if near == 0 else word ^ (1 << (16 * block + near - 1))
            address = head_address(table, value ^ mixed_block(block_word, block), bases, counters)
            count = push(items, count, address, known - half + table + (near << _NEAR))
    return count


@kernel_inline
def list_hot(known: int, fingerprint: np.uint64, radius: int, items: Integers, count: int, state: State) -> int:
    """Add the refined lines of a hot bucket, for all values of the half that lead to it and are searched."""
    half, flip = known & 7, (known >> _FLIP) & 63
    value, word = half_of(fingerprint, half), half_of(fingerprint, 1 - half)
    if flip:
        return list_refined(known, value ^ (1 << (flip - 1)), word, radius - 1, items, count, state)
    count = list_refined(known, value, word, radius, items, count, state)
    if half_tolerance(radius, half) == 1:
        heads = state[1][HEADS + half]
        home = bucket_of(value, heads)
        for bit in range(32):
            near = value ^ (1 << bit)
            if bucket_of(near, heads) == home:
                count = list_refined(known | ((bit + 1) << _FLIP), near, word, radius - 1, items, count, state)
    return count


@kernel_inline
def report(
    value: int,
    distance: int,
    query: int,
    limit: int,
    found: int,
    stack: Integers,
    output: CompactOutput,
    state: State,
) -> int:
    """Write the sequences of a stored fingerprint while there is room; return the new number of candidates."""
    bases, counters = state
    queries, sequences, distances = output
    if value < CROWD:
        if found < len(sequences):
            queries[found], sequences[found], distances[found] = query, key_of(value, bases, counters), distance
        return found + 1
    size = min(limit, crowd_size(value, bases))
    if found + size <= len(sequences):
        depth = crowd_start(value, bases, stack)
        for at in range(found, found + size):
            number = next_number(depth, bases, stack)
            queries[at], sequences[at], distances[at] = query, key_of(number, bases, counters), distance
            depth = step(depth, bases, stack)
    return found + size


@kernel_inline
def distance_if_reported(line: int, slot: int, known: int, fingerprint: np.uint64, radius: int) -> int:
    """Return the distance of an entry if the search that reads this line is the one to report it, else -1."""
    table, flip, near = known & 7, (known >> _FLIP) & 63, (known >> _NEAR) & 31
    half = table if table < 2 else (table - 2) >> 1
    own, other = half_of(fingerprint, half), half_of(fingerprint, 1 - half)
    searched = own ^ (1 << (flip - 1)) if flip else own
    word, tag = load32(line + 4 * slot), slot_tag(line, slot)
    rest = word ^ other
    if table < 2:
        value = hash_in(searched, tag)
    else:
        block = (table - 2) & 1
        block_word = other ^ (1 << (16 * block + near - 1)) if near else other
        value = hash_in(searched ^ mixed_block(block_word, block), tag) ^ mixed_block(word, block)
        remaining = radius - 1 if flip else radius
        if value != searched or bits_between((rest >> (16 * block)) & 0xFFFF, 0) > half_tolerance(remaining, block):
            return -1
        if block == 1 and bits_between(rest & 0xFFFF, 0) <= half_tolerance(remaining, 0):
            return -1
    away, further = bits_between(value, own), bits_between(rest, 0)
    if away > half_tolerance(radius, half) or away + further > radius:
        return -1
    if half == 1 and further <= half_tolerance(radius, 0):
        return -1
    return away + further


@kernel_inline
def read_list(
    items: Integers,
    count: int,
    later: Integers,
    laters: int,
    hot: Integers,
    fingerprints: Fingerprints,
    radius: int,
    limit: int,
    found: int,
    stack: Integers,
    output: CompactOutput,
    state: State,
) -> tuple[int, int]:
    """Compare the lines of a list; return (length of the later list, candidates).

    later: the list that overflow lines go to. hot: int64[_MOST_HOT + _ROOM], what items with hot buckets know; its
    length is at its end.
    """
    bases, counters = state
    compared = np.int64(0)
    for at in range(min(16, count)):
        fetch(items[at, 0])
    for at in range(np.uint64(count)):
        fetch(items[min(np.int64(at) + 16, count - 1), 0])
        line, known = items[at, 0], items[at, 1]
        meta = load32(line + META)
        table, query = known & 7, np.uint64(known >> _QUERY)
        half = table if table < 2 else (table - 2) >> 1
        entries = meta >> COUNT_SHIFT
        compared += entries
        close = close_words(line, half_of(fingerprints[query], 1 - half), radius) & ((1 << entries) - 1)
        if close:
            for slot in range(entries):
                if close >> slot & 1:
                    distance = distance_if_reported(line, slot, known, fingerprints[query], radius)
                    if distance >= 0:
                        value = load32(slot_value(line, slot))
                        found = report(value, distance, known >> _QUERY, limit, found, stack, output, state)
        if meta & (HOT | NEXT):
            if meta & HOT:
                hot[hot[-1]] = known
                hot[-1] += 1
            else:
                laters = push(later, laters, item_address(bases, OVERFLOW, meta & NEXT, LINE_BYTES), known)
    counters[WORK_LINES] += count
    counters[WORK_COMPARED] += compared
    return laters, found


@long_kernel
def probe_numbers(
    fingerprints: Fingerprints, radius: int, limit: int, bases: Integers, counters: Integers, output: CompactOutput
) -> int:
    """Probe fingerprints: uint64[n]; return the number of candidates.

    output: receives them unsorted. If there are more than it has room for, it is incomplete, and the caller must
    probe again with more room. limit: of the entries of one stored fingerprint, so many are candidates at most,
    those with the smallest sequences.
    """
    items, later = np.empty((_ROOM, 2), np.int64), np.empty((_ROOM, 2), np.int64)
    hot, stack = np.zeros(_MOST_HOT + _ROOM + 1, np.int64), np.empty(STACK, np.int64)
    state = (bases, counters)
    begin, count, found = 0, 0, 0
    counters[WORK_PROBES] += len(fingerprints)
    while begin < len(fingerprints) or count or hot[-1]:
        laters = 0
        if count <= _ROOM // 2 and begin < len(fingerprints) and hot[-1] < _MOST_HOT:
            for query in range(begin, min(begin + _GROUP, len(fingerprints))):
                for half in range(min(radius + 1, 2)):
                    value = half_of(fingerprints[query], half)
                    laters = list_half(half, query, value, radius, later, laters, state)
            begin += _GROUP
        elif hot[-1] and count <= _ROOM // 2:
            while hot[-1] and laters + _MOST_REFINED <= _ROOM // 2:
                hot[-1] -= 1
                known = hot[hot[-1]]
                laters = list_hot(known, fingerprints[known >> _QUERY], radius, later, laters, state)
        laters, found = read_list(
            items, count, later, laters, hot, fingerprints, radius, limit, found, stack, output, state
        )
        items, later, count = later, items, laters
    return found


@kernel
def probe_few(
    fingerprints: Fingerprints, radius: int, limit: int, bases: Integers, counters: Integers, output: CompactOutput
) -> int:
    """The same as `probe_numbers`, for one page or a few: it keeps the interpreter lock."""
    return probe_numbers(fingerprints, radius, limit, bases, counters, output)
