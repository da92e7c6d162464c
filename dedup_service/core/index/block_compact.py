"""The compact layout, exact within 0 to 3 bits: pools of memory, and the kernels that use them (`block_halves_write`).

Kernels do the work. They stop when a pool is short or a table is missing; `CompactLayout` adds a segment,
which copies nothing, and continues them. Nothing here is thread-safe: one thread at a time, reading or writing.

Fills the compact layout with many rows: by ranges of buckets, so that their lines are in the cache meanwhile.

Insertion in order of the rows touches lines of both tables at random, and waits for most of them. Here entries are
collected first, up to `ROUND_ENTRIES` of them, each in the *chain* of the range of buckets to which its low half leads.
Then range after range is filled. What enters table 0 is put into chains by its high half, from which table 1 is filled.

Most records go to a line with room, and need no more than that. The others take the steps of `block_halves_write`:
identical fingerprints become a crowd, a crowded bucket becomes hot, a table that is too full gets a bucket. If the
second entry of a fingerprint comes after the first one went on, table 0 has a crowd, and table 1 or its chain a number.
So crowds that begin are listed in a chain of their own, and table 1 gets them at last.

A chain is a list of blocks of records: hash, the word that is compared, and the value of the entry, each uint32. The
last word of a block is the number of the block that follows. Blocks that were read take the records of the next table,
so they never run out: an entry has one record at a time.

Invariant: to which chain an entry goes matters for speed alone.

Source: Manegold, Boncz, Kersten, "Optimizing main-memory join on modern hardware", TKDE 2002 (radix partition).
"""

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from dedup_service.core.errors import StateError
from dedup_service.core.index.block_crowd import CROWD, NODE_BYTES, NODES_ROOM, NODES_USED
from dedup_service.core.index.block_halves_probe import probe_few, probe_numbers
from dedup_service.core.index.block_halves_write import (
    ALL,
    DISTINCT,
    DONE,
    HOT_BUCKETS,
    HOT_LINES,
    PRESENT,
    SHORT,
    STATUS,
    UNREFINED,
    WORK_COMPARED,
    WORK_LINES,
    WORK_PROBES,
    grow_tables,
    half_leaves,
    half_of,
    insert_few,
    insert_numbers,
    is_short,
    join,
    remove_few,
    remove_numbers,
    set_everywhere,
    store_in,
)
from dedup_service.core.index.block_layout import Fingerprints, Integers
from dedup_service.core.index.block_lines import (
    COUNT_SHIFT,
    COUNTERS,
    ENTRIES,
    FIRST_BITS,
    FIRST_ITEMS,
    HEAD_ROOM,
    HEADS,
    HOT,
    LINE_BYTES,
    LINES_ROOM,
    LINES_USED,
    LOAD,
    LOAD_UNIT,
    META,
    NEXT,
    NODES,
    OVERFLOW,
    POOLS,
    SEGMENTS,
    SLOTS,
    TABLES,
    SegmentPool,
    bucket_of,
    close_words,
    entry_slot,
    item_address,
    longest_bucket,
    set_slot,
    slot_value,
)
from dedup_service.core.index.block_seed import Distances
from dedup_service.core.kernels import kernel_inline, load32, load64, long_kernel, prefetch_address, store32, store64

ROUND_ENTRIES = 1 << 24
"""Entries that are collected: 200 MB. Every line is touched in each round."""

_RANGE_BITS = 13
"""Buckets of a range, as a power of two: half a megabyte of lines."""

_RECORD_BYTES = 12
_BLOCK_BITS = 14
_BLOCK_BYTES = 1 << _BLOCK_BITS
_BLOCK_RECORDS = _BLOCK_BYTES // _RECORD_BYTES
_FOLLOWING = _BLOCK_BYTES - 4
"""Where a block has the number of the one that follows."""

_END = 8
"""A chain is 16 bytes: the address of its first block, and the one behind its last record; 0 and 0 if it is empty."""

_COLLECTED, _CHAIN, _AT = range(3)
"""Progress: entries in the chains; how far a table is filled, as the chain and the record in its first block."""

_JOINED = -2
"""A status beside those of `block_halves_write`: the entry joined a fingerprint that is there."""

_AHEAD = 12
"""Records whose lines are on the way."""


