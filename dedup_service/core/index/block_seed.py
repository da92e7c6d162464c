"""The seed layout: four tables over one arena, and how they grow.

Kernels do the work. They stop when an array is full or a bucket is crowded; `SeedLayout` makes room and continues
them. Nothing here is thread-safe: one thread at a time, reading or writing.

Growth of the arrays of the seed layout: a new arena when the old one is full, a second level for a crowded bucket.

How: `rebuilt` copies every bucket, in order and with some room to grow, into a new arena, which removes the
holes that moved buckets left. A new arena is a third larger than its contents, so the copying costs a
constant for each insertion. A second level is a run of new bucket headers, 4,096 for each of up to four
tables. The header of the crowded bucket has the number of the first one; its entries move there.
Source: Wang and Wang 2019, "4 x 12" second hash level of a bucket above (1 + 2) x the average.

Insertion into and removal from the tables of the seed layout.

Chains: a row is one entry, its sequence and the next row of the same fingerprint. Buckets have each distinct
fingerprint once, with the first row of its chain, so ten thousand identical pages cost one comparison. A
chain runs from the latest sequence to the earliest: appending in order is O(1), and a second insertion of an
entry is noticed on the way.

Buckets: a full bucket moves to the free end of the arena with a quarter more room. `rebuilt` reclaims
what it leaves behind.

Invariants: the first row of a chain stays the same row for the life of the chain (contents move instead), so
no bucket is touched when a chain grows or shrinks. A fingerprint is stored once in every leaf bucket that
`leaves_of` returns, and in no other.

Search in the seed layout of the block index: one bucket, and all tables.

One bucket: a first pass over 64 fingerprints only counts those within the radius, in a loop without branches
that LLVM vectorises. The second pass, entry by entry, runs only if the count was not zero, which is rare.

All tables (`probe_all`): a table of tolerance 0 searches the bucket of the key itself, a table of tolerance
1 its 16 neighbours, too. A crowded bucket with a second level is searched in the same way by the other 48
bits, with the remaining radius. `block_layout` explains why this misses nothing and reports nothing twice.

Invariant: a probe changes no entry, only the work counters.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import StateError
from dedup_service.core.index.block_layout import (
    BLOCK_BITS,
    BUCKETS,
    CAPACITY,
    CHILD,
    COMPARED,
    COUNTERS,
    ENTRIES,
    FINGERPRINTS,
    FREE_ROW,
    KEYS,
    LENGTH,
    PROBES,
    QUANTUM,
    ROWS_USED,
    SLOTS_USED,
    START,
    STATUS,
    SUB_BITS,
    SUB_KEYS,
    Arrays,
    Fingerprints,
    Headers,
    Integers,
    Rows,
    home_bucket,
    leaves_of,
    remaining_bits,
    reported_earlier,
    sub_bucket,
    tables_for,
    tolerance,
)
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel, popcount, prefetch

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


DONE, FULL, CROWDED, DUPLICATE = range(4)
"""Why `insert_all` returned: all inserted; no slots left; a bucket must be split; entry already there."""


@kernel_inline
def take_row(sequence: int, sequences: Integers, next_row: Rows, counters: Integers) -> int:
    """Return a new chain of one row for a sequence; the caller ensures that a row is free."""
    row = int(counters[FREE_ROW])
    if row >= 0:
        counters[FREE_ROW] = next_row[row]
    else:
        row = int(counters[ROWS_USED])
        counters[ROWS_USED] += 1
    sequences[row] = sequence
    next_row[row] = -1
    counters[ENTRIES] += 1
    return row


@kernel_inline
def free_row(row: int, next_row: Rows, counters: Integers) -> None:
    """Put a row into the chain of free rows."""
    next_row[row] = counters[FREE_ROW]
    counters[FREE_ROW] = row
    counters[ENTRIES] -= 1


@kernel_inline
def join_chain(first: int, sequence: int, sequences: Integers, next_row: Rows, counters: Integers) -> bool:
    """Insert a sequence into the chain that starts at row `first`; return False if it is there already."""
    before = int(first)
    if sequence > sequences[before]:
        sequence, sequences[before] = sequences[before], sequence
    else:
        while next_row[before] >= 0 and sequences[next_row[before]] >= sequence:
            before = int(next_row[before])
        if sequences[before] == sequence:
            return False
    row = take_row(sequence, sequences, next_row, counters)
    next_row[row] = next_row[before]
    next_row[before] = row
    return True


@kernel_inline
def leave_chain(first: int, sequence: int, sequences: Integers, next_row: Rows, counters: Integers) -> bool:
    """Remove a sequence from a chain of two rows or more; return False if it is not there."""
    before = int(first)
    row = int(next_row[before])
    if sequences[before] == sequence:
        sequences[before] = sequences[row]
    else:
        while row >= 0 and sequences[row] != sequence:
            before, row = row, int(next_row[row])
        if row < 0:
            return False
    next_row[before] = next_row[row]
    free_row(row, next_row, counters)
    return True


@kernel_inline
def slot_of(fingerprint: np.uint64, leaves: Integers, count: int, headers: Headers, stored: Fingerprints) -> int:
    """Return the slot of a fingerprint in the shortest of its leaf buckets, or -1."""
    shortest = leaves[0]
    for at in range(1, count):
        if headers[leaves[at], LENGTH] < headers[shortest, LENGTH]:
            shortest = leaves[at]
    start = int(headers[shortest, START]) * QUANTUM
    return position_of(stored, start, start + headers[shortest, LENGTH], fingerprint)


@kernel_inline
def grown(capacity: int) -> int:
    """Return the next capacity, in quanta, of a full bucket: a quarter more, and at least one."""
    return int(capacity) + capacity // 4 + 1


@kernel_inline
def slots_needed(leaves: Integers, count: int, headers: Headers) -> int:
    """Return how many slots of the arena one more entry in each leaf takes."""
    quanta = 0
    for at in range(count):
        leaf = leaves[at]
        if headers[leaf, LENGTH] == headers[leaf, CAPACITY] * QUANTUM:
            quanta += grown(headers[leaf, CAPACITY])
    return quanta * QUANTUM


@kernel_inline
def append(
    bucket: int,
    fingerprint: np.uint64,
    row: int,
    headers: Headers,
    stored: Fingerprints,
    rows: Rows,
    counters: Integers,
) -> int:
    """Add a fingerprint to a bucket, which moves to the free end if it is full; return the new length."""
    start = int(headers[bucket, START]) * QUANTUM
    length = int(headers[bucket, LENGTH])
    if length == headers[bucket, CAPACITY] * QUANTUM:
        target = counters[SLOTS_USED]
        for offset in range(length):
            stored[target + offset] = stored[start + offset]
            rows[target + offset] = rows[start + offset]
        start = target
        headers[bucket, START] = target // QUANTUM
        headers[bucket, CAPACITY] = grown(headers[bucket, CAPACITY])
        counters[SLOTS_USED] += headers[bucket, CAPACITY] * QUANTUM
    stored[start + length] = fingerprint
    rows[start + length] = row
    headers[bucket, LENGTH] = length + 1
    return length + 1


@long_kernel
def insert_all(
    new_sequences: Integers,
    fingerprints: Fingerprints,
    done: int,
    crowded: int,
    tables: int,
    leaves: Integers,
    arrays: Arrays,
) -> int:
    """Insert entries from number `done` on; return how many are inserted.

    counters[STATUS] receives why it returned. new_sequences: int64[n]; fingerprints: uint64[n]. crowded:
    length above which a first-level bucket is reported.
    leaves: int64[16], scratch. The caller ensures that rows suffice for all.
    """
    headers, stored, rows, sequences, next_row, counters = arrays
    for at in range(done, len(fingerprints)):
        fingerprint = fingerprints[at]
        count = leaves_of(fingerprint, tables, headers, leaves)
        slot = slot_of(fingerprint, leaves, count, headers, stored)
        if slot >= 0:
            if join_chain(rows[slot], new_sequences[at], sequences, next_row, counters):
                continue
            counters[STATUS] = DUPLICATE
            return at
        if counters[SLOTS_USED] + slots_needed(leaves, count, headers) > len(stored):
            counters[STATUS] = FULL
            return at
        row = take_row(new_sequences[at], sequences, next_row, counters)
        counters[FINGERPRINTS] += 1
        longest = 0
        for leaf in range(count):
            length = append(leaves[leaf], fingerprint, row, headers, stored, rows, counters)
            if leaves[leaf] < tables << BLOCK_BITS:
                longest = max(longest, length)
        if longest > crowded:
            counters[STATUS] = CROWDED
            return at + 1
    counters[STATUS] = DONE
    return len(fingerprints)


@kernel
def insert_few(
    new_sequences: Integers,
    fingerprints: Fingerprints,
    done: int,
    crowded: int,
    tables: int,
    leaves: Integers,
    arrays: Arrays,
) -> int:
    """The same as `insert_all`, for one page or a few: it keeps the interpreter lock."""
    return insert_all(new_sequences, fingerprints, done, crowded, tables, leaves, arrays)


@kernel_inline
def erase(bucket: int, fingerprint: np.uint64, headers: Headers, stored: Fingerprints, rows: Rows) -> None:
    """Remove a fingerprint from a bucket; the last one fills its slot."""
    start = int(headers[bucket, START]) * QUANTUM
    last = start + headers[bucket, LENGTH] - 1
    at = position_of(stored, start, last + 1, fingerprint)
    stored[at] = stored[last]
    rows[at] = rows[last]
    headers[bucket, LENGTH] -= 1


@kernel
def remove_one(sequence: int, fingerprints: Fingerprints, tables: int, leaves: Integers, arrays: Arrays) -> bool:
    """Remove the entry of a sequence and fingerprints: uint64[1]; return False if there is none."""
    headers, stored, rows, sequences, next_row, counters = arrays
    fingerprint = fingerprints[0]
    count = leaves_of(fingerprint, tables, headers, leaves)
    slot = slot_of(fingerprint, leaves, count, headers, stored)
    if slot < 0:
        return False
    first = int(rows[slot])
    if next_row[first] >= 0:
        return leave_chain(first, sequence, sequences, next_row, counters)
    if sequences[first] != sequence:
        return False
    for leaf in range(count):
        erase(leaves[leaf], fingerprint, headers, stored, rows)
    free_row(first, next_row, counters)
    counters[FINGERPRINTS] -= 1
    return True


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
