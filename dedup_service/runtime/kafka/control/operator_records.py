"""Records that operators add to a log (policies, retractions, corrections), and its first policy.

The first record of a log is a policy, appended by the first service that starts on the empty log. Several
may try: the first record wins, and the other initial ones are void (`initial`). It also fixes the log's
identity and space. Later records apply from their place in the log on, so every process and every replay
applies them at the same place.
Invariant: nothing is added to an empty log except that first policy.
"""

import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from dedup_service.core.errors import StateError
from dedup_service.core.log_records import CorrectionRecord, LogRecord, Policy, PolicyRecord, RetractionRecord
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.embedded.corrections import Correction, with_force
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, Progress
from dedup_service.runtime.kafka.client.producers import append
from dedup_service.runtime.kafka.messages.log_record import decode, log_message
from dedup_service.runtime.kafka.topics import Topics, require_log

__all__ = [
    "ForeignLogError",
    "LogBinding",
    "PolicyDiffersError",
    "PolicyInForce",
    "RequestedPolicy",
    "add_records",
    "append_policy",
    "change_policy",
    "check_policy",
    "correction_of",
    "corrections_in",
    "first_policy",
    "policy_in_force",
    "require_begun",
]


BY = "twinsieve.by"
"""Header of a record: who added it."""


class ForeignLogError(StateError):
    """The log is of another space, or not a log.

    Use the options that it was begun with, or another --prefix.
    """


class PolicyDiffersError(StateError):
    """The policy in force is not the requested one.

    Leave the options out, or change the log with `policy set`.
    """


@dataclass(frozen=True, slots=True)
class RequestedPolicy:
    """The policy that a service was started with; None if it uses that of the log."""

    space_id: str
    rule: MatchRule | None = None
    action: Action | None = None

    @property
    def policy(self) -> Policy:
        """The policy that an empty log gets."""
        return Policy(self.rule or rule_for(), self.action or Action.FLAG, self.space_id)


@dataclass(frozen=True, slots=True)
class LogBinding:
    """What a log belongs to: the consumer group of its service, and the identity of its topic `pages`.

    Its outputs are written once by that group, for the records of that topic.
    """

    group: str
    pages: str


def first_policy(
    connection: Connection, topics: Topics, log: LogConsumer, requested: RequestedPolicy, binding: LogBinding
) -> PolicyRecord:
    """Return the first record of the log, appending it to an empty log.

    Its `log` is the identity of the log. ForeignLogError if the log is of another space or binding, or does not
    begin with a policy.
    """
    record = log.read_one(0)
    if record is None:
        begin = PolicyRecord(
            requested.policy, initial=True, log=uuid.uuid4().hex, group=binding.group, pages=binding.pages
        )
        append_policy(connection, topics, begin)
        record = log.read_one(0)
    first = None if record is None else decode(record.value)
    if not isinstance(first, PolicyRecord) or first.log is None:
        raise ForeignLogError(
            f"{topics.fingerprints} does not begin with a policy, so no twinsieve service began it, or its beginning "
            "was deleted: give another --prefix, or create the topics again, with retention.ms and retention.bytes "
            "set to -1"
        )
    if first.policy.space_id != requested.space_id:
        raise ForeignLogError(
            f"{topics.fingerprints} is of space {first.policy.space_id}, but this service makes fingerprints of "
            f"{requested.space_id}: start it with the options that the log was begun with, or begin another log with "
            "--prefix (`twinsieve replay` fills it)"
        )
    _check_binding(topics, first, binding)
    return first


def _check_binding(topics: Topics, first: PolicyRecord, binding: LogBinding) -> None:
    if first.group not in {None, binding.group}:
        raise ForeignLogError(
            f"{topics.fingerprints} is the log of group {first.group}, this service is of group {binding.group}: a "
            "second group would write every output again. Start it with the --group of the log; for other outputs "
            "begin another set of topics with --prefix (`twinsieve replay --to-prefix` fills it)"
        )
    if first.pages not in {None, binding.pages}:
        raise ForeignLogError(
            f"{topics.pages} was deleted and created again: its identity is {binding.pages}, the log was begun with "
            f"{first.pages}, so its offsets mean other records now. Make a new set with `twinsieve topics create "
            "--prefix NEW` (`twinsieve replay --to-prefix NEW` keeps what is known), and publish and serve with that "
            "prefix"
        )