class BulkFill:
    """Takes entries for one index: `add` as often as needed, then `end`. Nothing else uses the index meanwhile.

    halves: tables, 1 or 2. bases, counters: of the index. provide: called when a kernel stopped because it needs
    memory or refined tables, which counters[STATUS] says. round_entries: how many are collected.

    Answers are those after insertion. StateError if an entry is there already; then the index is of no use.
    """

    __slots__ = ("_bases", "_blocks", "_chains", "_counters", "_free", "_halves", "_progress", "_provide", "_round")

    def __init__(
        self,
        halves: int,
        bases: Integers,
        counters: Integers,
        provide: Callable[[], None],
        *,
        round_entries: int = ROUND_ENTRIES,
    ) -> None:
        self._halves, self._bases, self._counters, self._provide = halves, bases, counters, provide
        self._round = round_entries
        ranges = -(-int(counters[HEADS]) >> _RANGE_BITS)
        blocks = -(-round_entries // _BLOCK_RECORDS) + 2 * ranges + 4
        self._chains = np.zeros((2, ranges + 1, 2), np.int64)
        self._free = np.arange(-1, blocks)
        self._free[0] = blocks
        self._blocks = np.empty((blocks + 1) * _BLOCK_BYTES, np.uint8)
        self._progress = np.zeros(3, np.int64)

    def add(self, sequences: Integers, fingerprints: Fingerprints) -> None:
        """Add entries: int64[n], rows; uint64[n]."""
        done = 0
        while True:
            done = collect(
                sequences,
                fingerprints,
                done,
                self._round,
                self._counters,
                self._chains,
                self._free,
                self._first_block(),
                self._progress,
            )
            if done == len(sequences):
                return
            self.end()

    def end(self) -> None:
        """Fill the tables with what was collected."""
        for half in range(self._halves):
            self._counters[STATUS] = -1
            self._progress[_CHAIN] = self._progress[_AT] = 0
            while self._counters[STATUS] != DONE:
                fill_table(
                    half,
                    self._halves,
                    self._bases,
                    self._counters,
                    self._chains,
                    self._free,
                    self._first_block(),
                    self._progress,
                )
                if self._counters[STATUS] == PRESENT:
                    raise StateError("an entry is in the index already, or comes twice: build the index again")
                if self._counters[STATUS] != DONE:
                    self._provide()
        self._progress[_COLLECTED] = 0

    def _first_block(self) -> int:
        address = int(self._blocks.ctypes.data)
        return address + -address % _BLOCK_BYTES


@kernel_inline
def push(chain: int, value: int, word: int, number: int, free: Integers, blocks: int) -> None:
    """Append a record to the chain at an address."""
    end = load64(chain + _END)
    if end == 0 or end & (_BLOCK_BYTES - 1) == _BLOCK_RECORDS * _RECORD_BYTES:
        block = free[free[0]]
        free[0] -= 1
        if end == 0:
            store64(chain, blocks + (block << _BLOCK_BITS))
        else:
            store32((end & -_BLOCK_BYTES) + _FOLLOWING, block)
        end = blocks + (block << _BLOCK_BITS)
    store32(end, value)
    store32(end + 4, word)
    store32(end + 8, number)
    store64(chain + _END, end + _RECORD_BYTES)


@kernel_inline
def chain_of(value: int, heads: int, chains: Integers) -> int:
    """Return the chain of a hash in a table of `heads` buckets; the last chain of a table is for crowds."""
    return int(min(bucket_of(value, heads) >> _RANGE_BITS, chains.shape[1] - 2))


@kernel_inline
def chain_address(half: int, chain: int, chains: Integers) -> int:
    """Return the address of a chain."""
    return int(chains.ctypes.data + ((half * chains.shape[1] + chain) << 4))


@long_kernel
def collect(
    sequences: Integers,
    fingerprints: Fingerprints,
    done: int,
    limit: int,
    counters: Integers,
    chains: Integers,
    free: Integers,
    blocks: int,
    progress: Integers,
) -> int:
    """Put entries from number `done` on into the chains, up to `limit` altogether; return how many are done.

    chains: int64[2, c, 2]. free: int64[b + 1], how many blocks are free, and which. blocks: address of the first
    one, a multiple of _BLOCK_BYTES. progress: int64[3], zeros at first.
    """
    end, heads = min(len(sequences), done + limit - progress[_COLLECTED]), counters[HEADS]
    for at in range(done, end):
        value, word = half_of(fingerprints[at], 0), half_of(fingerprints[at], 1)
        chain = chain_address(0, chain_of(value, heads, chains), chains)
        push(chain, value, word, sequences[at], free, blocks)
    progress[_COLLECTED] += end - done
    return int(end)


@kernel_inline
def store_in_head(
    half: int, value: int, word: int, number: int, heads: int, bases: Integers, counters: Integers
) -> bool:
    """Store a record if the first line of its bucket has room; False, and nothing changes, if more is to be done.

    heads: buckets of the table. More is to be done, too, if the line may have the fingerprint (half 0), and if the
    table has to grow.
    """
    head = item_address(bases, half, bucket_of(value, heads), LINE_BYTES)
    meta = load32(head + META)
    count = meta >> COUNT_SHIFT
    if count == SLOTS or meta & (HOT | NEXT) or (counters[ENTRIES + half] + 1) * LOAD_UNIT > heads * LOAD:
        return False
    if half == 0 and close_words(head, word, 0) & ((1 << count) - 1):
        return False
    set_slot(head, count, word, number, value >> FIRST_BITS)
    store32(head + META, meta + (1 << COUNT_SHIFT))
    counters[ENTRIES + half] += 1
    return True


@kernel_inline
def store_in_bucket(
    half: int,
    value: int,
    word: int,
    number: int,
    is_crowd: bool,
    leaves: Integers,
    taken: Integers,
    crowds: int,
    free: Integers,
    blocks: int,
    bases: Integers,
    counters: Integers,
) -> int:
    """Store any record; return DONE, _JOINED, UNREFINED, PRESENT, or SHORT if nothing was changed.

    is_crowd: the fingerprint is there, and gets this value. crowds: address of the chain of crowds that begin, or 0.
    """
    if is_short(counters):
        return SHORT
    count = half_leaves(half, value, word, 0, leaves, bases, counters)
    if is_crowd:
        set_everywhere(leaves, count, number, bases)
        return DONE
    place = entry_slot(leaves[0, 1], leaves[0, 2], word, bases) if half == 0 else 0
    if place:
        address = slot_value(place & -64, place & 63)
        begins = load32(address) < CROWD
        if not join(place, leaves, count, number, bases, counters):
            return PRESENT
        if begins and crowds:
            push(crowds, word, value, load32(address), free, blocks)
        return _JOINED
    unrefined = store_in(leaves, count, number, taken, bases, counters)
    grow_tables(taken, bases, counters)
    return UNREFINED if unrefined else DONE


@long_kernel
def fill_table(
    half: int,
    halves: int,
    bases: Integers,
    counters: Integers,
    chains: Integers,
    free: Integers,
    blocks: int,
    progress: Integers,
) -> None:
    """Store the records in the chains of a half; counters[STATUS]: why it returned. See `collect`."""
    leaves, taken = np.empty((4, 4), np.int64), np.empty((6, 3), np.int64)
    passes_on = half == 0 and halves == 2
    crowds = chain_address(1, chains.shape[1] - 1, chains) if passes_on else 0
    while progress[_CHAIN] < chains.shape[1]:
        is_crowd = progress[_CHAIN] == chains.shape[1] - 1
        chain = chain_address(half, progress[_CHAIN], chains)
        while load64(chain):
            block, end = load64(chain), load64(chain + _END)
            is_last = end & -_BLOCK_BYTES == block
            count = (end - block) // _RECORD_BYTES if is_last else _BLOCK_RECORDS
            heads, upper_heads = counters[HEADS + half], counters[HEADS + 1]
            for at in range(progress[_AT], count):
                record = block + at * _RECORD_BYTES
                if at + _AHEAD < count:
                    later = bucket_of(load32(record + _AHEAD * _RECORD_BYTES), heads)
                    prefetch_address(item_address(bases, half, later, LINE_BYTES))
                value, word, number = load32(record), load32(record + 4), load32(record + 8)
                status = DONE
                if is_crowd or not store_in_head(half, value, word, number, heads, bases, counters):
                    status = store_in_bucket(
                        half, value, word, number, is_crowd, leaves, taken, crowds, free, blocks, bases, counters
                    )
                    heads = counters[HEADS + half]
                if half == 0 and status in (DONE, UNREFINED):
                    counters[DISTINCT] += 1
                    if passes_on:
                        upper = chain_address(1, chain_of(word, upper_heads, chains), chains)
                        push(upper, word, value, number, free, blocks)
                if half == 0 and status != SHORT:
                    counters[ALL] += 1
                if status not in (DONE, _JOINED):
                    progress[_AT] = at if status == SHORT else at + 1
                    counters[STATUS] = status
                    return
            progress[_AT] = 0
            give_block(chain, block, is_last, free, blocks)
        progress[_CHAIN] += 1
    counters[STATUS] = DONE


@kernel_inline
def give_block(chain: int, block: int, is_last: bool, free: Integers, blocks: int) -> None:
    """Take the first block out of a chain, and put it among the free ones."""
    store64(chain, 0 if is_last else blocks + (load32(block + _FOLLOWING) << _BLOCK_BITS))
    if is_last:
        store64(chain + _END, 0)
    free[0] += 1
    free[free[0]] = (block - blocks) >> _BLOCK_BITS


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
