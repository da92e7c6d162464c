"""Limits on the work for one page: processor time, and memory beyond what its worker has.

The memory limit is `RLIMIT_DATA`, set for the time of one page to what the process has and the limit: the tables of the
worker do not count, and what earlier pages left behind does not, either. Beyond it, allocations fail. Python code then
raises MemoryError; libraries that abort instead end the worker.

Only Linux has such a limit: elsewhere (macOS) pages are limited in time alone.
"""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PAGE_TIMEOUT_S = 20.0
"""Processor seconds of a page. The slowest of 987 real pages took 2.4 s to extract."""

PAGE_MEMORY_MB = 1024
"""MiB that a page may use. A page of 9 MB of markup takes 200 MiB to extract."""

_DATA_FIELD = 5  # of /proc/self/statm: data and stack, in pages


class MemoryLimit:
    """The limit of this process. limit_mb: MiB that one page may use."""

    def __init__(self, limit_mb: int) -> None:
        self._limit_bytes = limit_mb << 20
        self._page_bytes = resource.getpagesize()
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC) if sys.platform == "linux" else None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Limit what this process may allocate meanwhile. Costs 4 µs."""
        if self._statm is None:
            yield
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        used = int(os.pread(self._statm, 128, 0).split()[_DATA_FIELD]) * self._page_bytes
        limit = used + self._limit_bytes
        allowed = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limit, *allowed) if allowed else limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
