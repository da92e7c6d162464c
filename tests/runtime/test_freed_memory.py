"""What a process frees goes back to the system: in a process of its own, since it is changed for good."""

import subprocess
import sys
from pathlib import Path

import pytest

from dedup_service.runtime.memory_limit import process_memory

MB = 1 << 20


def kept_after_frees(settings: str) -> int:
    """Bytes that a process keeps of 64 MB, which a thread frees between objects that stay."""
    program = f"""
import threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from dedup_service.runtime.freed_memory import keep_little_freed_memory, return_freed_memory
from dedup_service.runtime.memory_limit import process_memory
{settings}
def work():
    for size in (2, 4, 8, 16):
        np.ones(size << 20, np.uint8)
    arrays = [(np.ones(8 << 20, np.uint8), np.ones(5000, np.uint8)) for _ in range(8)]
    return [small for _, small in arrays]
with ThreadPoolExecutor(1) as threads:
    threads.submit(np.ones, 10).result()
    before = process_memory()
    small = threads.submit(work).result()
    print(process_memory() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_large_arrays_go_back_at_once() -> None:
    """However large the arrays were that were freed before, and in whatever thread."""
    assert process_memory() > 0
    assert kept_after_frees("keep_little_freed_memory()") < 8 * MB


def test_what_is_imported_is_collected_no_more() -> None:
    """Once: what comes later is looked at as before, whoever asks again."""
    program = """
import gc
from dedup_service.runtime.freed_memory import leave_out_of_collections
leave_out_of_collections()
frozen = gc.get_freeze_count()
later = [[] for _ in range(1000)]
leave_out_of_collections()
print(frozen > 1000, gc.get_freeze_count() <= frozen)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
