"""Pages of memory for tables."""

import ctypes
import mmap
import resource

import numpy as np
import pytest

from dedup_service.core.index.huge_memory import HUGE_PAGE, huge_memory
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


def test_a_large_pool_has_pages_of_its_own_that_keep_what_is_written() -> None:
    """Pages of huge pages of the system, too, begin at multiples of their size, and none is given out twice."""
    memory = MemoryPages(PAGE_BYTES)
    pages = [memory.take() for _ in range(40 * HUGE_PAGE // PAGE_BYTES)]
    assert len(set(pages)) == len(pages)
    assert not any(page % PAGE_BYTES for page in pages)
    for number, page in enumerate(pages):
        assert ctypes.c_uint64.from_address(page + PAGE_BYTES - 8).value == 0
        ctypes.c_uint64.from_address(page).value = number
    assert [ctypes.c_uint64.from_address(page).value for page in pages] == list(range(len(pages)))
    assert memory.used_bytes <= memory.size_bytes <= memory.used_bytes + 5 * HUGE_PAGE


@pytest.mark.parametrize("advice", ["refused", "unknown"])
def test_a_system_without_huge_pages_gives_memory_all_the_same(advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeroed, at the same address multiples, whether the system refuses the advice or Python does not know it."""
    if advice == "refused":
        monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 12345)
    else:
        monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    memory = huge_memory(2)
    assert len(memory) == 2 * HUGE_PAGE
    assert memory.ctypes.data % HUGE_PAGE == 0
    assert not memory.any()
    memory[:] = 1


def test_memory_that_the_system_does_not_give_is_a_memory_error() -> None:
    """As of any array: an OSError would be taken for one of a disk."""
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 33, limit[1]))
    try:
        with pytest.raises(MemoryError):
            huge_memory(1 << 13)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
