"""Memory in pages of one size, addressed directly by kernels: tables grow without copying what they have.

A numpy array grows by a copy, which takes a second for some gigabytes; here a table takes one more page. Pages
are cut from larger pieces, which double in size up to `_MAX_PIECE_PAGES` pages, so that a small table is small
and the memory of a large one is at most one piece more than its pages. A page that is given back is used for
the next request; memory is not returned to the system before the pool is dropped.

Once a pool is so large that a huge page of the system is a small part of it, its pieces consist of such
(`huge_memory`).

Invariants: pages begin at multiples of their size; addresses are valid as long as the pool lives. Whoever passes
them to a kernel keeps the pool alive.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.huge_memory import HUGE_PAGE, huge_memory

_FIRST_PIECE_PAGES, _MAX_PIECE_PAGES = 4, 128
"""Pages of the first piece, and of the largest ones but the huge: 1 MB for pages of 8 KB."""

_HUGE_SHARE = 8
"""From this many huge pages on, a pool takes huge pages: one part in so many of what it has."""

_MAX_HUGE_PAGES = 4
"""Huge pages of a piece, at most."""


class MemoryPages:
    """Pages of `page_bytes` bytes each, a power of two from 8 on.

    A page has zeros, or what it had when it was given back. Never what the process had there before: images of tables
    go to the disk, unused places included.
    """

    __slots__ = ("_free", "_page_bytes", "_pieces", "_size_bytes", "_used")

    def __init__(self, page_bytes: int) -> None:
        self._page_bytes = page_bytes
        self._pieces: list[npt.NDArray[np.uint8]] = []
        self._free: list[int] = []
        self._used = self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Memory reserved, free pages included."""
        return self._size_bytes

    @property
    def used_bytes(self) -> int:
        """Memory of the pages that are in use."""
        return self._used * self._page_bytes

    def take(self) -> int:
        """Return the address of a page."""
        if not self._free:
            self._add_piece()
        self._used += 1
        return self._free.pop()

    def _add_piece(self) -> None:
        huge_pages = min(self._size_bytes // (_HUGE_SHARE * HUGE_PAGE), _MAX_HUGE_PAGES)
        if huge_pages:
            piece = huge_memory(huge_pages)
            pages = len(piece) // self._page_bytes
        else:
            pages = min(_FIRST_PIECE_PAGES << min(len(self._pieces), 16), _MAX_PIECE_PAGES)
            piece = np.zeros((pages + 1) * self._page_bytes, np.uint8)
        first = -(-piece.ctypes.data // self._page_bytes) * self._page_bytes
        self._pieces.append(piece)
        self._size_bytes += len(piece)
        self._free.extend(first + self._page_bytes * page for page in reversed(range(pages)))

    def take_many(self, count: int) -> list[int]:
        """Return the addresses of several pages."""
        taken: list[int] = []
        while len(taken) < count:
            if not self._free:
                taken.append(self.take())
            first = max(0, len(self._free) - count + len(taken))
            taken += self._free[first:]
            self._used += len(self._free) - first
            del self._free[first:]
        return taken

    def give_back(self, address: int) -> None:
        """Give back a page that `take` returned."""
        self._used -= 1
        self._free.append(address)
