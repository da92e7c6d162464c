"""The status of a service, as set by a test."""

from dataclasses import dataclass, field

from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.status import ServiceStatus, StepStatus

__all__ = ["FakeStatus", "both_steps"]


def both_steps(ticked_at: float = 0.0, *, assigned: tuple[int, ...] = (0, 1)) -> ServiceStatus:
    """Return the status of a service that runs both steps, restored from 10 records."""
    steps = tuple(StepStatus(step=name, ticked_at=ticked_at, assigned=assigned) for name in ("fingerprint", "decide"))
    return ServiceStatus(RestoreEvent(10, 10, 0.5, done=True), steps, 2)


@dataclass
class FakeStatus:
    """A service's `status` function; the test sets what it returns."""

    status: ServiceStatus = field(default_factory=lambda: ServiceStatus(None, (), 2))
    now: float = 0.0

    def __call__(self) -> ServiceStatus:
        return self.status

    def clock(self) -> float:
        """Return the test's time."""
        return self.now
