"""One shard in the compact layout, exact within 0 to 3 bits: pools of memory, and the kernels that use them.

A shard begins with the quarters (`block_quarters`). Above a number of fingerprints it goes over to the halves
(`block_halves`), which read fewer bytes then: each insertion moves some fingerprints, until all are there. Both have
the same values, so a move copies no entries. Where a bucket of the quarters is crowded, the halves serve what exceeds
it, at any size.

Kernels do the work. They stop when a pool is short or a table is missing; `CompactShard` adds a segment,
which copies nothing, and continues them. Nothing here is thread-safe: one thread at a time, reading or writing.
"""

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from dedup_service.core.errors import StateError
from dedup_service.core.index.block_crowd import CROWD, NODE_BYTES, NODES_ROOM, NODES_USED, ROW_MODE
from dedup_service.core.index.block_halves_bulk import ROUND_ENTRIES, BulkFill
from dedup_service.core.index.block_halves_probe import probe_few, probe_numbers
from dedup_service.core.index.block_halves_write import (
    ALL,
    DISTINCT,
    DONE,
    HOT_BUCKETS,
    HOT_LINES,
    NUMBERS_ROOM,
    NUMBERS_USED,
    PRESENT,
    STATUS,
    UNOPENED,
    UNREFINED,
    WORK_COMPARED,
    WORK_LINES,
    WORK_PROBES,
    insert_few,
    insert_numbers,
    remove_few,
    remove_numbers,
)
from dedup_service.core.index.block_layout import Fingerprints, Integers
from dedup_service.core.index.block_lines import (
    CHUNKS,
    COUNTERS,
    FINGERPRINTS,
    HEAD_ROOM,
    HEADS,
    LINE_BYTES,
    LINES_ROOM,
    LINES_USED,
    LOAD,
    LOAD_UNIT,
    NODES,
    NUMBERS,
    OVERFLOW,
    POOLS,
    QUARTER_HEADS,
    SLOTS,
    TABLES,
    VALUES,
    longest_bucket,
)
from dedup_service.core.index.block_memory import FIRST_ITEMS, SEGMENTS, SegmentPool
from dedup_service.core.index.block_probe import Distances
from dedup_service.core.index.block_quarters import (
    BUCKETS,
    CHUNK_BYTES,
    CHUNKS_ROOM,
    CHUNKS_USED,
    CROWDED_BUCKETS,
    HEAD_BYTES,
    MAX_ENTRIES,
    MOST_ENTRIES,
    RECORDS_ROOM,
    RECORDS_USED,
    fullest_bucket,
)
from dedup_service.core.index.block_quarters_probe import SCRATCH, probe_quarters, probe_quarters_few
from dedup_service.core.index.block_quarters_write import (
    insert_quarters,
    insert_quarters_few,
    move_fingerprints,
    move_records,
    remove_quarters,
)

QUARTERS = 25_000_000
"""Fingerprints of a shard up to which the quarters serve it; above, the halves are faster."""

HOT_ENTRIES = 48
"""Entries above which a bucket becomes hot, unless the caller says otherwise.

Reading 34 and 18 scattered lines of refined tables costs as much as a chain of six to nine lines that are found one
after the other.
"""

MAX_ROW = CROWD - 1
"""The largest row number; the 2**28 numbers above it stand for crowds."""

_MOST_HOT_LINES = 40
"""Lines above which a bucket becomes hot at the latest: what it moves at once must fit the spare lines."""

_NEVER = 1 << 40
_MIN_ROUND = 1 << 10
"""Entries that are collected at least, whatever the caller expects."""

_FEW = 16
"""Fingerprints up to which a call keeps the interpreter lock: about 10 µs."""

_FIRST_OUTPUT, _MOST_OUTPUT = 1024, 1 << 20
"""Candidates that the first output has room for, and those up to which its memory is kept."""

_RECORD_BYTES = 12

_MOVED = 2
"""Fingerprints that move for each that is inserted while a shard goes over: 4,096 insertions move 8,192."""

_MOVED_AT_LEAST = 64

_AT_ONCE = 1 << 16
"""Entries that are inserted before it is looked whether the halves take over."""

_SPARE = 4096
"""Items of a pool that must be free, else it gets a segment: more than one insertion takes."""


