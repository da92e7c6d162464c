"""What a service tells whoever watches it: facts, after the deed, to observers that count, log and draw.

Invariant: an observer is never in the way. It is called from the step's own thread, must not wait, and what it
raises is logged and nothing more.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["BatchFact", "Observer", "Observers", "Problem", "RestoreFact", "ServiceStatus", "StepStatus"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFact:
    """A batch whose transaction was committed.

    step: fingerprint or decide. records: input records in it. seconds: by part of the work (`poll`, `prepare`,
    `decide`, `commit`, …), since the batch before. verdicts: outcomes by verdict. rejected: records that are no pages.
    repeated: input records met again. sequence: last record of the log that was decided, or appended.
    entries: kept pages in the index. lag: records not done yet by partition ("pages-0").
    """

    step: str
    records: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    repeated: int = 0
    sequence: int | None = None
    entries: int | None = None
    lag: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestoreFact:
    """How far a restore has come. records: applied so far; total: in all; seconds: since it began."""

    records: int
    total: int
    seconds: float
    done: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """What was survived. kind: a short name to count by (`transaction_lost`, `expired`, …). count: how many of them."""

    step: str
    kind: str
    text: str
    count: int = 1


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


class Observer(Protocol):
    """Whoever watches a service."""

    def batch(self, fact: BatchFact) -> None:
        """A batch was committed."""
        ...

    def restore(self, fact: RestoreFact) -> None:
        """A restore went on."""
        ...

    def problem(self, fact: Problem) -> None:
        """A problem was survived."""
        ...


class Observers:
    """Several observers as one; what one of them raises stops neither the others nor the stream."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._observers = tuple(observers)

    def batch(self, fact: BatchFact) -> None:
        """Tell all of them."""
        self._tell(lambda observer: observer.batch(fact))

    def restore(self, fact: RestoreFact) -> None:
        """Tell all of them."""
        self._tell(lambda observer: observer.restore(fact))

    def problem(self, fact: Problem) -> None:
        """Tell all of them."""
        self._tell(lambda observer: observer.problem(fact))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:
                _LOG.exception("an observer failed; the service goes on")
