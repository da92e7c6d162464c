"""Search in the compact layout: the lines of several fingerprints in flight at a time.

The lines that a fingerprint must read go to a list, and each is fetched when it goes there. It is read one list
later, while the lines of the next fingerprints are on the way; where a bucket continues, the next line goes to the
list that is being written. So a core waits for many lines at once, in chains of overflow lines, too. Hot buckets
are noted and expanded into lines of the refined tables.

A line's six words are compared at once (`close_words`), which rejects nearly all; what passes is checked in full.
`block_halves_write` explains why this misses nothing and reports nothing twice.

Invariant: a probe changes no entry, only the work counters.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.block_crowd import (
    CROWD,
    STACK,
    crowd_size,
    crowd_start,
    next_number,
    step,
)
from dedup_service.core.index.block_halves_write import (
    WORK_COMPARED,
    WORK_LINES,
    WORK_PROBES,
    Fingerprints,
    bits_between,
    half_of,
    half_tolerance,
    mixed_block,
    refined_of,
)
from dedup_service.core.index.block_lines import (
    COUNT_SHIFT,
    HEADS,
    HOT,
    LINE_BYTES,
    META,
    NEXT,
    OVERFLOW,
    SLOTS,
    Integers,
    bit_length,
    bucket_of,
    close_words,
    hash_in,
    head_address,
    item_address,
    slot_tag,
    slot_value,
)
from dedup_service.core.kernels import kernel, kernel_inline, load32, long_kernel, prefetch_address

CompactOutput = tuple[Integers, Integers, npt.NDArray[np.uint8]]
"""Room for candidates: queries int64[room], sequences int64[room] and distances uint8[room]."""

State = tuple[Integers, Integers]
"""Of an index: bases int64[POOLS, SEGMENTS] and counters int64[COUNTERS]."""

_GROUP = 4
"""Fingerprints listed at once: some 200 lines, more than a core can wait for."""

_LINES = 33
"""Lines of one half of a fingerprint at most."""

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
def list_half(half: int, value: int, radius: int, addresses: Integers, first: int, state: State) -> int:
    """Write the addresses of the first-level lines of a fingerprint's half from `first` on, and fetch them.

    Returns their number. The first is the bucket of the half itself, number i + 1 that with bit i flipped: bits that
    lead to the same bucket are above all others.
    """
    bases, counters = state
    heads = counters[HEADS + half]
    home = bucket_of(value, heads)
    at = np.uint64(first)
    addresses[at] = item_address(bases, half, home, LINE_BYTES)
    prefetch_address(addresses[at])
    if half_tolerance(radius, half) == 1:
        for bit in range(min(bit_length(heads), 32)):
            bucket = bucket_of(value ^ (1 << bit), heads)
            if bucket != home:
                at += np.uint64(1)
                addresses[at] = item_address(bases, half, bucket, LINE_BYTES)
                prefetch_address(addresses[at])
    return int(np.int64(at)) - first + 1


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
    bases = state[0]
    queries, sequences, distances = output
    if value < CROWD:
        if found < len(sequences):
            queries[found], sequences[found], distances[found] = query, value, distance
        return found + 1
    size = min(limit, crowd_size(value, bases))
    if found + size <= len(sequences):
        depth = crowd_start(value, bases, stack)
        for at in range(found, found + size):
            number = next_number(depth, bases, stack)
            queries[at], sequences[at], distances[at] = query, number, distance
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
def read_close(
    marked: Integers,
    marks: int,
    fingerprints: Fingerprints,
    radius: int,
    limit: int,
    found: int,
    stack: Integers,
    output: CompactOutput,
    state: State,
) -> int:
    """Report what is close in marked lines; return the new number of candidates.

    marked: int64[marks, 3], address of a line, what its item knows, and the bits of the slots whose words are close.
    """
    for at in range(marks):
        line, known, close = marked[at, 0], marked[at, 1], marked[at, 2]
        for slot in range(SLOTS if close else 0):
            if close >> slot & 1:
                distance = distance_if_reported(line, slot, known, fingerprints[known >> _QUERY], radius)
                if distance >= 0:
                    value = load32(slot_value(line, slot))
                    found = report(value, distance, known >> _QUERY, limit, found, stack, output, state)
    return found


@kernel_inline
def read_listed(
    listed: Integers,
    lengths: Integers,
    begun: int,
    fingerprints: Fingerprints,
    radius: int,
    marked: Integers,
    counters: Integers,
) -> int:
    """Compare the first-level lines of a group; mark those with close entries or a further line.

    listed, lengths: the addresses for each half of each fingerprint, from number `begun` on. Returns the marks.
    """
    marks = lines = compared = np.int64(0)
    for place in range(2 * _GROUP):
        length, query, half = lengths[place], begun + (place >> 1), place & 1
        word = half_of(fingerprints[min(query, len(fingerprints) - 1)], 1 - half)
        known = (query << _QUERY) | half
        lines += length
        for at in range(length):
            line = listed[np.uint64(place * _LINES + at)]
            meta = load32(line + META)
            entries = meta >> COUNT_SHIFT
            compared += entries
            close = close_words(line, word, radius) & ((1 << entries) - 1)
            mark = np.uint64(marks)  # written whether or not it counts: no branch to mispredict
            marked[mark, 0], marked[mark, 1], marked[mark, 2] = line, known | (at << _FLIP), close
            marks += (close | (meta & (HOT | NEXT))) != 0
    counters[WORK_LINES] += lines
    counters[WORK_COMPARED] += compared
    return int(marks)


@kernel_inline
def read_items(
    items: Integers,
    count: int,
    fingerprints: Fingerprints,
    radius: int,
    marked: Integers,
    marks: int,
    counters: Integers,
) -> int:
    """Compare overflow lines and lines of refined tables like `read_listed`; return the new number of marks."""
    compared = np.int64(0)
    for at in range(count):
        line, known = items[at, 0], items[at, 1]
        meta = load32(line + META)
        entries = meta >> COUNT_SHIFT
        compared += entries
        table = known & 7
        half = table if table < 2 else (table - 2) >> 1
        word = half_of(fingerprints[np.uint64(known >> _QUERY)], 1 - half)
        close = close_words(line, word, radius) & ((1 << entries) - 1)
        mark = np.uint64(marks)
        marked[mark, 0], marked[mark, 1], marked[mark, 2] = line, known, close
        marks += (close | (meta & (HOT | NEXT))) != 0
    counters[WORK_LINES] += count
    counters[WORK_COMPARED] += compared
    return marks


@kernel_inline
def follow(marked: Integers, marks: int, later: Integers, laters: int, hot: Integers, bases: Integers) -> int:
    """List the further lines of marked buckets, and note hot ones; return the new length of the list.

    hot: int64[_MOST_HOT + 2 * _ROOM + 1], what items with hot buckets know; its length is at its end.
    """
    for at in range(marks):
        known, number = marked[at, 1], load32(marked[at, 0] + META) & (HOT | NEXT)
        if number & HOT:
            hot[hot[-1]] = known
            hot[-1] += 1
        elif number:
            address = item_address(bases, OVERFLOW, number, LINE_BYTES)
            prefetch_address(address)
            later[laters, 0], later[laters, 1] = address, known
            laters += 1
    return laters


@kernel_inline
def list_group(
    begin: int, fingerprints: Fingerprints, radius: int, listing: Integers, lengths: Integers, state: State
) -> int:
    """List the first-level lines of the fingerprints from `begin` on; return where the next group begins."""
    end = min(begin + _GROUP, len(fingerprints))
    for query in range(begin, end):
        for half in range(min(radius + 1, 2)):
            place = 2 * (query - begin) + half
            value = half_of(fingerprints[query], half)
            lengths[place] = list_half(half, value, radius, listing, place * _LINES, state)
    return end


@long_kernel
def probe_numbers(
    fingerprints: Fingerprints, radius: int, limit: int, bases: Integers, counters: Integers, output: CompactOutput
) -> int:
    """Probe fingerprints: uint64[n]; return the number of candidates.

    output: receives them unsorted. If there are more than it has room for, it is incomplete, and the caller must
    probe again with more room. limit: of the entries of one stored fingerprint, so many are candidates at most,
    those with the smallest sequences.
    """
    state = (bases, counters)
    items, later = np.empty((_ROOM, 2), np.int64), np.empty((_ROOM, 2), np.int64)
    marked, stack = np.empty((_ROOM + 2 * _GROUP * _LINES + 1, 3), np.int64), np.empty(STACK, np.int64)
    hot = np.zeros(_MOST_HOT + 2 * _ROOM + 1, np.int64)
    listed, listing = np.empty(2 * _GROUP * _LINES, np.int64), np.empty(2 * _GROUP * _LINES, np.int64)
    lengths, next_lengths = np.zeros(2 * _GROUP, np.int64), np.zeros(2 * _GROUP, np.int64)
    begin, begun, count, found = 0, 0, 0, 0
    counters[WORK_PROBES] += len(fingerprints)
    while begin < len(fingerprints) or count or hot[-1] or lengths[0]:
        laters = 0
        next_lengths[:] = 0
        next_begun = begin
        if begin < len(fingerprints) and count <= _ROOM // 2 and hot[-1] < _MOST_HOT:
            begin = list_group(begin, fingerprints, radius, listing, next_lengths, state)
        elif count <= _ROOM // 2 and lengths[0] == 0:
            while hot[-1] and laters + _MOST_REFINED <= _ROOM // 2:
                hot[-1] -= 1
                known = hot[hot[-1]]
                laters = list_hot(known, fingerprints[known >> _QUERY], radius, later, laters, state)
        marks = read_listed(listed, lengths, begun, fingerprints, radius, marked, counters)
        marks = read_items(items, count, fingerprints, radius, marked, marks, counters)
        laters = follow(marked, marks, later, laters, hot, bases)
        if marks:
            found = read_close(marked, marks, fingerprints, radius, limit, found, stack, output, state)
        items, later, count = later, items, laters
        listed, listing, lengths, next_lengths, begun = listing, listed, next_lengths, lengths, next_begun
    return found


@kernel
def probe_few(
    fingerprints: Fingerprints, radius: int, limit: int, bases: Integers, counters: Integers, output: CompactOutput
) -> int:
    """The same as `probe_numbers`, for one page or a few: it keeps the interpreter lock."""
    return probe_numbers(fingerprints, radius, limit, bases, counters, output)
