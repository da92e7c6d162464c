"""Restore the deciding state at the committed end of the log: from a usable snapshot and the log after it.

Invariants: the state equals that of a replica that read the whole log. A damaged snapshot, or one whose last
record differs from the log's, is ignored with a warning; so is one whose damage shows only as the log after it is
applied: the restore then begins again, from the log alone. A snapshot of another log, or one ahead of the log,
means that the topic or the folder is wrong: the restore raises, and the service does not start until a
person has looked at it.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import PageRecord, offset_of
from dedup_service.runtime.embedded.database import ForeignStateError
from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.messages.log_head import read_head
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, log_parts, numbered, records_in
from dedup_service.runtime.kafka.state.deciding_state import pending_outcomes_of
from dedup_service.runtime.kafka.state.deciding_store import StoredSnapshot, tail_of
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.mounted_bases import MountedBases
from dedup_service.runtime.kafka.state.page_names import PageNameReader
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.memory_limit import ProcessMemoryLimit

_STEP_RECORDS = 500  # as often as while the log is followed
_WAIT_S = 0.5
_LAST_WAIT_S = 5.0
_REPORT_S = 0.2
_PATIENCE_S = 30.0
"""How long a log may look shorter than the snapshot: a new leader learns its end from followers."""


@dataclass(frozen=True, slots=True, eq=False)
class RestoredReplica:
    """A replica and its pending outcomes at a position of the log.

    position: offset of the log at which to continue. tail: `tail_of` the last record applied, "" before any.
    end: where the log ended when the restore began; above `position` if the restore ended early.
    """

    replica: Replica
    pending_outcomes: PendingOutcomes
    position: int
    tail: str
    end: int


def restore(
    local: LocalState,
    log: LogConsumer,
    written: Mapping[tuple[str, int], int],
    *,
    progress: Callable[[RestoreEvent], None] | None = None,
    stop: threading.Event | None = None,
    max_waiting: int | None = None,
    pages: str | None = None,
    memory: ProcessMemoryLimit | None = None,
    bases: MountedBases | None = None,
) -> RestoredReplica | None:
    """Return the state at the current committed end of `log`; None if `stop` was set first.

    written: (topic, partition) → offset below which all outputs are written; their outcomes are not pending.
    pages: the topic whose outcomes are pending, None for any.
    max_waiting: number of pending outcomes at which the restore ends early, so that memory stays bounded if
    nothing was ever written; reading on from `position` is then equivalent to restoring.
    memory: limit on this process; MemoryLimitError if the tables of the snapshot do not fit, or if memory is used up
    and the log keeps all pages. bases: of the log.
    Raises ForeignStateError if the folder belongs to another log, StateError if the log is shorter than the
    snapshot or has an unreadable record, and what the log raises.
    """
    stop = stop or threading.Event()
    end, identity = log.end(), _identity(log)
    stored = usable_snapshot(local, log, end, identity, stop)
    if stored is not None:
        refuse_part(stored, local)
    if stop.is_set():
        return None
    if memory is not None and stored is not None and stored.sizes is not None:
        memory.admit(stored.sizes.memory, stored.sizes.live)
    if memory is not None and stored is None and bases is not None:
        bases.admit(memory)

    def restored(usable: StoredSnapshot | None) -> RestoredReplica | None:
        run = _Run(local, log, usable, identity or "", written, stop, pages, memory, bases)
        return run.apply_up_to(max(end, run.start), progress, max_waiting)

    return local.pages.go_on(stored, restored)


def replica_of(
    local: LocalState,
    log: LogConsumer,
    log_id: str,
    stored: StoredSnapshot | None,
    stop: threading.Event,
    bases: MountedBases | None,
) -> Replica:
    """Return the replica that a snapshot has, one before the first record for None."""
    local.pages.begin(stored, bases=bases)
    replica = Replica(
        local.names if bases is None else bases.names(local.names),
        state=None if stored is None else stored.state.replica,
        entries=local.pages.entries,
        bases=None if bases is None else bases.begun,
    )
    sequence = -1 if stored is None else stored.sequence
    local.names.begin(log_id, sequence, page_name_reader(log, stop, replica.holds))
    return replica


class _Run:
    """A restore in progress."""

    def __init__(
        self,
        local: LocalState,
        log: LogConsumer,
        stored: StoredSnapshot | None,
        log_id: str,
        written: Mapping[tuple[str, int], int],
        stop: threading.Event,
        pages: str | None,
        memory: ProcessMemoryLimit | None,
        bases: MountedBases | None,
    ) -> None:
        self._stop = stop
        self._memory = memory
        self._local = local
        self._log = log
        self.start = max(log.first, offset_of(-1 if stored is None else stored.sequence) + 1)
        self._replica = replica_of(local, log, log_id, stored, stop, bases)
        self._outcomes = PendingOutcomes(topic=pages) if stored is None else pending_outcomes_of(stored.state, pages)
        self._tail = "" if stored is None else stored.tail
        for (topic, partition), offset in written.items():
            self._outcomes.written_below(topic, partition, offset)

    def apply_up_to(
        self,
        end: int,
        progress: Callable[[RestoreEvent], None] | None,
        max_waiting: int | None,
    ) -> RestoredReplica | None:
        """Apply the log up to `end`."""
        log, started, last_report = self._log, time.monotonic(), 0.0
        log.seek(self.start)
        batches = log.read_to_end(max_records=MESSAGES_AT_ONCE, end=end)
        while log.position < end:
            if self._stop.is_set():
                return None
            if max_waiting is not None and len(self._outcomes) >= max_waiting:
                break
            self._apply(next(batches))
            now = time.monotonic()
            if progress is not None and now - last_report >= _REPORT_S:
                last_report = now
                progress(RestoreEvent(min(log.position, end) - self.start, end - self.start, now - started))
        if progress is not None:
            done, seconds, counts = log.position - self.start, time.monotonic() - started, dict(self._replica.counts)
            progress(RestoreEvent(done, end - self.start, seconds, done=True, counts=counts))
        return RestoredReplica(self._replica, self._outcomes, log.position, self._tail, end)

    def _apply(self, messages: list[Any]) -> None:
        if not messages:
            return
        parts = log_parts(messages)
        for outcome in self._replica.apply_parts(parts, self._outcomes.wanted):
            self._outcomes.add(outcome)
        records = records_in(parts)
        self._tail = tail_of(messages[-1].value)
        self._local.pages.note_applied(records)
        for _ in range(0, records, _STEP_RECORDS):
            self._local.pages.step()
        if self._local.pages.due:
            self._local.take_snapshot(self._replica, self._outcomes, self._tail)
        policy = self._replica.policy
        if self._memory is not None and policy is not None and not policy.keep:
            self._memory.step(records, len(self._replica), policy.keep, self._held_bytes)

    def _held_bytes(self) -> int:
        sizes = self._replica.sizes()
        return 0 if sizes is None else sum(sizes.memory.values())


def _identity(log: LogConsumer) -> str | None:
    """Return the identity of the log from its first policy, None if it has none yet."""
    first = read_head(log).policy
    return None if first is None else first.log


def refuse_part(stored: StoredSnapshot, local: LocalState) -> None:
    """Raise ForeignStateError for the state of a shard or of a resolver, which does not have all entries."""
    if stored.state.replica.decider.candidates:
        raise ForeignStateError(
            f"{local.folder} has the state of a shard or of a resolver: start it with the same --steps, or give "
            "another folder"
        )


def usable_snapshot(
    local: LocalState, log: LogConsumer, end: int, identity: str | None, stop: threading.Event
) -> StoredSnapshot | None:
    """Return the snapshot if its last record is in the log; None, with a warning, if it is to be ignored."""
    stored = local.pages.stored()
    if stored is None:
        return None
    offset = offset_of(stored.sequence)
    if identity is not None and stored.log != identity:
        raise ForeignStateError(
            f"{local.folder} has a snapshot of log {stored.log}, the topic holds log {identity}: use the "
            "--state, --prefix and --bootstrap that belong together; if the topic was recreated on purpose, delete "
            f"{local.pages.folder}"
        )
    if not _wait_until_past(log, offset, end, stop):
        raise StateError(
            f"{local.folder} has a snapshot at {offset}, the log ends at {log.end()}: the topic lost records or was "
            f"recreated; restore the topic, or, if this is on purpose, delete {local.pages.folder}"
        )
    last = log.read_one(offset)
    if last is None or last.offset != offset or tail_of(last.value) != stored.tail:
        local.pages.ignore(f"the log has another message at its offset {offset}")
        return None
    return stored


def _wait_until_past(log: LogConsumer, offset: int, end: int, stop: threading.Event) -> bool:
    """Wait until the log ends after `offset`; False if it does not within `_PATIENCE_S`."""
    deadline = time.monotonic() + _PATIENCE_S
    while end <= offset and not stop.is_set():
        if time.monotonic() >= deadline:
            return False
        stop.wait(_WAIT_S)
        end = log.end()
    return True


def page_name_reader(log: LogConsumer, stop: threading.Event, holds: Callable[[int], bool]) -> PageNameReader:
    """Return a reader of names that waits for unavailable brokers: no decision is left incomplete.

    holds: whether a page has an entry; names of others, which may be erased, are not read again.
    """

    def names(sequence: int) -> dict[int, tuple[str, str]]:
        position, began = log.position, time.monotonic()
        log.seek(offset_of(sequence))
        try:
            while not (messages := log.poll(_WAIT_S, 1)):
                if stop.is_set() and time.monotonic() - began >= _LAST_WAIT_S:
                    raise UnreachableError(
                        f"the log did not return its record at {sequence}; start again when the brokers can be reached"
                    )
        finally:
            log.seek(position)
        found = dict(_names_of(messages))
        if sequence not in found:
            raise StateError(
                f"the log has no page at {sequence}, where the replica has a kept page: the topic lost records; "
                "restore it"
            )
        return {at: name for at, name in found.items() if at == sequence or holds(at)}

    return names


def _names_of(messages: list[Any]) -> Iterator[tuple[int, tuple[str, str]]]:
    for sequence, record in numbered(messages):
        if isinstance(record, PageRecord):
            yield sequence, (record.prepared.page.id, record.prepared.page.url)
