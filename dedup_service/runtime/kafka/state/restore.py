"""From the log to the state at its committed end: the snapshot, where a good one is there, and the log after it.

Invariants: the state is that of a replica that read the whole log. A snapshot that is damaged, or whose last record
the log has otherwise, is left out with a warning; one of another log, or one that is ahead of the log, says that
something is wrong with the topic or the folder, and nothing starts until a person has looked.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import PageRecord, PolicyRecord
from dedup_service.runtime.embedded.database import ForeignStateError
from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.messages.log_record import decode
from dedup_service.runtime.kafka.state.local_state import LocalState, Stored, outcomes_of, tail_of
from dedup_service.runtime.kafka.state.page_names import PageNameReader
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes

__all__ = ["LogSource", "RestoredReplica", "restore"]

_AT_ONCE = 2000
_WAIT_S = 0.5
_LAST_WAIT_S = 5.0
_REPORT_S = 0.2
_PATIENCE_S = 30.0
"""How long a log may look shorter than the snapshot: a new leader learns the committed end from its followers."""


class LogSource(Protocol):
    """The log as it is read: committed records in order, each with `.offset` and `.value`."""

    def seek(self, offset: int) -> None:
        """Go on from `offset`."""
        ...

    @property
    def position(self) -> int:
        """Offset of the next record to be read."""
        ...

    def poll(self, timeout_s: float, max_records: int) -> list[Any]:
        """The next records in order; [] where there are none yet."""
        ...

    def read_to_end(self, *, max_records: int, end: int) -> Iterator[list[Any]]:
        """The records from the position to `end`, in batches; an empty one where there are none yet."""
        ...

    def end(self) -> int:
        """The offset after the last committed record."""
        ...

    def read_one(self, offset: int) -> Any | None:
        """The first committed record at or after `offset`, or None; the position stays."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RestoredReplica:
    """A state at its place in the log.

    position: offset of the log from which to read on. tail: `tail_of` the last record applied, "" before any.
    """

    replica: Replica
    outcomes: PendingOutcomes
    position: int
    tail: str


def restore(
    local: LocalState,
    log: LogSource,
    written: Mapping[tuple[str, int], int],
    *,
    shards: int = 1,
    progress: Callable[[RestoreEvent], None] | None = None,
    stop: threading.Event | None = None,
    max_waiting: int | None = None,
    pages: str | None = None,
) -> RestoredReplica | None:
    """Return the state at the committed end of `log`, as it is now; None where `stop` was set first.

    written: (topic, partition) → offset that the deciding group has committed; outcomes below it need not wait.
    pages: the topic whose outcomes wait, None for any.
    most_waiting: outcomes, above which the restore ends early, so that memory stays bounded where nothing was ever
    written; reading on from `position` is then the same as restoring.
    Raises ForeignStateError where the folder is of another log, StateError where the log is shorter than the snapshot
    or holds what cannot be read, and what the log raises.
    """
    stop = stop or threading.Event()
    end, identity = log.end(), _identity(log)
    stored = _usable(local, log, end, identity, stop)
    if stop.is_set():
        return None
    run = _Run(local, log, stored, identity, written, shards, stop, pages)
    return run.to(max(end, run.start), progress, max_waiting)


