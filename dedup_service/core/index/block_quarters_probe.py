"""Search in the quarters: the buckets of several fingerprints in flight at a time.

Four stages, each some fingerprints behind the one before it, so that what a stage reads was fetched meanwhile: the
headers of the buckets, the words, the records of close words, and their fingerprints. What a stage finds goes to a list
that the next one reads one round later.

Invariant: a probe changes no entry, only the work counters.
"""

import numpy as np

from dedup_service.core.index.block_crowd import STACK
from dedup_service.core.index.block_halves_probe import CompactOutput, report
from dedup_service.core.index.block_halves_write import WORK_COMPARED, WORK_LINES, WORK_PROBES, Fingerprints
from dedup_service.core.index.block_lines import FINGERPRINTS, Integers
from dedup_service.core.index.block_memory import close_shorts, item_address
from dedup_service.core.index.block_quarters import (
    CHUNK_ENTRIES,
    COUNT,
    ELSEWHERE,
    IN_CHUNKS,
    MAX_ENTRIES,
    QUARTER_META,
    bucket_head,
    chunk_address,
    lowest_bit,
    mask_of,
    quarter_of,
    record_fingerprint,
    record_value,
    records_in,
    word_of,
    word_radius,
)
from dedup_service.core.kernels import (
    kernel,
    kernel_inline,
    kernel_inline_allocating,
    load32,
    long_kernel,
    popcount,
    prefetch_address,
)

_LAG = 4
"""Fingerprints between two stages. At 10**7 entries one of them reads some 24 lines, as many as a core can wait for."""

_TABLES = 4
_LINES = MAX_ENTRIES // CHUNK_ENTRIES
_RING = 8
"""Fingerprints whose lines are listed; a power of two above `_LAG`."""

_HITS = 1 << 15
"""Close words that are listed: those of two stages, which have 4 x 480 for a fingerprint at most."""

assert _RING > _LAG
assert _HITS >= (2 * _LAG + 1) * _TABLES * MAX_ENTRIES

SCRATCH = _RING * _TABLES * (_LINES + 1) + 2 * _HITS + 4 * _RING
"""Length of the scratch memory that a probe takes: int64[SCRATCH]."""


@kernel_inline
def fetch_bucket_heads(fingerprint: np.uint64, tables: int, bases: Integers) -> None:
    """Fetch the headers of a fingerprint's buckets."""
    for table in range(tables):
        prefetch_address(bucket_head(fingerprint, table, bases))


@kernel_inline
def list_lines(
    query: int, fingerprint: np.uint64, tables: int, lines: Integers, metas: Integers, bases: Integers
) -> bool:
    """List where the words of a fingerprint's buckets are, and fetch them; return whether to search the halves, too.

    lines: int64[_RING * _TABLES * _LINES], addresses; metas: int64[_RING * _TABLES], of the headers.
    """
    marks = np.int64(0)
    for table in range(tables):
        bucket = np.uint64((query & (_RING - 1)) * _TABLES + table)
        head = bucket_head(fingerprint, table, bases)
        meta = load32(head + QUARTER_META)
        metas[bucket] = meta
        marks |= meta
        first = bucket * np.uint64(_LINES)
        if meta & IN_CHUNKS:
            for chunk in range(((meta & COUNT) + CHUNK_ENTRIES - 1) >> 5):
                address = chunk_address(head, chunk, bases)
                lines[first + np.uint64(chunk)] = address
                prefetch_address(address)
        else:
            lines[first] = head
    return bool(marks & ELSEWHERE)


@kernel_inline
def scan_lines(
    query: int,
    fingerprint: np.uint64,
    radius: int,
    lines: Integers,
    metas: Integers,
    hits: Integers,
    count: int,
    counters: Integers,
) -> int:
    """Compare the words that were listed; list where the records of close ones are, and fetch them.

    hits: int64[_HITS, 2], address of a record number, and query * 4 + table; written in a circle. count: hits so far.
    Returns the new count.
    """
    read, near = np.int64(0), word_radius(radius)
    for table in range(min(radius + 1, _TABLES)):
        bucket = np.uint64((query & (_RING - 1)) * _TABLES + table)
        meta = metas[bucket]
        entries = meta & COUNT
        counters[WORK_COMPARED] += entries
        word = word_of(fingerprint, table)
        chunks = (entries + CHUNK_ENTRIES - 1) >> 5
        for chunk in range(chunks):
            line = lines[bucket * np.uint64(_LINES) + np.uint64(chunk)]
            close = close_shorts(line, word, near) & mask_of(entries - CHUNK_ENTRIES * chunk)
            while close:
                address = records_in(line, meta) + 4 * lowest_bit(close)
                prefetch_address(address)
                at = np.uint64(count & (_HITS - 1))
                hits[at, 0], hits[at, 1] = address, (query << 2) | table
                count += 1
                close &= close - 1
        read += 1 + (chunks if meta & IN_CHUNKS else 0)
    counters[WORK_LINES] += read
    return count


