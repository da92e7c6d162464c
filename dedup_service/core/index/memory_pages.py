"""Memory in pages of one size, addressed directly by kernels: tables grow without copying what they have.

A numpy array grows by a copy, which takes a second for some gigabytes; here a table takes one more page. Pages
are cut from larger pieces, which double in size up to `_MAX_PIECE_PAGES` pages, so that a small table is small
and the memory of a large one is at most one piece more than its pages. A page that is given back is used for
the next request; memory is not returned to the system before the pool is dropped.

Once a pool is so large that a huge page of the system is a small part of it, its pieces consist of such
(`huge_memory`).

Invariants: pages begin at multiples of their size; addresses are valid as long as the pool lives. Whoever passes
them to a kernel keeps the pool alive.

Memory in huge pages, of which there are 512 times fewer for the system to provide and the processor to find.

A probe of a large table reads a few dozen random places. With pages of 4 KiB, the processor has to look up where most
of them are, in tables of the system that do not fit its caches either. numpy asks for huge pages, too, but for arrays
of 4 MB on, the first and last huge page of which are none; and arrays that come from the heap are seldom whole ones.
Where the system has no huge pages, or no free ones, this is memory like any other.
"""

import mmap
from contextlib import suppress

import numpy as np
import numpy.typing as npt

HUGE_PAGE = 1 << 21
"""Bytes of a huge page, and what such memory begins at a multiple of."""


def huge_memory(pages: int) -> npt.NDArray[np.uint8]:
    """Return zeroed memory of so many huge pages: uint8[pages * HUGE_PAGE], whose address is a multiple of HUGE_PAGE.

    It is provided when it is first written to, a huge page at a time. What lies around it, less than a huge page, is
    address space alone. MemoryError if there is none.
    """
    size = pages * HUGE_PAGE
    mapped = _mapped(size + HUGE_PAGE) if hasattr(mmap, "MADV_HUGEPAGE") else None
    memory = np.zeros(size + HUGE_PAGE, np.uint8) if mapped is None else np.frombuffer(mapped, np.uint8)
    first = -memory.ctypes.data % HUGE_PAGE
    return memory[first : first + size]


def _mapped(size: int) -> mmap.mmap | None:
    """Return memory of so many bytes for which huge pages are wanted; None if the system maps no more for a process."""
    try:
        mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:  # numpy may still have some, and raises MemoryError, not what stands for a disk or a broker
        return None
    with suppress(OSError):  # of a system that was built without huge pages
        mapped.madvise(mmap.MADV_HUGEPAGE)
    return mapped


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
