"""The compact layout, exact within 0 to 3 bits: pools of memory, and the kernels that use them (`block_halves`).

Kernels do the work. They stop when a pool is short or a table is missing; `CompactLayout` adds a segment,
which copies nothing, and continues them. Nothing here is thread-safe: one thread at a time, reading or writing.
"""

from typing import NoReturn

import numpy as np

from dedup_service.core.errors import StateError
from dedup_service.core.index.block_crowd import CROWD, NODE_BYTES, NODES_ROOM, NODES_USED
from dedup_service.core.index.block_halves_bulk import ROUND_ENTRIES, BulkFill
from dedup_service.core.index.block_halves_probe import probe_few, probe_numbers
from dedup_service.core.index.block_halves_write import (
    ALL,
    DISTINCT,
    DONE,
    HOT_BUCKETS,
    HOT_LINES,
    PRESENT,
    STATUS,
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
    COUNTERS,
    HEAD_ROOM,
    HEADS,
    LINE_BYTES,
    LINES_ROOM,
    LINES_USED,
    LOAD,
    LOAD_UNIT,
    NODES,
    OVERFLOW,
    POOLS,
    SLOTS,
    TABLES,
    longest_bucket,
)
from dedup_service.core.index.block_memory import FIRST_ITEMS, SEGMENTS, SegmentPool
from dedup_service.core.index.block_probe import Distances

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

_AT_ONCE = 1 << 16
"""Entries that a kernel inserts in one call."""

_SPARE = 4096
"""Items of a pool that must be free, else it gets a segment: more than one insertion takes."""


class CompactLayout:
    """Entries in the compact layout."""

    __slots__ = ("_bases", "_counters", "_halves", "_output", "_pools", "_radius")

    def __init__(self, radius: int, *, hot_entries: int | None = HOT_ENTRIES) -> None:
        """Make an empty layout. hot_entries: entries above which a bucket becomes hot; None: none does."""
        self._radius, self._halves = radius, min(radius + 1, 2)
        self._bases = np.zeros((POOLS, SEGMENTS), np.int64)
        counters = self._counters = np.zeros(COUNTERS, np.int64)
        item_bytes = [LINE_BYTES] * (TABLES + 1) + [NODE_BYTES]
        self._pools = [SegmentPool(size, bases) for size, bases in zip(item_bytes, self._bases, strict=True)]
        counters[HOT_LINES] = _NEVER if hot_entries is None else min(max(1, hot_entries // SLOTS), _MOST_HOT_LINES)
        counters[LINES_USED] = counters[NODES_USED] = 1  # number 0 is none
        self._output = _output(_FIRST_OUTPUT)
        for table in range(self._halves):
            self._open(table)
        self._make_room()

    def __len__(self) -> int:
        """Return the number of entries."""
        return int(self._counters[ALL])

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a copy would have the addresses of this index's memory."""
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
        nodes = int(counters[NODES_USED])
        small = self._bases.nbytes + counters.nbytes + sum(array.nbytes for array in self._output)
        return lines * LINE_BYTES + nodes * NODE_BYTES + small

    @property
    def largest_bucket(self) -> int:
        """Entries of the longest bucket of any table, among 65,536 evenly spaced ones of each; takes some ms."""
        return int(longest_bucket(self._bases, self._counters))

    @property
    def buckets(self) -> int:
        """Number of buckets of a table: it grows with the entries."""
        return int(self._counters[HEADS])

    @property
    def split_buckets(self) -> int:
        """Number of hot buckets, whose entries are in the refined tables."""
        return int(self._counters[HOT_BUCKETS])

    def probe(self, fingerprints: Fingerprints, limit: int) -> tuple[Integers, Integers, Distances]:
        """Return the candidates of fingerprints: uint64[n], unsorted.

        limit: of the entries of one stored fingerprint, so many at most, those with the smallest sequences.
        The result is (queries int64[m], sequences int64[m], distances uint8[m]), views that the next probe overwrites.
        """
        probe = probe_few if len(fingerprints) <= _FEW else probe_numbers
        if len(fingerprints) > len(self._output[0]):
            self._output = _output(len(fingerprints))
        found = probe(fingerprints, self._radius, limit, self._bases, self._counters, self._output)
        if found > len(self._output[0]):
            self._output = _output(found)
            probe(fingerprints, self._radius, limit, self._bases, self._counters, self._output)
        queries, sequences, distances = self._output
        if found > _MOST_OUTPUT:  # the result keeps its arrays; the next one begins small
            self._output = _output(_FIRST_OUTPUT)
        return queries[:found], sequences[:found], distances[:found]

    def insert(self, rows: Integers, fingerprints: Fingerprints) -> None:
        """Insert entries; StateError, and no change, if one is there already.

        rows: int64[n], ascending; fingerprints: uint64[n].
        """
        insert = insert_few if len(fingerprints) <= _FEW else insert_numbers
        done, status, count = 0, -1, len(fingerprints)
        while done < count or status != DONE:
            end = min(done + _AT_ONCE, count)
            done = insert(rows[:end], fingerprints[:end], done, self._halves, self._bases, self._counters)
            status = self._counters[STATUS]
            if status == PRESENT:
                self.remove(rows[:done], fingerprints[:done])
                raise StateError(
                    f"row {rows[done]} with fingerprint {fingerprints[done]} is in the index already; "
                    "remove it first, or insert it once"
                )
            if status != DONE:
                self._provide()

    def remove(self, rows: Integers, fingerprints: Fingerprints) -> int:
        """Remove entries: int64[n], uint64[n]; return how many, up to the first that is not there."""
        remove = remove_few if len(fingerprints) <= _FEW else remove_numbers
        return int(remove(rows, fingerprints, self._halves, self._bases, self._counters))

    def reserve(self, entries: int) -> None:
        """Give an empty layout the buckets that so many entries will have, so that no insertion splits one."""
        heads = entries * LOAD_UNIT // LOAD
        if len(self) or heads <= FIRST_ITEMS:
            return
        for table in range(self._halves):
            while self._counters[HEAD_ROOM + table] < heads + _SPARE:
                self._counters[HEAD_ROOM + table] = self._pools[table].grow()
            self._counters[HEADS + table] = heads

    def filling(self, entries: int) -> BulkFill:
        """Return what fills a layout with about so many entries."""
        self.reserve(entries)
        room = min(max(entries, _MIN_ROUND), ROUND_ENTRIES)
        return BulkFill(self._halves, self._bases, self._counters, self._provide, round_entries=room)

    def _provide(self) -> None:
        """Let kernels continue that stopped for memory or for tables."""
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
        for pool, used, room in pools:
            if counters[used] + _SPARE > counters[room]:
                counters[room] = self._pools[pool].grow()


def _output(room: int) -> tuple[Integers, Integers, Distances]:
    return np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8)