@kernel_inline
def read_records(hits: Integers, first: int, end: int, bases: Integers) -> None:
    """Replace the addresses of record numbers by the numbers, and fetch their fingerprints."""
    for number in range(first, end):
        at = np.uint64(number & (_HITS - 1))
        record = load32(hits[at, 0])
        hits[at, 0] = record
        prefetch_address(item_address(bases, FINGERPRINTS, record, 8))


@kernel_inline
def is_reported_earlier(difference: np.uint64, table: int, radius: int) -> bool:
    """Return whether a table before this one finds fingerprints with this difference."""
    for earlier in range(table):
        is_equal = quarter_of(difference, earlier) == 0
        if is_equal and popcount(np.uint64(word_of(difference, earlier))) <= word_radius(radius):
            return True
    return False


@kernel_inline
def report_hits(
    hits: Integers,
    first: int,
    end: int,
    fingerprint: np.uint64,
    radius: int,
    limit: int,
    found: int,
    stack: Integers,
    output: CompactOutput,
    state: tuple[Integers, Integers],
) -> int:
    """Report the entries of records that are within the radius; return the new number of candidates."""
    for number in range(first, end):
        at = np.uint64(number & (_HITS - 1))
        record, known = hits[at, 0], hits[at, 1]
        difference = record_fingerprint(record, state[0]) ^ fingerprint
        distance = popcount(difference)
        if distance <= radius and not is_reported_earlier(difference, known & 3, radius):
            value = load32(record_value(record, state[0]))
            found = report(value, distance, known >> 2, limit, found, stack, output, state)
    return found


@kernel_inline_allocating
def parts_of(scratch: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Return lines, metas, hits and ends of hits, which share the scratch memory."""
    lines, metas = _RING * _TABLES * _LINES, _RING * _TABLES
    rest = scratch[lines + metas :]
    return scratch[:lines], scratch[lines : lines + metas], rest[: 2 * _HITS].reshape(_HITS, 2), rest[2 * _HITS :]


@long_kernel
def probe_quarters(
    fingerprints: Fingerprints,
    radius: int,
    limit: int,
    bases: Integers,
    counters: Integers,
    output: CompactOutput,
    elsewhere: Integers,
    scratch: Integers,
) -> int:
    """Probe fingerprints: uint64[n]; return the number of candidates, as `probe_numbers` does.

    elsewhere: int64[n + 1]; its first element receives how many of the fingerprints must be searched in the halves,
    too, the others which. scratch: int64[SCRATCH].
    """
    state = (bases, counters)
    tables = min(radius + 1, _TABLES)
    lines, metas, hits, ends = parts_of(scratch)
    stack = np.empty(STACK, np.int64)
    number, found, count, read, reported = len(fingerprints), 0, 0, 0, 0
    elsewhere[0] = 0
    counters[WORK_PROBES] += number
    for step in range(number + 4 * _LAG):
        if step < number:
            fetch_bucket_heads(fingerprints[step], tables, bases)
        query = step - _LAG
        if 0 <= query < number and list_lines(query, fingerprints[query], tables, lines, metas, bases):
            elsewhere[0] += 1
            elsewhere[elsewhere[0]] = query
        query -= _LAG
        if 0 <= query < number:
            count = scan_lines(query, fingerprints[query], radius, lines, metas, hits, count, counters)
            ends[query & (4 * _RING - 1)] = count
        query -= _LAG
        if 0 <= query < number:
            end = ends[query & (4 * _RING - 1)]
            read_records(hits, read, end, bases)
            read = end
        query -= _LAG
        if query >= 0:
            end = ends[query & (4 * _RING - 1)]
            if reported < end:
                found = report_hits(
                    hits, reported, end, fingerprints[query], radius, limit, found, stack, output, state
                )
            reported = end
    return found


@kernel
def probe_quarters_few(
    fingerprints: Fingerprints,
    radius: int,
    limit: int,
    bases: Integers,
    counters: Integers,
    output: CompactOutput,
    elsewhere: Integers,
    scratch: Integers,
) -> int:
    """The same as `probe_quarters`, for one page or a few: it keeps the interpreter lock."""
    return probe_quarters(fingerprints, radius, limit, bases, counters, output, elsewhere, scratch)
