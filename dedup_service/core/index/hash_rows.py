"""Rows by a hash of 64 bits: six bytes a place, 35 bits of the hash, which the caller confirms.

An element of a quotient table (`quotient_table`) is a row under the first `HASH_BITS` bits of the mixed hash.
So a search may find rows of another hash: of 10^8 hashes, another one has the same bits with probability .003.
The caller compares the whole hash, which a row has, and nothing else is lost by a collision.

Nearly every hash has one row, since copies are not kept. Rows of one that has more than `CROWD` are in an
ascending array beside the table, so a crowded hash costs others nothing.
Invariant: answers are a function of the rows that are in it. Not thread-safe.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.quotient_segment import (
    HASH_BITS,
    SPARSE,
    add,
    field,
    located,
    next_in_run,
    prefetch_home,
    seek,
    take_out,
    value_at,
)
from dedup_service.core.index.quotient_table import QuotientTable
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel
from dedup_service.core.splitmix import mix64_in_kernel

CROWD = 16
"""Rows of one hash that lie in the table, at most."""

_MAX_LOAD, _STEPS = 0.9, 16
"""Fuller than the cells are: these tables are searched three times a page, cells 64 times."""

_AHEAD = 8
"""Hashes whose places are fetched while loops work on the one before them."""

_SHIFT = np.uint64(64 - HASH_BITS)
_NO_ROWS = np.empty(0, np.uint32)


class HashRows:
    """Rows (0 to 2**32 - 1) by hashes (unsigned 64-bit); each row once under a hash.

    >>> texts = HashRows()
    >>> for row in (2, 1, 5):
    ...     texts.add(7, row)
    >>> list(texts.rows(7)), list(texts.rows(8))
    ([1, 2, 5], [])
    """

    __slots__ = ("_crowd_order", "_crowded", "_found", "_in_crowds", "_table")

    def __init__(self) -> None:
        self._table = QuotientTable(max_load=_MAX_LOAD, steps=_STEPS)
        self._crowded: dict[int, array[int]] = {}
        self._crowd_order = array("q")
        self._in_crowds = 0
        self._found = np.empty(CROWD, np.int64)

    def __len__(self) -> int:
        """Return the number of rows, one that has two hashes counted twice."""
        return len(self._table) + self._in_crowds

    @property
    def size_bytes(self) -> int:
        """Memory reserved."""
        return self._table.size_bytes + sum(rows.itemsize * len(rows) for rows in self._crowded.values())

    @property
    def largest_copy(self) -> int:
        """Most rows that were copied while one insertion waited."""
        return self._table.largest_copy

    @property
    def table(self) -> QuotientTable:
        """The table of all rows outside of crowds, for images of it."""
        return self._table

    def reserve(self, rows: int) -> None:
        """Prepare an empty table for so many rows."""
        self._table.reserve(rows)

    def rows(self, value: int) -> Sequence[int]:
        """Return the rows under a hash, ascending, among them those of hashes that share its first bits."""
        if self._crowded and (crowd := self._crowded.get(_first_bits(value))) is not None:
            return crowd
        count = rows_of(np.uint64(value), self._table.address, self._found)
        return sorted(self._found[:count].tolist()) if count else ()

    def rows_many(self, values: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """Return the rows under many hashes, in one loop without the interpreter lock.

        values: uint64[n]. Returns offsets int64[n + 1] and rows uint32[m]; hash i has rows[offsets[i]:offsets[i + 1]],
        as `rows` has them. A crowded hash has its first CROWD rows alone; ask `rows` for the others.
        """
        found = np.empty(len(values) * CROWD, np.int64)
        counts = np.zeros(len(values), np.int64)
        if not rows_of_many(values, self._table.address, found, counts) and not self._crowded:
            return np.zeros(len(values) + 1, np.int64), _NO_ROWS
        for at in np.flatnonzero(self._crowded_among(values)).tolist():
            crowd = self._crowded[_first_bits(int(values[at]))]
            counts[at] = min(len(crowd), CROWD)
            found[at * CROWD : at * CROWD + counts[at]] = crowd[:CROWD]
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        kept = np.arange(CROWD) < counts[:, np.newaxis]
        return offsets, found.reshape(-1, CROWD)[kept].astype(np.uint32)

    def add(self, value: int, row: int) -> None:
        """Add a row to a hash; it does not have it."""
        if self._crowded and (crowd := self._crowded.get(_first_bits(value))) is not None:
            insort(crowd, row)
            self._in_crowds += 1
            return
        while True:
            added = add_row(np.uint64(value), row, self._table.address)
            if added:
                break
            self._table.grow()
        if added > 1:
            self._make_crowd(value, row)

    def remove(self, value: int, row: int) -> None:
        """Remove a row from a hash; KeyError if it does not have it."""
        if self._crowded and (crowd := self._crowded.get(_first_bits(value))) is not None:
            at = bisect_left(crowd, row)
            if at == len(crowd) or crowd[at] != row:
                raise KeyError((value, row))
            del crowd[at]
            self._in_crowds -= 1
            if len(crowd) < CROWD // 2:
                self._dissolve(value)
            return
        if not remove_row(np.uint64(value), row, self._table.address):
            raise KeyError((value, row))
        self._table.shrink()

    def add_many(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
        """Add a row to each hash, in one loop without the interpreter lock; none of them has its row.

        values: uint64[n]. rows: uint32[n].
        """
        done, crowded = 0, self._crowded_among(values)
        while (done := add_rows(done, values, rows, crowded, self._table.address)) < len(values):
            if not self._table.grow():
                self.add(int(values[done]), int(rows[done]))
                done += 1
                crowded = self._crowded_among(values)

    def remove_many(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
        """Remove a row from each hash, in one loop without the interpreter lock.

        values: uint64[n]. rows: uint32[n]. KeyError for the first hash that does not have its row; then those before
        it are removed, and the others are not.
        """
        done, crowded = 0, self._crowded_among(values)
        while (done := remove_rows(done, values, rows, crowded, self._table.address)) < len(values):
            if not self._table.shrink():
                self.remove(int(values[done]), int(rows[done]))
                done += 1
        self._table.shrink()

    def _crowded_among(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return which hashes have a crowd: bool[n]."""
        if not self._crowded:
            return np.zeros(len(values), np.bool_)
        return np.fromiter((bits in self._crowded for bits in first_bits_of(values).tolist()), np.bool_, len(values))

    def add_missing(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
        """Add those rows that their hashes do not have yet. values: uint64[n]; rows: uint32[n]."""
        done = 0
        while done < len(rows):
            if self._crowded and _first_bits(int(values[done])) in self._crowded:
                self._add_one_missing(int(values[done]), int(rows[done]))
                done += 1
                continue
            done = add_missing_rows(values, rows, done, self._crowd_hashes(), self._table.address)
            if done < len(rows) and not self._table.grow():
                self._add_one_missing(int(values[done]), int(rows[done]))
                done += 1

    def crowds_between(self, first: int, end: int) -> bytes:
        """Return the crowds of the hashes from `first` to before `end` of the table's hash space, for an image."""
        order = self._crowd_order
        crowds = []
        for identity in order[bisect_left(order, first) : bisect_left(order, end)]:
            rows = self._crowded[identity]
            crowds.append(np.array([identity, len(rows)], "<i8").tobytes() + np.array(rows, "<u4").tobytes())
        return b"".join(crowds)

    def load_crowds(self, crowds: bytes, live: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]) -> None:
        """Put crowds of an image back. live: tells of rows, int64[n], which ones to keep: bool[n]."""
        at = 0
        while at < len(crowds):
            identity, count = np.frombuffer(crowds, "<i8", 2, at).tolist()
            rows = np.frombuffer(crowds, "<u4", count, at + 16).astype(np.int64)
            at += 16 + 4 * count
            rows = rows[live(rows)]
            if len(rows):
                self._crowded[identity] = array("I", rows.tolist())
                insort(self._crowd_order, identity)
                self._in_crowds += len(rows)

    def _add_one_missing(self, value: int, row: int) -> None:
        if row not in self.rows(value):
            self.add(value, row)

    def _crowd_hashes(self) -> npt.NDArray[np.int64]:
        return np.array(self._crowd_order, np.int64)

    def _make_crowd(self, value: int, row: int) -> None:
        """Move the rows under a hash out of the table, together with one that did not fit."""
        rows = list(self.rows(value))
        for other in rows:
            remove_row(np.uint64(value), other, self._table.address)
        self._crowded[_first_bits(value)] = array("I", sorted([*rows, row]))
        insort(self._crowd_order, _first_bits(value))
        self._in_crowds += len(rows) + 1

    def _dissolve(self, value: int) -> None:
        """Move the few rows of a crowd back into the table."""
        rows = self._crowded.pop(_first_bits(value))
        self._crowd_order.remove(_first_bits(value))
        self._in_crowds -= len(rows)
        for row in rows:
            self.add(value, row)


