"""Memory in huge pages, of which there are 512 times fewer for the system to provide and the processor to find.

A probe of a large table reads a few dozen random places. With pages of 4 KiB, the processor has to look up where most
of them are, in tables of the system that do not fit its caches either. numpy asks for huge pages, too, but for arrays
of 4 MB on, the first and last huge page of which are none; and arrays that come from the heap are seldom whole ones.
Where the system has no huge pages, or no free ones, this is memory like any other.
"""

import mmap

import numpy as np
import numpy.typing as npt

__all__ = ["HUGE_PAGE", "huge_memory"]

HUGE_PAGE = 1 << 21
"""Bytes of a huge page, and what such memory begins at a multiple of."""


def huge_memory(pages: int) -> tuple[npt.NDArray[np.uint8], int]:
    """Return zeroed memory of so many huge pages: what keeps it alive, and its address.

    It is provided when it is first written to, a huge page at a time. What lies around it, less than a huge page, is
    address space alone.
    """
    size = (pages + 1) * HUGE_PAGE
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        memory = np.zeros(size, np.uint8)
        return memory, _aligned(memory)
    mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory = np.frombuffer(mapped, np.uint8)
    mapped.madvise(mmap.MADV_HUGEPAGE)
    return memory, _aligned(memory)


def _aligned(memory: npt.NDArray[np.uint8]) -> int:
    address = int(memory.ctypes.data)
    return address + -address % HUGE_PAGE