class _Run:
    """One restore under way."""

    def __init__(
        self,
        local: LocalState,
        log: LogSource,
        stored: Stored | None,
        identity: str | None,
        written: Mapping[tuple[str, int], int],
        shards: int,
        stop: threading.Event,
        pages: str | None,
    ) -> None:
        self._stop = stop
        self._local = local
        self._log = log
        sequence = -1 if stored is None else stored.label.sequence
        self.start = sequence + 1
        local.names.begin(identity or "", sequence, _names_in(log, stop))
        local.snapshots.begin(sequence)
        if stored is None:
            self._replica, self._outcomes = Replica(local.names, shards=shards), PendingOutcomes(topic=pages)
        else:
            self._replica = Replica(local.names, shards=shards, rows=stored.rows, memory=stored.memory.replica)
            self._outcomes = outcomes_of(stored.memory, pages)
        self._tail = "" if stored is None else stored.label.tail
        for (topic, partition), offset in written.items():
            self._outcomes.written_below(topic, partition, offset)

    def to(
        self,
        end: int,
        progress: Callable[[RestoreEvent], None] | None,
        max_waiting: int | None,
    ) -> RestoredReplica | None:
        """Apply the log up to `end`."""
        log, began, told = self._log, time.monotonic(), 0.0
        log.seek(self.start)
        batches = log.read_to_end(max_records=_AT_ONCE, end=end)
        while log.position < end:
            if self._stop.is_set():
                return None
            if max_waiting is not None and len(self._outcomes) >= max_waiting:
                break
            self._apply(next(batches))
            now = time.monotonic()
            if progress is not None and now - told >= _REPORT_S:
                told = now
                progress(RestoreEvent(min(log.position, end) - self.start, end - self.start, now - began))
        if progress is not None:
            progress(RestoreEvent(log.position - self.start, end - self.start, time.monotonic() - began, done=True))
        return RestoredReplica(self._replica, self._outcomes, log.position, self._tail)

    def _apply(self, records: list[Any]) -> None:
        if not records:
            return
        read = [(record.offset, decode(record.value or b"")) for record in records]
        for outcome in self._replica.apply_many(read):
            if outcome is not None:
                self._outcomes.add(outcome)
        self._tail = tail_of(records[-1].value)
        if self._local.snapshot_due(self._replica.sequence, len(self._replica)):
            self._local.take_snapshot(self._replica, self._outcomes, self._tail)


def _identity(log: LogSource) -> str | None:
    """Return the identity that the log's first record gives it, None where it has no record yet."""
    first = log.read_one(0)
    record = None if first is None else decode(first.value or b"")
    return record.log if isinstance(record, PolicyRecord) else None


def _usable(local: LocalState, log: LogSource, end: int, identity: str | None, stop: threading.Event) -> Stored | None:
    """Return the snapshot, if it is one of this log as it is."""
    stored = local.snapshots.load()
    if stored is None:
        return None
    sequence = stored.label.sequence
    if identity is not None and stored.label.journal != identity:
        raise ForeignStateError(
            f"{local.folder} has a snapshot of log {stored.label.journal}, the topic holds log {identity}: give the "
            "--state, --prefix and --bootstrap that belong together; where the topic was made anew on purpose, "
            f"delete {local.snapshots.path}"
        )
    if not _reaches(log, sequence, end, stop):
        raise StateError(
            f"{local.folder} has a snapshot at {sequence}, the log ends at {log.end()}: the topic lost records or was "
            f"made anew; bring the log back, or, where that is on purpose, delete {local.snapshots.path}"
        )
    last = log.read_one(sequence)
    if last is None or last.offset != sequence or tail_of(last.value) != stored.label.tail:
        local.snapshots.ignore(f"the log has another record at its sequence {sequence}")
        return None
    return stored


def _reaches(log: LogSource, sequence: int, end: int, stop: threading.Event) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while end <= sequence and not stop.is_set():
        if time.monotonic() >= deadline:
            return False
        stop.wait(_WAIT_S)
        end = log.end()
    return True


def _names_in(log: LogSource, stop: threading.Event) -> PageNameReader:
    """Return a reader of names that waits for brokers that are away: a decision cannot be left half made."""

    def names(sequence: int) -> dict[int, tuple[str, str]]:
        position, began = log.position, time.monotonic()
        log.seek(sequence)
        try:
            while not (records := log.poll(_WAIT_S, _AT_ONCE)):
                if stop.is_set() and time.monotonic() - began >= _LAST_WAIT_S:
                    raise UnreachableError(f"the log does not give its record at {sequence}; start again when it does")
        finally:
            log.seek(position)
        if records[0].offset != sequence:
            raise StateError(
                f"the log has no page at {sequence}, where a kept one stood: it lost records; bring it back"
            )
        return dict(_names_of(records))

    return names


def _names_of(records: list[Any]) -> Iterator[tuple[int, tuple[str, str]]]:
    for record in records:
        read = decode(record.value or b"")
        if isinstance(read, PageRecord):
            yield record.offset, (read.prepared.page.id, read.prepared.page.url)
