"""The status of a service, as set by a test."""

from dataclasses import dataclass, field

from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.status import Backlog, PartitionBacklog, ServiceStatus, StepStatus


def both_steps(
    ticked_at: float = 0.0, *, assigned: tuple[int, ...] = (0, 1), backlog: Backlog | None = None
) -> ServiceStatus:
    """Return the status of a service that runs both steps, restored from 10 records."""
    steps = (
        StepStatus(
            step="fingerprint", ticked_at=ticked_at, assigned=assigned, buffered_pages=12, buffered_bytes=34_000
        ),
        StepStatus(
            step="decide",
            ticked_at=ticked_at,
            assigned=assigned,
            buffered_pages=5,
            buffered_bytes=9_000,
            waiting_outcomes=70,
            waiting_outcomes_limit=1000,
        ),
    )
    return ServiceStatus(RestoreEvent(10, 10, 0.5, done=True), steps, 2, backlog or Backlog())


def waiting(
    step: str, number: int, lag: int, stalled_s: float = 0.0, *, offset: int = 0, deleted: int = 0
) -> PartitionBacklog:
    """Return what a step has not done of partition `number`; its oldest record is 5 s older than the stall."""
    return PartitionBacklog(
        step=step,
        partition=f"pages-{number}",
        number=number,
        offset=offset,
        lag=lag,
        deleted=deleted,
        oldest_s=stalled_s + 5 if lag else 0.0,
        stalled_s=stalled_s,
    )


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
