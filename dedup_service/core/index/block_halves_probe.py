"""Search in the compact layout: the lines of many fingerprints in flight at a time.

A group of fingerprints becomes a list of lines to read. While one line is compared, those some places further
down the list are fetched; where a bucket has a further line, that line goes to the list of the next round. So a
core waits for many lines at once, in chains of overflow lines, too. Hot buckets are noted and expanded after
the first level, into lists of lines of the refined tables.

A line's six words are compared at once (`close_words`), which rejects nearly all; what passes is checked in full.
`block_halves` explains why this misses nothing and reports nothing twice.

Invariant: a probe changes no entry, only the work counters.
"""

import numpy as np

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
from dedup_service.core.index.block_probe import Output
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel

__all__ = ["probe_few", "probe_numbers"]

_GROUP = 16
"""Fingerprints whose lines are in one list: 700 to 1,100 lines, whose list fits the first cache."""

_AHEAD = 24
"""Lines fetched ahead of the one that is compared."""

_ITEMS = 4096
_MOST_REFINED = 34 + 32 * 18
"""Lines of the refined tables that one hot bucket leads to, at most: of the half itself and of its neighbours."""

_HASH, _PART, _FLIP, _RADIUS = 0, 32, 35, 41
"""Shifts of what a list item knows: hash or refined hash, table, flipped bit + 1 or 0, remaining radius."""

_WORD = 0xFFFF_FFFF


@kernel_inline
def packed(value: int, table: int, flip: int, radius: int) -> int:
    """Return what a list item knows, in one number."""
    return value | (table << _PART) | (flip << _FLIP) | (radius << _RADIUS)


@kernel_inline
def list_half(half: int, query: int, value: int, radius: int, items: Integers, count: int, state: tuple) -> int:  # type: ignore[type-arg]
    """Add the first-level lines of a fingerprint's half to the list: int64[_ITEMS, 3]; return its length."""
    bases, counters = state
    heads = counters[HEADS + half]
    home = bucket_of(value, heads)
    items[count, 0] = item_address(bases, half, home, LINE_BYTES)
    items[count, 1], items[count, 2] = query, packed(value, half, 0, radius)
    count += 1
    if half_tolerance(radius, half) == 1:
        for bit in range(min(bit_length(heads), 32)):
            near = value ^ (1 << bit)
            bucket = bucket_of(near, heads)
            if bucket != home:
                items[count, 0] = item_address(bases, half, bucket, LINE_BYTES)
                items[count, 1], items[count, 2] = query, packed(near, half, bit + 1, radius)
                count += 1
    return count


@kernel_inline
def list_refined(half: int, query: int, value: int, flip: int, word: int, radius: int, items: Integers, count: int, state: tuple) -> int:  # type: ignore[type-arg]
    """Add the refined lines for one value of a half to the list; return its length. word: the other half."""
    bases, counters = state
    for block in range(2):
        tolerance = half_tolerance(radius, block)
        table = refined_of(half, block)
        for near in range(1 + 16 * tolerance):
            block_word = word if near == 0 else word ^ (1 << (16 * block + near - 1))
            refined = value ^ mixed_block(block_word, block)
            items[count, 0] = head_address(table, refined, bases, counters)
            items[count, 1], items[count, 2] = query, packed(refined, table, flip, radius)
            count += 1
    return count


@kernel_inline
def list_hot(query: int, known: int, fingerprint: np.uint64, radius: int, items: Integers, count: int, state: tuple) -> int:  # type: ignore[type-arg]
    """Add the refined lines of a hot bucket, for all values of the half that lead to it and are searched."""
    counters = state[1]
    half, flip = (known >> _PART) & 7, (known >> _FLIP) & 63
    value, word = half_of(fingerprint, half), half_of(fingerprint, 1 - half)
    if flip:
        return list_refined(half, query, value ^ (1 << (flip - 1)), flip, word, radius - 1, items, count, state)
    count = list_refined(half, query, value, 0, word, radius, items, count, state)
    if half_tolerance(radius, half) == 1:
        heads = counters[HEADS + half]
        home = bucket_of(value, heads)
        for bit in range(32):
            near = value ^ (1 << bit)
            if bucket_of(near, heads) == home:
                count = list_refined(half, query, near, bit + 1, word, radius - 1, items, count, state)
    return count


