"""Status of the service and its steps, and the time that each part of a step takes.

A status is a snapshot for probes and metrics. Observers receive what the steps do as events
(`runtime.events`); `StepTimings` measures the `seconds` of a `BatchEvent`.
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
    """Status of one step.

    ticked_at: monotonic seconds of its last turn. assigned: its partitions of `pages`.
    """

    step: str
    ticked_at: float
    assigned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """Status of the service.

    restore: progress of the restore; None before it begins, and where the service does not decide.
    steps: those that run. expected: how many should run.
    """

    restore: RestoreEvent | None
    steps: tuple[StepStatus, ...]
    expected: int

    @property
    def ready(self) -> bool:
        """Whether every expected step runs; the deciding step starts once its state is restored."""
        return len(self.steps) == self.expected


class StepTimings:
    """Seconds by part of the work since the last `take`. Not thread-safe."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the time spent in the `with` block to `part`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[part] += time.perf_counter() - started

    def take(self) -> dict[str, float]:
        """Return the seconds of each part since the last call, and reset them."""
        taken, self._seconds = dict(self._seconds), defaultdict(float)
        return taken
