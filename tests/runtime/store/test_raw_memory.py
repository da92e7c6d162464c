"""Loops over addresses of mapped memory."""

import mmap

import numpy as np

from dedup_service.runtime.store.raw_memory import PAGE_BYTES, announce


def test_spans_in_pages_that_were_announced_need_no_call() -> None:
    """Neighbouring spans share pages of memory; a span that goes beyond them, or lies before them, needs its own."""
    with mmap.mmap(-1, 8 * PAGE_BYTES) as mapped:
        memory = np.frombuffer(mapped, np.uint8)
        start = memory.ctypes.data

        def calls(*spans: tuple[int, int]) -> int:
            addresses = np.array([start + offset for offset, _ in spans], np.uint64)
            return announce(addresses, np.array([size for _, size in spans], np.int64))

        assert calls(*((88 * row, 88) for row in range(40))) == 1
        assert calls((0, 10), (PAGE_BYTES - 10, 20), (PAGE_BYTES + 100, 10)) == 2
        assert calls((2 * PAGE_BYTES, 10), (0, 10), (2 * PAGE_BYTES + 20, 10)) == 3
        assert calls((0, 3 * PAGE_BYTES), (PAGE_BYTES, 100), (2 * PAGE_BYTES + 5, PAGE_BYTES - 5)) == 1
        assert calls() == 0
        del memory