def _first_bits(value: int) -> int:
    return int(first_bits(np.uint64(value)))


@kernel_inline
def identity(value: np.uint64) -> int:
    """Return the first bits of a mixed hash."""
    return int(np.int64(mix64_in_kernel(value) >> _SHIFT))


@kernel
def first_bits(value: np.uint64) -> int:
    """Return what the table knows of a hash."""
    return int(identity(value))


@kernel
def first_bits_of(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return what the table knows of many hashes: int64[n]."""
    bits = np.empty(len(values), np.int64)
    for number in range(len(values)):
        bits[number] = identity(values[number])
    return bits


@kernel_inline
def collect_rows(value: np.uint64, table: int, found: npt.NDArray[np.int64], start: int) -> int:
    """Write the rows under a hash into found[start:], in no order, and return how many there are."""
    segment, home, rest = located(identity(value), 0, table)
    place, _ = seek(home, rest, segment)
    count = 0
    while place >= 0:
        found[start + count] = value_at(place, segment)
        count += 1
        place = next_in_run(place, rest, segment)
    return count


@kernel
def rows_of(value: np.uint64, table: int, found: npt.NDArray[np.int64]) -> int:
    """Write the rows under a hash into found: int64[CROWD], and return how many there are."""
    return collect_rows(value, table, found, 0)


@long_kernel
def rows_of_many(
    values: npt.NDArray[np.uint64],
    table: int,
    found: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> int:
    """Write the rows under each hash, ascending, into found: int64[n * CROWD], and their number into counts.

    Returns how many there are in all.
    """
    total = 0
    for number in range(len(values) + _AHEAD):
        if number < len(values):
            prefetch_home(identity(values[number]), table)
        at = number - _AHEAD
        if at >= 0:
            start = at * CROWD
            count = collect_rows(values[at], table, found, start)
            if count > 1:
                found[start : start + count] = np.sort(found[start : start + count])
            counts[at] = count
            total += count
    return total


@kernel_inline
def add_step(value: np.uint64, row: int, table: int) -> int:
    """Add a row and return 1; 0 if the table has to grow first, 2 without a change if the hash has CROWD rows."""
    segment, home, rest = located(identity(value), 0, table)
    place, free = seek(home, rest, segment)
    count = 0
    while place >= 0:
        count += 1
        place = next_in_run(place, rest, segment)
    if count >= CROWD:
        return 2
    return 1 if add(free, home, rest, row, segment, table) else 0


@long_kernel
def add_missing_rows(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    start: int,
    crowds: npt.NDArray[np.int64],
    table: int,
) -> int:
    """Add rows from number `start` on to their hashes, except where they are; return how many are done.

    It stops where the table has to grow, at a hash with CROWD rows, and at one in crowds: int64[m], ascending.
    """
    ahead = 8
    for number in range(start, min(start + ahead, len(rows))):
        prefetch_home(identity(values[number]), table)
    for number in range(start, len(rows)):
        if number + ahead < len(rows):
            prefetch_home(identity(values[number + ahead]), table)
        own, row = identity(values[number]), int(np.int64(rows[number]))
        if len(crowds):
            at = np.searchsorted(crowds, own)
            if at < len(crowds) and crowds[at] == own:
                return number
        segment, home, rest = located(own, 0, table)
        place, free = seek(home, rest, segment)
        count, there = 0, False
        while place >= 0:
            count += 1
            there = there or value_at(place, segment) == row
            place = next_in_run(place, rest, segment)
        if not there and (count >= CROWD or not add(free, home, rest, row, segment, table)):
            return number
    return len(rows)


@kernel
def add_row(value: np.uint64, row: int, table: int) -> int:
    """Add one row, as `add_step` does."""
    return int(add_step(value, row, table))


@long_kernel
def add_rows(
    start: int,
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    crowded: npt.NDArray[np.bool_],
    table: int,
) -> int:
    """Add a row to each hash from number `start` on; return how many are done.

    Stops at a hash that is crowded, bool[n], or would be, and where the table has to grow.
    """
    for number in range(start, min(start + _AHEAD, len(values))):
        prefetch_home(identity(values[number]), table)
    for number in range(start, len(values)):
        if number + _AHEAD < len(values):
            prefetch_home(identity(values[number + _AHEAD]), table)
        if crowded[number] or add_step(values[number], int(np.int64(rows[number])), table) != 1:
            return number
    return len(values)


@kernel_inline
def remove_step(value: np.uint64, row: int, table: int) -> bool:
    """Remove a row; False if the hash does not have it."""
    segment, home, rest = located(identity(value), 0, table)
    place, _ = seek(home, rest, segment)
    while place >= 0:
        if value_at(place, segment) == row:
            take_out(place, home, segment, table)
            return True
        place = next_in_run(place, rest, segment)
    return False


@kernel
def remove_row(value: np.uint64, row: int, table: int) -> bool:
    """Remove one row, as `remove_step` does."""
    return bool(remove_step(value, row, table))


@long_kernel
def remove_rows(
    start: int,
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    crowded: npt.NDArray[np.bool_],
    table: int,
) -> int:
    """Remove a row from each hash from number `start` on; return how many are done.

    Stops at a hash that is crowded, bool[n], or does not have its row, and where the table should shrink.
    """
    for number in range(start, min(start + _AHEAD, len(values))):
        prefetch_home(identity(values[number]), table)
    for number in range(start, len(values)):
        if field(table, SPARSE) >= 0:
            return number
        if number + _AHEAD < len(values):
            prefetch_home(identity(values[number + _AHEAD]), table)
        if crowded[number] or not remove_step(values[number], int(np.int64(rows[number])), table):
            return number
    return len(values)
