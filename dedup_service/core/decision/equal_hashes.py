"""Equal hashes among the pages of a batch and the entries that are not settled yet: all pairs, in two passes.

The tables have settled entries alone (`entry_tables`). The others are some thousands, so a small table of what a
batch asks for, through which they pass, takes a tenth of a microsecond a page.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import long_kernel
from dedup_service.core.splitmix import mix64_in_kernel

__all__ = ["EqualRows", "equal_rows"]

_MIN_SLOTS = 64

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class EqualRows:
    """Earlier rows with the value of a page. offsets: int64[n + 1]; page i has rows[offsets[i]:offsets[i + 1]].

    rows: int64[m], ascending within a page.
    """

    offsets: Integers
    rows: Integers

    @property
    def pages(self) -> npt.NDArray[np.bool_]:
        """Which pages have any: bool[n]."""
        return self.offsets[1:] > self.offsets[:-1]

    def of_page(self, page: int) -> Integers:
        """Return the rows of a page: int64[k]."""
        return self.rows[self.offsets[page] : self.offsets[page + 1]]


def equal_rows(
    values: npt.NDArray[Any],
    asked: npt.NDArray[np.bool_],
    column: npt.NDArray[Any],
    there: npt.NDArray[np.bool_],
    own: int,
) -> EqualRows:
    """Return the rows with the value of each page that asks.

    values, asked: uint64[n] and bool[n], of pages. column, there: uint64[m] and bool[m], of rows; page i is row
    own + i itself, and only rows before it count.
    """
    offsets = np.zeros(len(values) + 1, np.int64)
    if not asked.any():
        return EqualRows(offsets, np.empty(0, np.int64))
    slots = _MIN_SLOTS
    while slots < 2 * len(values):
        slots *= 2
    heads, following = np.full(slots, -1, np.int64), np.full(len(values), -1, np.int64)
    wanted, given = np.ascontiguousarray(values, np.uint64), np.ascontiguousarray(column, np.uint64)
    count_equal(wanted, asked, given, there, own, heads, following, offsets[1:])
    np.cumsum(offsets, out=offsets)
    rows = np.empty(offsets[-1], np.int64)
    if len(rows):
        write_equal(wanted, given, there, own, heads, following, offsets[:-1].copy(), rows)
    return EqualRows(offsets, rows)


@long_kernel
def count_equal(
    values: npt.NDArray[np.uint64],
    asked: npt.NDArray[np.bool_],
    column: npt.NDArray[np.uint64],
    there: npt.NDArray[np.bool_],
    own: int,
    heads: Integers,
    following: Integers,
    counts: Integers,
) -> None:
    """Count the rows of each page; put the pages into the lists of a hash table.

    heads: the first page of each slot; following: the next one of a page; -1 for none.
    """
    last = np.uint64(len(heads) - 1)
    for page in range(len(values)):
        if asked[page]:
            slot = np.int64(mix64_in_kernel(values[page]) & last)
            following[page] = heads[slot]
            heads[slot] = page
    for row in range(len(column)):
        page = heads[np.int64(mix64_in_kernel(column[row]) & last)] if there[row] else -1
        while page >= 0:
            if values[page] == column[row] and row < own + page:
                counts[page] += 1
            page = following[page]


@long_kernel
def write_equal(
    values: npt.NDArray[np.uint64],
    column: npt.NDArray[np.uint64],
    there: npt.NDArray[np.bool_],
    own: int,
    heads: Integers,
    following: Integers,
    places: Integers,
    rows: Integers,
) -> None:
    """Write the rows of each page from its place on."""
    last = np.uint64(len(heads) - 1)
    for row in range(len(column)):
        page = heads[np.int64(mix64_in_kernel(column[row]) & last)] if there[row] else -1
        while page >= 0:
            if values[page] == column[row] and row < own + page:
                rows[places[page]] = row
                places[page] += 1
            page = following[page]