def check_policy(in_force: Policy, requested: RequestedPolicy) -> None:
    """Raise PolicyDiffersError if rule or action of the service differ from those of the log."""
    rule_differs = requested.rule is not None and requested.rule != in_force.rule
    action_differs = requested.action is not None and requested.action is not in_force.action
    if not rule_differs and not action_differs:
        return
    differences = [
        f"{name} {theirs}, requested is {ours}"
        for differs, name, theirs, ours in (
            (rule_differs, "rule", in_force.rule, requested.rule),
            (action_differs, "action", in_force.action, requested.action),
        )
        if differs
    ]
    raise PolicyDiffersError(
        f"the log decides by {'; '.join(differences)}: leave the option out to use the policy of the log, or change it "
        "for all services with `twinsieve policy set`"
    )


def append_policy(connection: Connection, topics: Topics, record: PolicyRecord) -> int:
    """Append a policy to the log and return its sequence."""
    return _append(connection, topics, [record])[0]


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy that decides at the end of the log.

    sequence: of its record. changes: policy records after the first.
    log: the identity of the log. end: the offset after its last record.
    """

    policy: Policy
    sequence: int
    changes: int
    log: str
    end: int


def policy_in_force(
    connection: Connection, topics: Topics, progress: Progress = lambda _done, _total: None
) -> PolicyInForce:
    """Read the log and return its policy; ForeignLogError if no service has begun it yet."""
    in_force: PolicyInForce | None = None
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        for record in (record for batch in log.read_to_end(progress) for record in batch):
            if record.key is not None:  # only pages have one
                continue
            value = decode(record.value or b"")
            if not isinstance(value, PolicyRecord) or (value.initial and in_force is not None):
                continue
            if in_force is None and value.log is not None:
                in_force = PolicyInForce(value.policy, record.offset, 0, value.log, 0)
            elif in_force is not None:
                in_force = replace(in_force, policy=value.policy, sequence=record.offset, changes=in_force.changes + 1)
        end = log.end()
    if in_force is None:
        raise _not_begun(topics)
    return replace(in_force, end=end)


def change_policy(
    connection: Connection, topics: Topics, in_force: PolicyInForce, rule: MatchRule | None, action: Action | None
) -> tuple[Policy, int] | None:
    """Append the policy in force with another rule or action.

    Return it and its sequence, None if it is the same.
    """
    old = in_force.policy
    new = Policy(rule or old.rule, action or old.action, old.space_id, old.layout)
    if new == old:
        return None
    require_log(connection, topics)
    return new, _append(connection, topics, [PolicyRecord(new)])[0]


def add_records(
    connection: Connection,
    topics: Topics,
    records: Sequence[RetractionRecord | CorrectionRecord],
    *,
    by: str | None = None,
) -> list[int]:
    """Append `records` to the log and return the sequence of each.

    ForeignLogError if no service has begun the log.
    by: the person who adds them; kept in a header, so it changes no verdict.
    """
    require_log(connection, topics)
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        require_begun(log, topics)
    return _append(connection, topics, records, by)


def corrections_in(
    connection: Connection, topics: Topics, progress: Progress = lambda _done, _total: None
) -> list[Correction]:
    """Read the log and return the corrections in it, in their order, and which of them are in force."""
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        require_begun(log, topics)
        records = (record for batch in log.read_to_end(progress) for record in batch if not record.key)
        corrections = (correction_of(record, decode(record.value or b"")) for record in records)
        return with_force(correction for correction in corrections if correction is not None)


def correction_of(record: ConsumerRecord, value: LogRecord) -> Correction | None:
    """Return a record of the log as a correction, with who added it and when.

    None if it is not a correction.
    """
    if not isinstance(value, CorrectionRecord):
        return None
    header = dict(record.headers).get(BY)
    by = None if header is None else header.decode("utf-8", "replace")
    return Correction(sequence=record.offset, record=value, at=record.timestamp / 1000, by=by)


def require_begun(log: LogConsumer, topics: Topics) -> None:
    """Raise ForeignLogError if `log`, the log of `topics`, has no record yet."""
    if log.read_one(0) is None:
        raise _not_begun(topics)


def _append(
    connection: Connection,
    topics: Topics,
    records: Sequence[RetractionRecord | CorrectionRecord | PolicyRecord],
    by: str | None = None,
) -> list[int]:
    log = topics.fingerprints
    headers = () if by is None else ((BY, by.encode("utf-8", "replace")),)
    return append(connection, log, [log_message(log, record, headers) for record in records])


def _not_begun(topics: Topics) -> StateError:
    return ForeignLogError(
        f"{topics.fingerprints} is empty: the first `twinsieve serve` begins it with its policy; start one first, or "
        "give the --prefix of the log that you mean"
    )
