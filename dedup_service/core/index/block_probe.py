"""Search in the seed layout of the block index: one bucket, and all tables.

One bucket: a first pass over 64 fingerprints only counts those within the radius, in a loop without branches
that LLVM vectorises. The second pass, entry by entry, runs only if the count was not zero, which is rare.

All tables (`probe_all`): a table of tolerance 0 searches the bucket of the key itself, a table of tolerance
1 its 16 neighbours, too. A crowded bucket with a second level is searched in the same way by the other 48
bits, with the remaining radius. `block_layout` explains why this misses nothing and reports nothing twice.

Invariant: a probe changes no entry, only the work counters.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.block_layout import (
    BLOCK_BITS,
    BUCKETS,
    CHILD,
    COMPARED,
    ENTRIES,
    LENGTH,
    PROBES,
    QUANTUM,
    START,
    SUB_BITS,
    Arrays,
    Fingerprints,
    Headers,
    Integers,
    home_bucket,
    remaining_bits,
    reported_earlier,
    sub_bucket,
    tables_for,
    tolerance,
)
from dedup_service.core.kernels import kernel_inline, long_kernel, popcount, prefetch

Distances = npt.NDArray[np.uint8]
Output = tuple[Integers, Distances]
"""Room for candidates: sequences int64[room] and distances uint8[room]."""

STRIDE = 64
"""Fingerprints counted at once: eight cache lines; scanning them again costs less than 0.1 µs."""


@kernel_inline
def count_within(stored: Fingerprints, start: int, stop: int, fingerprint: np.uint64, radius: int) -> int:
    """Return how many of stored[start:stop] are within `radius` of a fingerprint."""
    hits = 0
    for position in range(np.uint64(start), np.uint64(stop)):
        hits += popcount(stored[position] ^ fingerprint) <= radius
    return hits


@kernel_inline
def position_of(stored: Fingerprints, start: int, stop: int, fingerprint: np.uint64) -> int:
    """Return the index of `fingerprint` in stored[start:stop], or -1."""
    for base in range(start, stop, STRIDE):
        end = min(base + STRIDE, stop)
        if count_within(stored, base, end, fingerprint, 0):
            for position in range(base, end):
                if stored[position] == fingerprint:
                    return position
    return -1


@kernel_inline
def report(row: int, distance: int, limit: int, arrays: Arrays, found: int, output: Output) -> int:
    """Write the last `limit` sequences of a row's chain while there is room; return the new number of candidates."""
    _, _, _, sequences, next_row, counters = arrays
    out_sequences, out_distances = output
    if limit < counters[ENTRIES]:  # a chain may be longer: its end has the smallest sequences
        length, at = 0, row
        while at >= 0:
            length += 1
            at = int(next_row[at])
        for _ in range(length - limit):
            row = int(next_row[row])
    while row >= 0:
        if found < len(out_sequences):
            out_sequences[found] = sequences[row]
            out_distances[found] = distance
        found += 1
        row = int(next_row[row])
    return found


@kernel_inline
def fetch_neighbours(home: int, bits: int, headers: Headers, stored: Fingerprints) -> None:
    """Prefetch the first entries of the buckets one bit away from `home`, all at once."""
    for bit in range(bits):
        prefetch(stored, int(headers[home ^ (1 << bit), START]) * QUANTUM)


@kernel_inline
def scan_bucket(
    bucket: int,
    fingerprint: np.uint64,
    radius: int,
    limit: int,
    table: int,
    sub_radius: int,
    sub: int,
    arrays: Arrays,
    found: int,
    output: Output,
) -> int:
    """Report the entries of one bucket that are within the radius and that no earlier table reports."""
    headers, stored, rows, _, _, counters = arrays
    start = int(headers[bucket, START]) * QUANTUM
    stop = start + headers[bucket, LENGTH]
    counters[BUCKETS] += 1
    counters[COMPARED] += stop - start
    for base in range(start, stop, STRIDE):
        end = min(base + STRIDE, stop)
        if count_within(stored, base, end, fingerprint, radius) == 0:
            continue
        for at in range(base, end):
            difference = stored[at] ^ fingerprint
            distance = popcount(difference)
            if distance <= radius and not reported_earlier(difference, radius, table, sub_radius, sub):
                found = report(int(rows[at]), distance, limit, arrays, found, output)
    return found


@kernel_inline
def scan_second_level(
    child: int,
    fingerprint: np.uint64,
    radius: int,
    limit: int,
    table: int,
    sub_radius: int,
    arrays: Arrays,
    found: int,
    output: Output,
) -> int:
    """Probe the 12-bit tables that replace a crowded bucket."""
    arrays[5][BUCKETS] += 1
    rest = remaining_bits(fingerprint, table)
    for sub in range(tables_for(sub_radius)):
        key = sub_bucket(rest, sub)
        for near in range(1 + SUB_BITS * tolerance(sub_radius, sub)):
            bucket = child + (key if near == 0 else key ^ (1 << (near - 1)))
            found = scan_bucket(bucket, fingerprint, radius, limit, table, sub_radius, sub, arrays, found, output)
    return found


@long_kernel
def probe_all(
    fingerprints: Fingerprints, radius: int, limit: int, arrays: Arrays, ends: Integers, output: Output
) -> int:
    """Probe fingerprints: uint64[n]. ends: int64[n] receives where the candidates of each end in the output.

    limit: of the entries of one stored fingerprint, so many are candidates at most, those with the smallest sequences.

    Returns the total number of candidates. If that exceeds the room in the output, the output is incomplete,
    and the caller must probe again with more room.
    """
    headers, stored, counters = arrays[0], arrays[1], arrays[5]
    found = 0
    for query in range(len(fingerprints)):
        fingerprint = fingerprints[query]
        counters[PROBES] += 1
        for table in range(tables_for(radius)):
            home = home_bucket(fingerprint, table)
            fetch_neighbours(home, BLOCK_BITS * tolerance(radius, table), headers, stored)
            for near in range(1 + BLOCK_BITS * tolerance(radius, table)):
                bucket = home if near == 0 else home ^ (1 << (near - 1))
                child = int(headers[bucket, CHILD])
                remaining = radius if near == 0 else radius - 1
                if child == 0:
                    found = scan_bucket(bucket, fingerprint, radius, limit, table, remaining, 0, arrays, found, output)
                else:
                    found = scan_second_level(
                        child, fingerprint, radius, limit, table, remaining, arrays, found, output
                    )
        ends[query] = found
    return found