@kernel_inline
def report(value: int, distance: int, query: int, limit: int, found: int, stack: Integers, output: Output, state: tuple) -> int:  # type: ignore[type-arg]
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
    table, remaining = (known >> _PART) & 7, known >> _RADIUS
    value, flip = hash_in(known & _WORD, slot_tag(line, slot)), (known >> _FLIP) & 63
    word = load32(line + 4 * slot)
    half = table if table < 2 else (table - 2) >> 1
    own, other = half_of(fingerprint, half), half_of(fingerprint, 1 - half)
    rest = word ^ other
    if table >= 2:
        block = (table - 2) & 1
        value ^= mixed_block(word, block)
        if value != (own ^ (1 << (flip - 1)) if flip else own):
            return -1
        if bits_between((rest >> (16 * block)) & 0xFFFF, 0) > half_tolerance(remaining, block):
            return -1
        if block == 1 and bits_between(rest & 0xFFFF, 0) <= half_tolerance(remaining, 0):
            return -1
    away = bits_between(value, own)
    if away > half_tolerance(radius, half):
        return -1
    further = bits_between(rest, 0)
    if away + further > radius:
        return -1
    if half == 1 and further <= half_tolerance(radius, 0):
        return -1
    return away + further


@kernel_inline
def read_list(
    items: Integers,
    count: int,
    hot: Integers,
    hots: int,
    fingerprints: Fingerprints,
    radius: int,
    limit: int,
    found: int,
    stack: Integers,
    output: Output,
    state: tuple,  # type: ignore[type-arg]
) -> tuple[int, int]:
    """Compare the lines of a list and their overflow lines; return (candidates, hot buckets).

    hot: int64[n, 2] receives the hot buckets: query, and what the item knows.
    """
    bases, counters = state
    lines = compared = np.int64(0)
    while count:
        lines += count
        for at in range(min(_AHEAD, count)):
            fetch(items[at, 0])
        later = 0
        for at in range(count):
            fetch(items[min(at + _AHEAD, count - 1), 0])
            line, query, known = items[at, 0], items[at, 1], items[at, 2]
            meta = load32(line + META)
            table = (known >> _PART) & 7
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
                            found = report(value, distance, query, limit, found, stack, output, state)
            if meta & (HOT | NEXT):
                if meta & HOT:
                    hot[hots, 0], hot[hots, 1] = query, known
                    hots += 1
                else:
                    following = item_address(bases, OVERFLOW, meta & NEXT, LINE_BYTES)
                    items[later, 0], items[later, 1], items[later, 2] = following, query, known
                    later += 1
        count = later
    counters[WORK_LINES] += lines
    counters[WORK_COMPARED] += compared
    return found, hots


@long_kernel
def probe_numbers(
    fingerprints: Fingerprints, radius: int, limit: int, bases: Integers, counters: Integers, output: Output
) -> int:
    """Probe fingerprints: uint64[n]; return the number of candidates.

    output: queries int64[room], sequences int64[room] and distances uint8[room], unsorted. If there are more
    candidates than room, the output is incomplete, and the caller must probe again with more. limit: of the entries
    of one stored fingerprint, so many are candidates at most, the smallest sequences.
    """
    items = np.empty((_ITEMS, 3), np.int64)
    hot = np.empty((_GROUP * 66, 2), np.int64)
    stack = np.empty(STACK, np.int64)
    state = (bases, counters)
    found = 0
    counters[WORK_PROBES] += len(fingerprints)
    for begin in range(0, len(fingerprints), _GROUP):
        count = 0
        for query in range(begin, min(begin + _GROUP, len(fingerprints))):
            for half in range(min(radius + 1, 2)):
                value = half_of(fingerprints[query], half)
                count = list_half(half, query, value, radius, items, count, state)
        found, hots = read_list(
            items, count, hot, 0, fingerprints, radius, limit, found, stack, output, state
        )
        count = 0
        for at in range(hots):
            count = list_hot(hot[at, 0], hot[at, 1], fingerprints[hot[at, 0]], radius, items, count, state)
            if count + _MOST_REFINED > _ITEMS or at + 1 == hots:
                found, _ = read_list(items, count, hot, 0, fingerprints, radius, limit, found, stack, output, state)
                count = 0
    return found


@kernel
def probe_few(
    fingerprints: Fingerprints, radius: int, limit: int, bases: Integers, counters: Integers, output: Output
) -> int:
    """The same as `probe_numbers`, for one page or a few: it keeps the interpreter lock."""
    return probe_numbers(fingerprints, radius, limit, bases, counters, output)
