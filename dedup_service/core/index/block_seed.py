"""The seed layout: four tables over one arena, and how they grow.

Kernels do the work. They stop when an array is full or a bucket is crowded; `SeedLayout` makes room and continues
them. Nothing here is thread-safe: one thread at a time, reading or writing.
"""

import numpy as np

from dedup_service.core.errors import StateError
from dedup_service.core.index.block_arena import empty_arrays, more_headers, more_rows, rebuilt, split, split_room
from dedup_service.core.index.block_layout import (
    BLOCK_BITS,
    BUCKETS,
    COMPARED,
    ENTRIES,
    FINGERPRINTS,
    KEYS,
    LENGTH,
    PROBES,
    SLOTS_USED,
    STATUS,
    SUB_KEYS,
    Fingerprints,
    Integers,
)
from dedup_service.core.index.block_probe import Distances, Output, probe_all
from dedup_service.core.index.block_write import CROWDED, DONE, DUPLICATE, FULL, insert_all, insert_few, remove_one

MIN_SPLIT = 4096
"""Entries up to which a bucket is never split.

Above, a second level is faster (at this size 2 to 3.6 times at radius 3, equal at 7). The 1 MB that it takes
is 256 bytes for each entry at most, 16 in a bucket of 65,536.
"""

TIMES_AVERAGE = 3
"""A bucket above (1 + 2) x the average of its table is split (Wang and Wang 2019)."""

BULK = 4096
"""Entries inserted at once from which it pays to rebuild the arena for them beforehand (1-2 ms)."""

MAX_ROWS = (1 << 31) - 1
"""Rows are numbered in int32."""

FIRST_OUTPUT = 1024
"""Candidates that the first output has room for."""


