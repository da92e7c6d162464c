"""Where the service and its steps stand; what they do is told in `runtime.facts`."""

from dataclasses import dataclass

from dedup_service.runtime.facts import RestoreFact

__all__ = ["ServiceStatus", "StepStatus"]


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

    restore: RestoreFact | None
    steps: tuple[StepStatus, ...]
    expected: int

    @property
    def ready(self) -> bool:
        """Whether every step runs and takes part in its group."""
        return len(self.steps) == self.expected and all(step.restored for step in self.steps)
