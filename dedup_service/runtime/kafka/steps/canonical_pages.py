"""The step `canonical`: the log → the topic `canonical`, which page stands for each group.

It is a step of its own, in a process of its own: it reads the log as any replica does, decides it again, and keeps a
table of the groups in a file (`runtime.groups.canonical_table`). So the deciding step does nothing for it, a change of
the policy or a retraction is answered from the file, and a service that does not need it does without.

The changes of some messages of the log are written in one transaction, whose messages say up to where in the log the
topic is right then; after it, the table is committed. A start reads that place from the topic. What the table does up
to there is in the topic already and is not written again; so each change is written once, whether the process was
killed before or after either commit. Of several changes of a group within a transaction, the last one is written.

While the groups are gone through after a change of the policy, the log is not read. A policy that is not known holds
the step up (see below).

Invariants: the table is never ahead of the topic by a change. One process writes at a time: all have one transactional
id, so one that starts ends the transactions of the one before, and a process that finds in the topic what it has not
written ends. What it would have written up to the same place is the same, whoever has written it. One thread uses an
instance.

What the step `canonical` does about a policy that it does not know: written by hand, or by a later twinsieve.

Deciding processes end at a rule that they cannot read, since verdicts by another one would be wrong; which page stands
for a group changes no verdict, so for them such a policy is as any other. The step would write what is wrong: a later
twinsieve takes what the topic has as chosen by the policy of the log. So it waits before such a record, and reads the
log on without applying anything until another policy is in force. That one decides for all groups; so the unknown one
is left out then, and the policy before it is in force in between.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from dedup_service.core.errors import StateError
from dedup_service.core.groups.canonical import POLICIES, is_known_policy
from dedup_service.core.log_records import LogRecord, Policy, PolicyRecord, offset_of
from dedup_service.core.record_columns import LogPart, RecordColumns
from dedup_service.runtime.embedded.database import StateDamagedError
from dedup_service.runtime.events import BatchEvent, Observer, ProblemEvent
from dedup_service.runtime.groups.canonical_table import ALL_GROUPS, CanonicalTable, TablePosition
from dedup_service.runtime.groups.log_groups import LogGroups
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.errors import BrokerError, TransactionLostError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.retry import pause_after
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.messages.canonical import canonical_message
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, log_parts, numbered
from dedup_service.runtime.kafka.state.canonical_state import CANONICAL_TABLE, RestoredGroups
from dedup_service.runtime.kafka.state.deciding_store import tail_of
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.kafka.status import StepStatus, StepTimings

_MAX_SHOWN = 100
"""Characters of a policy that is not known."""


class CanonicalPolicies:
    """Looks for the policy after one that is not known.

    step: for reports. log: its reader, which reads on while the step waits. One thread uses an instance; any reads
    `waits`.
    """

    def __init__(self, step: str, log: LogConsumer, observer: Observer) -> None:
        self._step, self._log, self._observer = step, log, observer
        self._in_force: tuple[Policy, int] | None = None
        self._known_at = -1
        self._waits: tuple[str, float] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the next record holds the step up."""
        return self._in_force is not None

    @property
    def waits(self) -> tuple[str, float]:
        """What the step waits for, "" for nothing, and for how many seconds."""
        waits = self._waits
        return ("", 0.0) if waits is None else (waits[0], time.monotonic() - waits[1])

    def hold_up(self, record: LogRecord, sequence: int, in_force: Policy | None, since: int) -> bool:
        """Return whether a record that comes next holds the step up; `look` then says when it goes on.

        in_force: the policy before it; since: sequence of its record.
        """
        if not isinstance(record, PolicyRecord) or sequence < self._known_at or record.is_void(in_force, since):
            return False
        if is_known_policy(record.policy.canonical):
            return False
        problem = (
            f"the policy of canonical pages in record {sequence} of the log (offset {offset_of(sequence)}), "
            f"{record.policy.canonical[:_MAX_SHOWN]!r}, is not known to this twinsieve, which knows {POLICIES}"
        )
        remedy = "update twinsieve, or put another one in force with `twinsieve policy set --canonical`"
        self._waits = f"{problem}: {remedy}", time.monotonic()
        self._observer.problem(ProblemEvent(self._step, "unknown_policy", f"{problem}; no page is chosen by it"))
        self._in_force = record.policy, sequence
        self._log.seek(offset_of(sequence) + 1)
        return True

    def look(self, position: int, timeout_s: float) -> None:
        """Read on to a known policy. position: offset to which the log is set back when there is one."""
        self._follow(log_parts(self._log.poll(timeout_s, MESSAGES_AT_ONCE)))
        if self._in_force is not None and is_known_policy(self._in_force[0].canonical):
            self._known_at, self._in_force, self._waits = self._in_force[1], None, None
            self._log.seek(position)

    def _follow(self, parts: Iterable[LogPart]) -> None:
        """Note which policy is in force after parts of the log."""
        for part in parts:
            if isinstance(part, RecordColumns):
                continue
            sequence, record = part
            if isinstance(record, PolicyRecord) and self._in_force and not record.is_void(*self._in_force):
                self._in_force = record.policy, sequence


