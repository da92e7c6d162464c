"""Equal hashes among the pages of a batch and the entries that are not settled yet: all pairs, in two passes.

The tables have settled entries alone (`entry_tables`). The others are some thousands, so a small table of what a
batch asks for, through which they pass, takes some nanoseconds for each of them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel_inline, long_kernel

_MIN_SLOTS = 64

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class EqualRows:
    """Earlier rows with the value of a page. offsets: int64[n + 1]; page i has rows[offsets[i]:offsets[i + 1]].

    rows: int64[m], ascending within a page.
    """

    offsets: Integers
    rows: Integers

    def pages(self) -> list[int]:
        """Return the pages that have any, ascending."""
        if not len(self.rows):
            return []
        return np.flatnonzero(self.offsets[1:] > self.offsets[:-1]).tolist()

    def of_page(self, page: int) -> Integers:
        """Return the rows of a page: int64[k]."""
        return self.rows[self.offsets[page] : self.offsets[page + 1]]


def equal_rows(
    values: npt.NDArray[np.uint64],
    asked: npt.NDArray[np.bool_],
    column: npt.NDArray[np.uint64],
    flags: npt.NDArray[np.uint8],
    flag: int,
    own: int,
) -> EqualRows:
    """Return the rows with the value of each page that asks.

    values, asked: uint64[n] and bool[n], of pages. column, flags: uint64[m] and uint8[m], of rows, which count if they
    have the flag; 0: all do. Page i is row own + i itself, and only rows before it count. Values are hashes.
    """
    return EqualRows(*list_equal(values, asked, column, flags, flag, own))


@long_kernel
def list_equal(
    values: npt.NDArray[np.uint64],
    asked: npt.NDArray[np.bool_],
    column: npt.NDArray[np.uint64],
    flags: npt.NDArray[np.uint8],
    flag: int,
    own: int,
) -> tuple[Integers, Integers]:
    """Return offsets and rows as `EqualRows` has them: rows are counted first, and then written."""
    slots = _MIN_SLOTS
    while slots < 2 * len(values):
        slots *= 2
    heads, following = np.full(slots, -1, np.int64), np.full(len(values), -1, np.int64)
    offsets = np.zeros(len(values) + 1, np.int64)
    several = chain_pages(values, asked, flags, flag, own, heads, following)
    if several:
        pass_rows(values, column, flags, flag, own, heads, following, offsets[1:], offsets[:0])
    for page in range(len(values)):
        offsets[page + 1] += offsets[page]
    rows = np.empty(offsets[len(values)], np.int64)
    if len(rows):
        pass_rows(values, column, flags, flag, own, heads, following, offsets[:-1].copy(), rows)
    return offsets, rows


@kernel_inline
def chain_pages(
    values: npt.NDArray[np.uint64],
    asked: npt.NDArray[np.bool_],
    flags: npt.NDArray[np.uint8],
    flag: int,
    own: int,
    heads: Integers,
    following: Integers,
) -> int:
    """Put the pages that ask into the lists of a hash table; return how many there are.

    heads: the first page of each slot; following: the next one of a page; -1 for none.
    """
    several = 0
    for page in range(len(values)):
        if asked[page] and (flag == 0 or flags[own + page] & flag):
            slot = np.int64(values[page] & np.uint64(len(heads) - 1))
            following[page] = heads[slot]
            heads[slot] = page
            several += 1
    return several


@kernel_inline
def pass_rows(
    values: npt.NDArray[np.uint64],
    column: npt.NDArray[np.uint64],
    flags: npt.NDArray[np.uint8],
    flag: int,
    own: int,
    heads: Integers,
    following: Integers,
    places: Integers,
    rows: Integers,
) -> None:
    """Count the rows of each page in `places`; write them from there on if `rows` is not empty."""
    last = np.uint64(len(heads) - 1)
    for row in range(len(column)):
        page = heads[np.int64(column[row] & last)]
        if page >= 0 and flag and not flags[row] & flag:
            continue
        while page >= 0:
            if values[page] == column[row] and row < own + page:
                if len(rows):
                    rows[places[page]] = row
                places[page] += 1
            page = following[page]