class CompactShard:
    """The entries of one shard. rows: sequences are row numbers, which need no table of their own."""

    __slots__ = (
        "_bases",
        "_counters",
        "_halves",
        "_is_moving",
        "_most",
        "_output",
        "_pools",
        "_quarters",
        "_radius",
        "_scratch",
    )

    def __init__(
        self,
        radius: int,
        *,
        hot_entries: int | None = HOT_ENTRIES,
        crowded_entries: int = MAX_ENTRIES,
        quarters: int = QUARTERS,
        rows: bool = False,
    ) -> None:
        """Make an empty shard.

        hot_entries: entries above which a bucket of the halves becomes hot; None: none does. crowded_entries: entries
        of a bucket of the quarters, at most. quarters: fingerprints above which the halves take over; 0: from the
        start.
        """
        self._radius, self._halves, self._most = radius, min(radius + 1, 2), quarters
        self._bases = np.zeros((POOLS, SEGMENTS), np.int64)
        counters = self._counters = np.zeros(COUNTERS, np.int64)
        item_bytes = [LINE_BYTES] * (TABLES + 1) + [NODE_BYTES, 8, HEAD_BYTES, CHUNK_BYTES, 8, 4]
        self._pools = [SegmentPool(size, bases) for size, bases in zip(item_bytes, self._bases, strict=True)]
        counters[ROW_MODE] = rows
        counters[HOT_LINES] = _NEVER if hot_entries is None else min(max(1, hot_entries // SLOTS), _MOST_HOT_LINES)
        counters[MOST_ENTRIES] = min(max(1, crowded_entries), MAX_ENTRIES)
        counters[LINES_USED] = counters[NODES_USED] = 1  # number 0 is none
        self._output = _output(_FIRST_OUTPUT)
        self._quarters, self._is_moving, self._scratch = 0, False, np.empty(0, np.int64)
        if quarters:
            self._begin_quarters()
        else:
            self._open_halves()
        self._make_room()

    def __len__(self) -> int:
        """Return the number of entries."""
        return int(self._counters[ALL])

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a copy would have the addresses of this shard's memory."""
        raise TypeError("a block index in the compact layout cannot be copied; insert its entries into a new one")

    @property
    def distinct(self) -> int:
        """Number of distinct fingerprints."""
        return int(self._counters[DISTINCT])

    @property
    def work(self) -> tuple[int, int, int]:
        """Fingerprints probed, lines read and entries compared, in all probes."""
        probes, lines, compared = self._counters[[WORK_PROBES, WORK_LINES, WORK_COMPARED]].tolist()
        return probes, lines, compared

    @property
    def size_bytes(self) -> int:
        """Memory of all items that were ever in use; the rest of a segment takes address space only."""
        counters = self._counters
        lines = int(counters[HEADS : HEADS + TABLES].sum() + counters[LINES_USED])
        numbers = 0 if counters[ROW_MODE] else int(counters[NUMBERS_USED])
        nodes = int(counters[NODES_USED])
        quarters = self._quarters * BUCKETS * HEAD_BYTES
        quarters += int(counters[CHUNKS_USED]) * CHUNK_BYTES + int(counters[RECORDS_USED]) * _RECORD_BYTES
        small = self._bases.nbytes + counters.nbytes + sum(array.nbytes for array in self._output)
        return lines * LINE_BYTES + numbers * 8 + nodes * NODE_BYTES + quarters + self._scratch.nbytes + small

    @property
    def largest_bucket(self) -> int:
        """Entries of the longest bucket of any table, among 65,536 evenly spaced ones of each; takes some ms."""
        longest = longest_bucket(self._bases, self._counters)
        return int(max(longest, fullest_bucket(self._quarters, self._bases)))

    @property
    def buckets(self) -> int:
        """Number of buckets of a table: constant for quarters; that of halves grows with the entries."""
        return BUCKETS if self._quarters else int(self._counters[HEADS])

    @property
    def split_buckets(self) -> int:
        """Number of hot buckets, whose entries are in the refined tables, and of those that sent some to the halves."""
        return int(self._counters[HOT_BUCKETS] + self._counters[CROWDED_BUCKETS])

    def probe(self, fingerprints: Fingerprints, limit: int) -> tuple[Integers, Integers, Distances]:
        """Return the candidates of fingerprints: uint64[n], unsorted.

        limit: of the entries of one stored fingerprint, so many at most, those with the smallest sequences.
        The result is (queries int64[m], sequences int64[m], distances uint8[m]), views that the next probe overwrites.
        """
        if not self._quarters:
            return self._probe_halves(fingerprints, limit)
        probe = probe_quarters_few if len(fingerprints) <= _FEW else probe_quarters
        elsewhere = np.empty(len(fingerprints) + 1, np.int64)

        def search() -> int:
            return probe(
                fingerprints,
                self._radius,
                limit,
                self._bases,
                self._counters,
                self._output,
                elsewhere,
                self._scratch,
            )

        result = self._with_room(len(fingerprints), search)
        if self._is_moving:
            return _joined(result, self._beside(fingerprints, limit))
        if elsewhere[0]:
            asked = elsewhere[1 : elsewhere[0] + 1]
            queries, sequences, distances = self._beside(fingerprints[asked], limit)
            return _joined(result, (asked[queries], sequences, distances))
        return result

    def insert(self, sequences: Integers, fingerprints: Fingerprints) -> None:
        """Insert entries; StateError, and no change, if one is there already.

        sequences: int64[n], ascending; fingerprints: uint64[n].
        """
        done, status, count = 0, -1, len(fingerprints)
        while done < count or status != DONE:
            if self._quarters and not self._is_moving and self._counters[RECORDS_USED] > self._most:
                self._open_halves()
                self._is_moving = True
            end = min(done + _AT_ONCE, count)
            if self._is_moving:
                self._move(fingerprints[done:end])
            done = self._kernel_insert(sequences[:end], fingerprints[:end], done)
            status = self._counters[STATUS]
            if status == PRESENT:
                self.remove(sequences[:done], fingerprints[:done])
                raise StateError(
                    f"sequence {sequences[done]} with fingerprint {fingerprints[done]} is in the index already; "
                    "remove it first, or insert it once"
                )
            if status != DONE:
                self._provide()

    def remove(self, sequences: Integers, fingerprints: Fingerprints) -> int:
        """Remove entries: int64[n], uint64[n]; return how many, up to the first that is not there."""
        if self._is_moving:
            self._move(fingerprints)
        if self._quarters and not self._is_moving:
            return int(remove_quarters(sequences, fingerprints, self._quarters, self._bases, self._counters))
        remove = remove_few if len(fingerprints) <= _FEW else remove_numbers
        return int(remove(sequences, fingerprints, self._halves, self._bases, self._counters))

    def reserve(self, entries: int) -> None:
        """Prepare an empty shard for so many entries.

        If they are for the halves, it has no quarters, and gets the buckets that they will have, so that no insertion
        splits one.
        """
        if len(self):
            return
        if entries > self._most and self._quarters:
            self._open_halves()
            self._end_quarters()
        heads = entries * LOAD_UNIT // LOAD
        if self._quarters or heads <= FIRST_ITEMS:
            return
        for table in range(self._halves):
            while self._counters[HEAD_ROOM + table] < heads + _SPARE:
                self._counters[HEAD_ROOM + table] = self._pools[table].grow()
            self._counters[HEADS + table] = heads

    def filling(self, entries: int) -> BulkFill | None:
        """Return what fills a shard of rows with about so many entries; None if insertion serves as well."""
        self.reserve(entries)
        if self._quarters:
            return None
        room = min(max(entries, _MIN_ROUND), ROUND_ENTRIES)
        return BulkFill(self._halves, self._bases, self._counters, self._provide, round_entries=room)

    def _kernel_insert(self, sequences: Integers, fingerprints: Fingerprints, done: int) -> int:
        """Insert entries from number `done` on; return how many are inserted. counters[STATUS]: why it returned."""
        if self._quarters and not self._is_moving:
            insert = insert_quarters_few if len(fingerprints) <= _FEW else insert_quarters
            return int(insert(sequences, fingerprints, done, self._quarters, self._bases, self._counters))
        insert_in_halves = insert_few if len(fingerprints) <= _FEW else insert_numbers
        return int(insert_in_halves(sequences, fingerprints, done, self._halves, self._bases, self._counters))

    def _probe_halves(self, fingerprints: Fingerprints, limit: int) -> tuple[Integers, Integers, Distances]:
        """Return the candidates that the halves have."""
        probe = probe_few if len(fingerprints) <= _FEW else probe_numbers
        return self._with_room(
            len(fingerprints),
            lambda: probe(fingerprints, self._radius, limit, self._bases, self._counters, self._output),
        )

    def _beside(self, fingerprints: Fingerprints, limit: int) -> tuple[Integers, Integers, Distances]:
        """Search the halves for fingerprints that were counted as probes of the quarters."""
        probes = self._counters[WORK_PROBES]
        self._output, output = _output(_FIRST_OUTPUT), self._output
        result = self._probe_halves(fingerprints, limit)
        self._output, self._counters[WORK_PROBES] = output, probes
        return result

    def _with_room(self, expected: int, search: Callable[[], int]) -> tuple[Integers, Integers, Distances]:
        """Return what a search found; it is repeated if the output had too little room."""
        if expected > len(self._output[0]):
            self._output = _output(expected)
        found = search()
        if found > len(self._output[0]):
            self._output = _output(found)
            search()
        queries, sequences, distances = self._output
        if found > _MOST_OUTPUT:  # the result keeps its arrays; the next one begins small
            self._output = _output(_FIRST_OUTPUT)
        return queries[:found], sequences[:found], distances[:found]

    def _move(self, fingerprints: Fingerprints) -> None:
        """Move to the halves what the quarters have of fingerprints, and some more; end the quarters with the last."""
        done = 0
        while done < len(fingerprints):
            done = move_fingerprints(fingerprints, done, self._quarters, self._bases, self._counters)
            if self._counters[STATUS] != DONE:
                self._provide()
        left = _MOVED * len(fingerprints) + _MOVED_AT_LEAST
        while left:
            left -= move_records(left, self._quarters, self._bases, self._counters)
            if self._counters[STATUS] != DONE:
                self._provide()
        if self._counters[RECORDS_USED] == 0:
            self._end_quarters()

    def _begin_quarters(self) -> None:
        """Give the quarters their buckets."""
        self._quarters = self._radius + 1
        self._scratch = np.empty(SCRATCH, np.int64)
        while self._pools[QUARTER_HEADS].room < self._quarters * BUCKETS:
            self._pools[QUARTER_HEADS].grow()
        # What is needed only when a bucket is crowded, or many fingerprints are there, is compiled now: no pause then.
        numbers, fingerprints, state = np.empty(0, np.int64), np.empty(0, np.uint64), (self._bases, self._counters)
        insert_numbers(numbers, fingerprints, 0, self._halves, *state)
        probe_numbers(fingerprints, self._radius, 1, *state, self._output)
        move_fingerprints(fingerprints, 0, self._quarters, *state)
        move_records(0, self._quarters, *state)

    def _end_quarters(self) -> None:
        """Give back the memory of the quarters."""
        self._quarters, self._is_moving, self._scratch = 0, False, np.empty(0, np.int64)
        for pool in (QUARTER_HEADS, CHUNKS, FINGERPRINTS, VALUES):
            self._pools[pool].clear()
        self._counters[[CHUNKS_USED, CHUNKS_ROOM, RECORDS_USED, RECORDS_ROOM, CROWDED_BUCKETS]] = 0

    def _open_halves(self) -> None:
        """Give the halves their first buckets."""
        for table in range(self._halves):
            self._open(table)

    def _provide(self) -> None:
        """Let kernels continue that stopped for memory or for tables."""
        if self._counters[STATUS] == UNOPENED:
            self._open_halves()
        if self._counters[STATUS] == UNREFINED:
            for table in range(2, 2 + 2 * self._halves):
                self._open(table)
        self._make_room()

    def _open(self, table: int) -> None:
        """Give a table its first buckets."""
        if self._counters[HEADS + table] == 0:
            self._counters[HEAD_ROOM + table] = self._pools[table].grow()
            self._counters[HEADS + table] = FIRST_ITEMS

    def _make_room(self) -> None:
        """Add a segment to every pool that is in use and nearly full."""
        counters = self._counters
        pools = [(table, HEADS + table, HEAD_ROOM + table) for table in range(TABLES) if counters[HEADS + table]]
        pools += [(OVERFLOW, LINES_USED, LINES_ROOM), (NODES, NODES_USED, NODES_ROOM)]
        if not counters[ROW_MODE]:
            pools.append((NUMBERS, NUMBERS_USED, NUMBERS_ROOM))
        if self._quarters:
            pools += [(CHUNKS, CHUNKS_USED, CHUNKS_ROOM), (FINGERPRINTS, RECORDS_USED, RECORDS_ROOM)]
        for pool, used, room in pools:
            if counters[used] + _SPARE > counters[room]:
                counters[room] = self._pools[pool].grow()
        while self._quarters and self._pools[VALUES].room < counters[RECORDS_ROOM]:
            self._pools[VALUES].grow()


def _joined(
    one: tuple[Integers, Integers, Distances], other: tuple[Integers, Integers, Distances]
) -> tuple[Integers, Integers, Distances]:
    """Return the candidates of two searches."""
    return np.concatenate((one[0], other[0])), np.concatenate((one[1], other[1])), np.concatenate((one[2], other[2]))


def _output(room: int) -> tuple[Integers, Integers, Distances]:
    return np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8)
