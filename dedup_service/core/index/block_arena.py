"""Growth of the arrays of the seed layout: a new arena when the old one is full, a second level for a crowded bucket.

How: `rebuilt` copies every bucket, in order and with some room to grow, into a new arena, which removes the
holes that moved buckets left. A new arena is a third larger than its contents, so the copying costs a
constant for each insertion. A second level is a run of new bucket headers, 4,096 for each of up to four
tables. The header of the crowded bucket has the number of the first one; its entries move there.
Source: Wang and Wang 2019, "4 x 12" second hash level of a bucket above (1 + 2) x the average.
"""

import numpy as np

from dedup_service.core.index.block_layout import (
    CAPACITY,
    CHILD,
    COUNTERS,
    FREE_ROW,
    LENGTH,
    QUANTUM,
    SLOTS_USED,
    START,
    SUB_KEYS,
    Arrays,
    Fingerprints,
    Headers,
    Integers,
    Rows,
    remaining_bits,
    sub_bucket,
)
from dedup_service.core.index.block_write import append
from dedup_service.core.kernels import long_kernel

SPARE_SLOTS = 1 << 14
"""Slots free at the end of a new arena, at least: enough for the first few thousand insertions, 192 KB."""

FIRST_ROWS = 1024
"""Rows of an empty index."""


def empty_arrays(headers: int) -> Arrays:
    """Return the arrays of an empty index. headers: number of bucket headers."""
    counters = np.zeros(COUNTERS, np.int64)
    counters[FREE_ROW] = -1
    return (
        np.zeros((headers, 4), np.int32),
        np.empty(SPARE_SLOTS, np.uint64),
        np.empty(SPARE_SLOTS, np.int32),
        np.empty(FIRST_ROWS, np.int64),
        np.empty(FIRST_ROWS, np.int32),
        counters,
    )


def rebuilt(arrays: Arrays, *, expected: Integers | int = 0, needed: int = 0) -> Arrays:
    """Return the arrays with a new arena that every bucket was copied into, with room to grow.

    expected: int64[buckets], entries to make room for; a bucket gets room for an eighth more than it has, at
    least.
    needed: slots that must be free at the end.
    """
    headers, stored, rows, sequences, next_row, counters = arrays
    lengths = headers[:, LENGTH].astype(np.int64)
    room = np.maximum(lengths + lengths // 8 + (lengths > 0), expected)
    capacities = (room + QUANTUM - 1) // QUANTUM
    ends = np.cumsum(capacities)
    used = int(ends[-1]) * QUANTUM
    slots = used + max(used // 3, SPARE_SLOTS, needed)
    new_stored, new_rows = np.empty(slots, np.uint64), np.empty(slots, np.int32)
    copy_buckets(headers, ends - capacities, stored, rows, new_stored, new_rows)
    headers[:, START], headers[:, CAPACITY] = ends - capacities, capacities
    counters[SLOTS_USED] = used
    return headers, new_stored, new_rows, sequences, next_row, counters


@long_kernel
def copy_buckets(
    headers: Headers,
    starts: Integers,
    stored: Fingerprints,
    rows: Rows,
    new_stored: Fingerprints,
    new_rows: Rows,
) -> None:
    """Copy every bucket to its new start. starts: int64[buckets], in quanta."""
    for bucket in range(len(headers)):
        source = int(headers[bucket, START]) * QUANTUM
        target = starts[bucket] * QUANTUM
        for offset in range(headers[bucket, LENGTH]):
            new_stored[target + offset] = stored[source + offset]
            new_rows[target + offset] = rows[source + offset]


def more_rows(arrays: Arrays, rows_needed: int) -> Arrays:
    """Return the arrays with room for `rows_needed` entries, and a quarter more than before at least."""
    headers, stored, rows, sequences, next_row, counters = arrays
    room = max(rows_needed, len(sequences) + len(sequences) // 4)
    new_sequences, new_next_row = np.empty(room, np.int64), np.empty(room, np.int32)
    new_sequences[: len(sequences)], new_next_row[: len(next_row)] = sequences, next_row
    return headers, stored, rows, new_sequences, new_next_row, counters


def more_headers(arrays: Arrays, headers_needed: int) -> Arrays:
    """Return the arrays with at least `headers_needed` bucket headers; the new ones are empty."""
    headers, stored, rows, sequences, next_row, counters = arrays
    larger = np.zeros((max(headers_needed, len(headers) + len(headers) // 4), headers.shape[1]), np.int32)
    larger[: len(headers)] = headers
    return larger, stored, rows, sequences, next_row, counters


def split_room(length: int, tables: int) -> int:
    """Return the number of slots that `split` takes at most for a bucket of `length` entries."""
    return tables * (length + QUANTUM * min(length, SUB_KEYS))


@long_kernel
def split(bucket: int, child: int, table: int, tables: int, arrays: Arrays) -> None:
    """Move a bucket's entries to the second level whose empty headers begin at `child`.

    The caller ensures that `split_room` slots are free. Capacities count entries at first, then quanta.
    """
    headers, stored, rows, _, _, counters = arrays
    start = int(headers[bucket, START]) * QUANTUM
    stop = start + headers[bucket, LENGTH]
    for slot in range(start, stop):
        rest = remaining_bits(stored[slot], table)
        for sub in range(tables):
            headers[child + sub_bucket(rest, sub), CAPACITY] += 1
    for leaf in range(child, child + tables * SUB_KEYS):
        headers[leaf, CAPACITY] = (headers[leaf, CAPACITY] + QUANTUM - 1) // QUANTUM
        headers[leaf, START] = counters[SLOTS_USED] // QUANTUM
        counters[SLOTS_USED] += headers[leaf, CAPACITY] * QUANTUM
    for slot in range(start, stop):
        rest = remaining_bits(stored[slot], table)
        for sub in range(tables):
            append(child + sub_bucket(rest, sub), stored[slot], rows[slot], headers, stored, rows, counters)
    headers[bucket, START] = 0
    headers[bucket, LENGTH] = 0
    headers[bucket, CAPACITY] = 0
    headers[bucket, CHILD] = child
