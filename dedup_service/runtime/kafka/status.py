"""Status of the service and its steps, its backlog, and the time that each part of a step takes.

A status is a snapshot for probes and metrics. A step reports what it holds; the backlog is measured from outside
(`monitor`), because a step that is stuck reports nothing new. Observers receive what the steps do as events
(`runtime.events`); `StepTimings` measures the `seconds` of a `BatchEvent`.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dedup_service.runtime.events import RestoreEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatus:
    """Status of one step.

    ticked_at: monotonic seconds of its last turn. assigned: its partitions of `pages`. buffered_pages,
    buffered_bytes: records of `pages` that it has read and not committed, as of its last turn. waiting_outcomes:
    outcomes from the log that are not written yet, here or elsewhere; None for a step that has none.
    waiting_outcomes_limit: how many there may be. waits_for: of a step that is held up by another process, what it
    waits for, by name, "" for nothing; waits_s: for how long.
    """

    step: str
    ticked_at: float
    assigned: tuple[int, ...] = ()
    buffered_pages: int = 0
    buffered_bytes: int = 0
    waiting_outcomes: int | None = None
    waiting_outcomes_limit: int | None = None
    waits_for: str = ""
    waits_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBacklog:
    """What one step has not done yet of one partition of `pages`.

    step: `fingerprint` or `decide`. partition: as in metrics, `pages-3`. number: 3. offset: the step has done what is
    below. lag: offsets from the oldest record that waits to the end; 0 if none waits. deleted: offsets that
    retention deleted before the step passed them. oldest_s: how long the oldest one has waited. stalled_s: how long
    records have waited and none was done, as far as was watched. blocked: what waits is in or behind an open
    transaction.
    """

    step: str
    partition: str
    number: int
    offset: int
    lag: int
    deleted: int = 0
    oldest_s: float = 0.0
    stalled_s: float = 0.0
    blocked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingTransaction:
    """A transaction that stays open on a partition of a topic that the steps read: they read nothing behind it.

    offset: of its first record there. since_ms: when its producer last wrote there, Unix milliseconds.
    transactional_id, state: as its coordinator says (`Ongoing`, `PrepareCommit`, …), "unknown" if none knows it, or
    says so to this user.
    """

    topic: str
    partition: int
    offset: int
    since_ms: int
    producer_id: int
    transactional_id: str
    state: str

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        return (
            f"{self.topic}-{self.partition} cannot be read from offset {self.offset} on: a transaction of "
            f"{self.transactional_id} (producer id {self.producer_id}, state {self.state}) is open there since {since}"
        )


@dataclass(frozen=True, slots=True)
class Member:
    """A process that takes part in a step, by its name in the group, and its partitions of `pages`."""

    step: str
    name: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What the steps have not done yet of all partitions of `pages`, whichever process has them, at one moment.

    measured_at: monotonic seconds of that moment; before the first measurement, when measuring began; None if it has
    not begun. problem: why it could not be measured since, "" if it could. transactions: those that keep the steps, or
    the measurement, from reading on. members: as Kafka knew them up to half a minute before.
    """

    partitions: tuple[PartitionBacklog, ...] = ()
    measured_at: float | None = None
    problem: str = ""
    transactions: tuple[BlockingTransaction, ...] = ()
    members: tuple[Member, ...] = ()

    def lag(self, step: str) -> dict[str, int]:
        """Return the lag of `step` by partition."""
        return {row.partition: row.lag for row in self.partitions if row.step == step}


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """Status of the service.

    restore: progress of the restore; None before it begins, and where the service does not decide.
    steps: those that run. expected: how many should run. backlog: of the whole service, as last measured. waits_for:
    what somebody has to put right before it can start, "" for nothing. start: how far it is with what comes before the
    restore, and when that was last told, in monotonic seconds.
    """

    restore: RestoreEvent | None
    steps: tuple[StepStatus, ...]
    expected: int
    backlog: Backlog = field(default_factory=Backlog)
    waits_for: str = ""
    start: tuple[str, float] = ("starting", 0.0)

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

    def add(self, part: str, seconds: float) -> None:
        """Add time that was measured elsewhere."""
        self._seconds[part] += seconds

    def take(self) -> dict[str, float]:
        """Return the seconds of each part since the last call, and reset them."""
        taken, self._seconds = dict(self._seconds), defaultdict(float)
        return taken
