"""Where the time of a step goes, by part of its work, from one batch to the next."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["PartTimes"]


class PartTimes:
    """Seconds by part; `take` hands them out and begins anew. One thread uses it."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Count the time inside for `part`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[part] += time.perf_counter() - started

    def take(self) -> dict[str, float]:
        """Return the seconds since the last call."""
        taken, self._seconds = dict(self._seconds), defaultdict(float)
        return taken
