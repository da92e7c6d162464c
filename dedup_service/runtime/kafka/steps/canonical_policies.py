"""What the step `canonical` does about a policy that it does not know: written by hand, or by a later twinsieve.

Deciding processes end at a rule that they cannot read, since verdicts by another one would be wrong; which page stands
for a group changes no verdict, so for them such a policy is as any other. The step would write what is wrong: a later
twinsieve takes what the topic has as chosen by the policy of the log. So it waits before such a record, and reads the
log on without applying anything until another policy is in force. That one decides for all groups; so the unknown one
is left out then, and the policy before it is in force in between.
"""

import time
from collections.abc import Iterable

from dedup_service.core.groups.canonical import POLICIES, is_known_policy
from dedup_service.core.log_records import LogRecord, Policy, PolicyRecord, offset_of
from dedup_service.core.record_columns import LogPart, RecordColumns
from dedup_service.runtime.events import Observer, ProblemEvent
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, log_parts

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
