"""Pages of memory for tables."""

import ctypes

import numpy as np

from dedup_service.core.index.memory_pages import MemoryPages

PAGE_BYTES = 4096


def test_a_new_page_has_zeros() -> None:
    """Nothing that the process had in that memory before: images of tables are written to the disk page by page."""
    for pages in (4, 8, 16, 32):
        used = [np.full(pages * PAGE_BYTES, 0x5A, np.uint8) for _ in range(20)]
        del used
        memory = MemoryPages(PAGE_BYTES)
        for _ in range(2 * pages):
            assert not any(ctypes.string_at(memory.take(), PAGE_BYTES))
