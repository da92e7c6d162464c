"""Room for buckets: the arena is laid out anew when it is full, and a crowded bucket gets a second level.

How: laying out copies every bucket, in order and with a little room to grow, into a new arena; the
holes that moved buckets left are gone. As each new arena is a third larger than what it holds, the
copying costs a constant per insert. A second level is a run of new bucket headers, 4,096 for each of
up to four tables, whose first number stands in the crowded bucket's header; its entries move there.
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

__all__ = ["empty_arrays", "laid_out", "more_headers", "more_rows", "split", "split_room"]

SPARE_SLOTS = 1 << 14
"""The least free end of an arena: what a few thousand first inserts take, 192 KB."""

FIRST_ROWS = 1024


def empty_arrays(headers: int) -> Arrays:
    """Return the arrays of a shard without entries, with that many bucket headers."""
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


def laid_out(arrays: Arrays, *, expected: Integers | int = 0, needed: int = 0) -> Arrays:
    """Return the arrays with a new arena, every bucket copied into it with room to grow.

    expected: int64[buckets], entries to make room for (at least an eighth more than there are).
    needed: slots that must be left at the free end.
    """
    headers, stored, rows, sequences, following, counters = arrays
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
    return headers, new_stored, new_rows, sequences, following, counters


@long_kernel
def copy_buckets(
    headers: Headers,
    starts: Integers,
    stored: Fingerprints,
    rows: Rows,
    new_stored: Fingerprints,
    new_rows: Rows,
) -> None:
    """Copy every bucket to its new start, in quanta."""
    for bucket in range(len(headers)):
        source = int(headers[bucket, START]) * QUANTUM
        target = starts[bucket] * QUANTUM
        for offset in range(headers[bucket, LENGTH]):
            new_stored[target + offset] = stored[source + offset]
            new_rows[target + offset] = rows[source + offset]


def more_rows(arrays: Arrays, rows_needed: int) -> Arrays:
    """Return the arrays with room for at least `rows_needed` entries, a quarter more than there was."""
    headers, stored, rows, sequences, following, counters = arrays
    room = max(rows_needed, len(sequences) + len(sequences) // 4)
    new_sequences, new_following = np.empty(room, np.int64), np.empty(room, np.int32)
    new_sequences[: len(sequences)], new_following[: len(following)] = sequences, following
    return headers, stored, rows, new_sequences, new_following, counters


def more_headers(arrays: Arrays, headers_needed: int) -> Arrays:
    """Return the arrays with at least `headers_needed` bucket headers, the new ones empty."""
    headers, stored, rows, sequences, following, counters = arrays
    larger = np.zeros((max(headers_needed, len(headers) + len(headers) // 4), headers.shape[1]), np.int32)
    larger[: len(headers)] = headers
    return larger, stored, rows, sequences, following, counters


def split_room(length: int, tables: int) -> int:
    """Return the most slots that `split` takes for a bucket of `length` entries."""
    return tables * (length + QUANTUM * min(length, SUB_KEYS))


@long_kernel
def split(bucket: int, child: int, table: int, tables: int, arrays: Arrays) -> None:
    """Move a bucket's entries to the second level whose empty headers begin at `child`.

    The arena has `split_room` slots left. Capacities count entries first, and become quanta after.
    """
    headers, stored, rows, _, _, counters = arrays
    start = int(headers[bucket, START]) * QUANTUM
    stop = start + headers[bucket, LENGTH]
    for at in range(start, stop):
        rest = remaining_bits(stored[at], table)
        for sub in range(tables):
            headers[child + sub_bucket(rest, sub), CAPACITY] += 1
    for leaf in range(child, child + tables * SUB_KEYS):
        headers[leaf, CAPACITY] = (headers[leaf, CAPACITY] + QUANTUM - 1) // QUANTUM
        headers[leaf, START] = counters[SLOTS_USED] // QUANTUM
        counters[SLOTS_USED] += headers[leaf, CAPACITY] * QUANTUM
    for at in range(start, stop):
        rest = remaining_bits(stored[at], table)
        for sub in range(tables):
            append(child + sub_bucket(rest, sub), stored[at], rows[at], headers, stored, rows, counters)
    headers[bucket, START] = 0
    headers[bucket, LENGTH] = 0
    headers[bucket, CAPACITY] = 0
    headers[bucket, CHILD] = child
