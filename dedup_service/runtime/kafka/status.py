"""Where the service and its steps stand; what they do is told in `runtime.events`.

Where the time of a step goes, by part of its work, from one batch to the next.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dedup_service.runtime.events import RestoreEvent

__all__ = ["ServiceStatus", "StepStatus", "StepTimings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatus:
    """Where a step stands. ticked_at: monotonic seconds of its last turn; assigned: its partitions of `pages`."""

    step: str
    ticked_at: float
    assigned: tuple[int, ...] = ()
    restored: bool = True


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """restore: how far it has come, None before it began or where the service does not decide. steps: that run."""

    restore: RestoreEvent | None
    steps: tuple[StepStatus, ...]
    expected: int

    @property
    def ready(self) -> bool:
        """Whether every step runs and takes part in its group."""
        return len(self.steps) == self.expected and all(step.restored for step in self.steps)


class StepTimings:
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