class SeedLayout:
    """Entries in the seed layout, exact within `radius` (0 to 7)."""

    __slots__ = ("_arrays", "_children", "_leaves", "_min_split", "_output", "_radius", "_tables")

    def __init__(self, radius: int, *, min_split: int | None = MIN_SPLIT) -> None:
        """Make an empty layout. min_split: see `BlockIndex`."""
        self._radius = radius
        self._min_split = min_split
        self._tables = min(radius + 1, 4)
        self._children = self._tables * KEYS
        self._output: Output = (np.empty(FIRST_OUTPUT, np.int64), np.empty(FIRST_OUTPUT, np.uint8))
        self._leaves = np.empty(16, np.int64)
        self._arrays = empty_arrays(self._children)

    def __len__(self) -> int:
        """Return the number of entries."""
        return int(self.counters[ENTRIES])

    @property
    def counters(self) -> Integers:
        """The counters that `block_layout` describes: int64[9]."""
        return self._arrays[5]

    @property
    def distinct(self) -> int:
        """Number of distinct fingerprints."""
        return int(self.counters[FINGERPRINTS])

    @property
    def work(self) -> tuple[int, int, int]:
        """Fingerprints probed, bucket headers read and entries compared, in all probes."""
        return int(self.counters[PROBES]), int(self.counters[BUCKETS]), int(self.counters[COMPARED])

    @property
    def size_bytes(self) -> int:
        """Memory reserved for all arrays."""
        return sum(array.nbytes for array in self._arrays)

    @property
    def largest_bucket(self) -> int:
        """Entries of the longest bucket of either level."""
        return int(self._arrays[0][:, LENGTH].max())

    @property
    def buckets(self) -> int:
        """Number of buckets of a table."""
        return KEYS

    @property
    def split_buckets(self) -> int:
        """Number of buckets with a second level."""
        return (self._children - self._tables * KEYS) // (self._tables * SUB_KEYS)

    def probe(self, fingerprints: Fingerprints, limit: int) -> tuple[Integers, Integers, Distances]:
        """Return the candidates of fingerprints: uint64[n], unsorted.

        limit: of the entries of one stored fingerprint, so many at most, those with the smallest rows.
        The result is (queries int64[m], sequences int64[m], distances uint8[m]). The last two are views that
        the next probe overwrites.
        """
        ends = np.empty(len(fingerprints), np.int64)
        found = probe_all(fingerprints, self._radius, limit, self._arrays, ends, self._output)
        if found > len(self._output[0]):
            self._output = (np.empty(found, np.int64), np.empty(found, np.uint8))
            probe_all(fingerprints, self._radius, limit, self._arrays, ends, self._output)
        queries = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        return queries, self._output[0][:found], self._output[1][:found]

    def insert(self, rows: Integers, fingerprints: Fingerprints) -> None:
        """Insert entries; StateError, and no change, if one is there already.

        rows: int64[n], ascending; fingerprints: uint64[n].
        """
        self._make_room(fingerprints)
        crowded = self._crowded_length(len(fingerprints))
        insert = insert_all if len(fingerprints) >= BULK else insert_few
        done, status = 0, -1
        while status != DONE:
            done = insert(rows, fingerprints, done, crowded, self._tables, self._leaves, self._arrays)
            status = self.counters[STATUS]
            if status == DUPLICATE:
                self.remove(rows[:done], fingerprints[:done])
                raise StateError(
                    f"row {rows[done]} with fingerprint {fingerprints[done]} is in the index already; "
                    "remove it first, or insert it once"
                )
            if status == CROWDED:
                self._split_homes(int(fingerprints[done - 1]), crowded)
            if status == FULL:
                self._arrays = rebuilt(self._arrays)

    def remove(self, rows: Integers, fingerprints: Fingerprints) -> int:
        """Remove entries: int64[n], uint64[n]; return how many, up to the first that is not there."""
        for number in range(len(rows)):
            one = fingerprints[number : number + 1]
            if not remove_one(int(rows[number]), one, self._tables, self._leaves, self._arrays):
                return number
        return len(rows)

    def _crowded_length(self, new: int) -> int:
        """Return the length above which a bucket is split once `new` more entries are in."""
        if self._min_split is None:
            return MAX_ROWS
        return max(self._min_split, TIMES_AVERAGE * (int(self.counters[FINGERPRINTS]) + new) // KEYS)

    def _make_room(self, fingerprints: Fingerprints) -> None:
        """Grow the rows for new fingerprints: uint64[n], and the arena if they are many."""
        new = len(fingerprints)
        rows_needed = len(self) + new
        if rows_needed > MAX_ROWS:
            raise StateError(
                f"an index of radius {self._radius} has room for {MAX_ROWS} entries, not {rows_needed}; "
                "bound the kept pages, or choose a radius up to 3"
            )
        if rows_needed > len(self._arrays[3]):
            self._arrays = more_rows(self._arrays, rows_needed)
        if new < BULK or new < self.counters[FINGERPRINTS] // 8:
            return
        expected = self._arrays[0][:, LENGTH].astype(np.int64)
        for table in range(self._tables):
            keys = (fingerprints >> np.uint64(BLOCK_BITS * table)).astype(np.uint16)
            expected[table * KEYS : (table + 1) * KEYS] += np.bincount(keys, minlength=KEYS)
        np.minimum(expected, self._crowded_length(new) + 1, out=expected)
        self._arrays = rebuilt(self._arrays, expected=expected)

    def _split_homes(self, fingerprint: int, crowded: int) -> None:
        """Split the first-level buckets of a fingerprint that have more than `crowded` entries."""
        for table in range(self._tables):
            key = (fingerprint >> (BLOCK_BITS * table)) % KEYS
            bucket = table * KEYS + key
            length = int(self._arrays[0][bucket, LENGTH])
            if length <= crowded:
                continue
            child = self._children
            self._children += self._tables * SUB_KEYS
            if self._children > len(self._arrays[0]):
                self._arrays = more_headers(self._arrays, self._children)
            needed = split_room(length, self._tables)
            if self.counters[SLOTS_USED] + needed > len(self._arrays[1]):
                self._arrays = rebuilt(self._arrays, needed=needed)
            split(bucket, child, table, self._tables, self._arrays)