CANONICAL = "canonical"

_CHANGES_AT_ONCE = 4096
"""Groups that may have changed, after which a transaction is written: each is a message."""

_GROUPS_AT_ONCE = 512
_IDLE_S = 0.25


class CanonicalStep:
    """The step; runs in one thread.

    topic: what it writes to. restored: where it goes on. written: up to where in the log the topic is right; `look`
    asks the topic for that again. log: its reader, at that place; the step closes it. producer: open.
    """

    def __init__(
        self,
        topic: str,
        local: LocalState,
        restored: RestoredGroups,
        written: TablePosition,
        look: Callable[[], TablePosition],
        log: LogConsumer,
        producer: TransactionalProducer,
        observer: Observer,
    ) -> None:
        self._topic, self._local, self._observer = topic, local, observer
        self._table, self._replica = restored.table, restored.replica
        self._groups = LogGroups(restored.replica, restored.table)
        self._written, self._look = written, look
        self._log, self._producer = log, producer
        self._policies = CanonicalPolicies(CANONICAL, log, observer)
        self._messages: deque[ConsumerRecord] = deque()
        self._tail = ""
        self._records = 0
        self._timings = StepTimings()
        self.ticked_at = time.monotonic()

    @property
    def status(self) -> StepStatus:
        """Return the status of the step, as of its last turn; may be called from any thread."""
        waits_for, waits_s = self._policies.waits
        return StepStatus(step=CANONICAL, ticked_at=self.ticked_at, assigned=(0,), waits_for=waits_for, waits_s=waits_s)

    def run(self, stop: threading.Event, drain_until: Callable[[], float] = time.monotonic) -> None:
        """Run the step's loop until `stop` is set. Raises what ends the step; nothing is lost then."""
        del drain_until  # what is not written now is written after the next start
        try:
            with self._local.pages.in_use():
                while not stop.is_set():
                    self.turn(stop)
                self._take_snapshot()
        except StateDamagedError as error:
            self._table.close()
            CanonicalTable.delete(self._local.folder / CANONICAL_TABLE)
            raise StateDamagedError(f"{error}; it was deleted: start again, and it is built from the log") from error
        finally:
            self._table.close()
            self._producer.close()
            self._log.close()

    def turn(self, stop: threading.Event) -> int:
        """Apply some messages of the log, or go through some groups, and write what changed; return how many did."""
        self.ticked_at = time.monotonic()
        policy = self._table.policy  # a batch ends with a change of it
        if self._table.is_sweeping:
            with self._timings.timed("decide"):
                position = self._sweep()
        elif self._policies.is_waiting:
            self._messages.clear()
            self._policies.look(self._table.position.offset, _IDLE_S)
            return 0
        else:
            with self._timings.timed("read_log"):
                if not self._messages:
                    self._messages += self._log.poll(_IDLE_S, MESSAGES_AT_ONCE)
            if not self._messages:
                return 0
            with self._timings.timed("decide"):
                position = self._apply()
        return self._finish(position, policy, stop)

    def _sweep(self) -> TablePosition:
        """Go through the next groups after a change of the policy; those that the topic has are not written again."""
        table, written = self._table, self._written
        is_written = written.offset == table.position.offset and written.swept > table.position.swept
        table.sweep(_GROUPS_AT_ONCE, up_to=written.swept if is_written else ALL_GROUPS)
        return table.position

    def _apply(self) -> TablePosition:
        """Apply messages up to a change of the policy, to where the topic is right, or until enough groups changed."""
        table = self._table
        done = table.position
        while True:
            message = self._messages[0]
            records = numbered([message])
            if self._holds_up(records):
                return done
            self._messages.popleft()
            table.at_ms, table.host_text = message.timestamp, self._replica.host_text()
            self._groups.take([(message.timestamp, *pair) for pair in records])
            self._tail = tail_of(message.value)
            self._records += len(records)
            policy = self._replica.policy
            if policy is not None and is_known_policy(policy.canonical):
                table.set_policy(policy.canonical)
            done = TablePosition(message.offset + 1, table.position.swept)
            is_written = done.offset == self._written.offset
            if is_written or table.is_sweeping or not self._messages or table.pending >= _CHANGES_AT_ONCE:
                return done

    def _holds_up(self, records: Sequence[tuple[int, LogRecord]]) -> bool:
        """Return whether the records of a message have a policy for which the step has to wait."""
        policy, since = self._replica.policy, self._replica.policy_sequence
        return any(self._policies.hold_up(record, sequence, policy, since) for sequence, record in records)

    def _finish(self, position: TablePosition, policy: str, stop: threading.Event) -> int:
        """Write what changed up to `position`, unless the topic has it, and commit the table. policy: by which."""
        changes = self._table.drain()
        sent: TablePosition | None = None
        if changes and position > self._written:
            messages = [canonical_message(self._topic, change, policy, position) for change in changes]
            with self._timings.timed("commit"):
                if not self._write(messages, position, stop):
                    return 0
            sent = position
        with self._timings.timed("snapshot"):
            self._table.commit(position, sent)
        self._maintain_state(len(changes) if sent is not None else 0)
        return len(changes)

    def _write(self, messages: list[Message], position: TablePosition, stop: threading.Event) -> bool:
        """Write messages in one transaction; return False if `stop` was set before it was known to be committed."""
        failures = 0
        while True:
            self.ticked_at = time.monotonic()
            try:
                if failures:
                    found = self._look()
                    if found == position:
                        break
                    self._require_own(found)
                self._producer.commit(messages)
                break
            except (TransactionLostError, BrokerError) as error:
                if not error.retryable:
                    raise
                failures += 1
                self._observer.problem(ProblemEvent(CANONICAL, "transaction_lost", str(error)))
                if pause_after(failures, stop):
                    return False
        self._written = position
        return True

    def _require_own(self, found: TablePosition) -> None:
        """Raise StateError if the topic has what this process did not write, or has not what it wrote."""
        if found < self._written:
            raise StateError(
                f"{self._topic} was made again, or has lost messages: start again, and it is filled from the log"
            )
        if found != self._written:
            raise StateError(
                f"another process writes to {self._topic}: it is right up to offset {found.offset} of the log, this "
                f"process has written up to {self._written.offset}; run one `serve --steps canonical` for a log"
            )

    def _maintain_state(self, written: int) -> None:
        """Take a snapshot if one is due, and report. Raises StoreFullError if the disk does not take the state."""
        records, self._records = self._records, 0
        pages = self._local.pages
        pages.note_applied(records)
        self._local.step()
        if pages.due:
            self._take_snapshot()
        if records or written:
            self._observer.batch(
                BatchEvent(
                    step=CANONICAL,
                    records=records,
                    seconds=self._timings.take(),
                    sequence=self._replica.sequence,
                    entries=len(self._replica),
                )
            )

    def _take_snapshot(self) -> None:
        """Note the state of the replica; the table is committed, and is there or further."""
        if self._tail and self._table.is_committed:
            with self._timings.timed("snapshot"):
                self._table.flush()
                self._local.take_snapshot(self._replica, PendingOutcomes(), self._tail)
