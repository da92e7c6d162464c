"""Memory in huge pages, of which there are 512 times fewer for the system to provide and the processor to find.

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
