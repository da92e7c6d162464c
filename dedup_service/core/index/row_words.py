"""Some words of 64 bits for each row, in pages: they grow without a copy, and kernels read them by address."""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.memory_pages import MemoryPages
from dedup_service.core.kernels import kernel, kernel_inline, load64, long_kernel, store64

_PAGE_SHIFT = 10
PAGE_ROWS = 1 << _PAGE_SHIFT
_IN_PAGE = PAGE_ROWS - 1


class RowWords:
    """`words` words a row; rows are numbered from 0. New words are arbitrary.

    Row numbers ascend for ever: `skip` and `release` leave out those that are not used any more. What stays of them is
    the address of their page: 8 bytes for PAGE_ROWS rows.
    """

    __slots__ = ("_memory", "_pages", "addresses")

    addresses: npt.NDArray[np.int64]
    """Of each page, 0 where there is none; a longer array after growth."""

    def __init__(self, words: int) -> None:
        self._memory = MemoryPages(8 * words * PAGE_ROWS)
        self.addresses = np.empty(0, np.int64)
        self._pages = 0

    @property
    def size_bytes(self) -> int:
        """Memory reserved."""
        return self._memory.size_bytes + self.addresses.nbytes

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._pages * PAGE_ROWS

    def make_room(self, rows: int) -> None:
        """Have so many rows at least."""
        while self._pages * PAGE_ROWS < rows:
            self._have_addresses(self._pages + 1)
            self.addresses[self._pages] = self._memory.take()
            self._pages += 1

    def skip(self, rows: int) -> None:
        """Have no memory for the rows from the present end up to `rows`, which are not used."""
        pages = rows // PAGE_ROWS
        if pages > self._pages:
            self._have_addresses(pages)
            self._pages = pages

    def release(self, rows: range) -> None:
        """Give back the memory of rows that are not used any more, as far as they fill pages."""
        for page in range(-(-rows.start // PAGE_ROWS), min(rows.stop // PAGE_ROWS, self._pages)):
            if self.addresses[page]:
                self._memory.give_back(int(self.addresses[page]))
                self.addresses[page] = 0

    def _have_addresses(self, pages: int) -> None:
        if pages > len(self.addresses):
            longer = np.zeros(max(16, pages + pages // 4), np.int64)
            longer[: self._pages] = self.addresses[: self._pages]
            self.addresses = longer


@kernel_inline
def word_address(row: int, words: int, addresses: npt.NDArray[np.int64]) -> int:
    """Return the address of the first word of a row."""
    return int(addresses[row >> _PAGE_SHIFT] + (row & _IN_PAGE) * 8 * words)


@kernel
def write_words(row: int, values: npt.NDArray[np.uint64], addresses: npt.NDArray[np.int64]) -> None:
    """Write the words of a row: uint64[words]. The caller ensures that there is such a row."""
    address = word_address(row, len(values), addresses)
    for word in range(len(values)):
        store64(address + 8 * word, int(np.int64(values[word])))


@long_kernel
def write_words_of(
    rows: npt.NDArray[np.uint32], values: npt.NDArray[np.uint64], addresses: npt.NDArray[np.int64]
) -> None:
    """Write the words of many rows, uint64[n, words]."""
    for number in range(len(rows)):
        address = word_address(int(np.int64(rows[number])), values.shape[1], addresses)
        for word in range(values.shape[1]):
            store64(address + 8 * word, int(np.int64(values[number, word])))


@long_kernel
def read_words(rows: npt.NDArray[np.uint32], words: int, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the words of many rows: uint64[n, words]."""
    found = np.empty((len(rows), words), np.uint64)
    for number in range(len(rows)):
        address = word_address(int(np.int64(rows[number])), words, addresses)
        for word in range(words):
            found[number, word] = np.uint64(load64(address + 8 * word))
    return found
