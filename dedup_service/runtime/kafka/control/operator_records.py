"""The policy of a log: who gives it the first one, and who may work under the one it has.

The first record of a log is a policy, appended by whichever service starts on the empty log. Several may try; the
first record wins, the others are void (`initial`). It also gives the log its identity and its space, for good.

Records that people add to the log: a policy, retractions, corrections.

They stand in the log like any other record, so every process and every replay comes to them at the same place.
Invariant: the first record of a log is the policy of the service that began it; nothing is added to an empty log.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dedup_service.core.errors import StateError
from dedup_service.core.log_records import CorrectionRecord, LogRecord, Policy, PolicyRecord, RetractionRecord
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.embedded.corrections import Correction, with_force
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.headers import log_headers
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.topics import Topics, require_log

__all__ = [
    "ForeignLogError",
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


class ForeignLogError(StateError):
    """The log is of another space, or is none. Start with the options it was begun with, or on another --prefix."""


class PolicyDiffersError(StateError):
    """The policy in force is not the one asked for. Leave the options out, or change the log with `policy set`."""


@dataclass(frozen=True, slots=True)
class RequestedPolicy:
    """What a service was started with; None where it takes what the log says."""

    space_id: str
    rule: MatchRule | None = None
    action: Action | None = None

    @property
    def policy(self) -> Policy:
        """The policy that an empty log takes."""
        return Policy(self.rule or rule_for(), self.action or Action.FLAG, self.space_id)


def first_policy(connection: Connection, topics: Topics, log: LogConsumer, wanted: RequestedPolicy) -> PolicyRecord:
    """Return the first record of the log, which an empty log gets now; its `log` is the log's identity.

    ForeignLogError where the log is of another space or does not begin with a policy.
    """
    record = log.read_one(0)
    if record is None:
        append_policy(connection, topics, PolicyRecord(wanted.policy, initial=True, log=uuid.uuid4().hex))
        record = log.read_one(0)
    first = None if record is None else decode(record.value)
    if not isinstance(first, PolicyRecord) or first.log is None:
        raise ForeignLogError(
            f"{topics.fingerprints} does not begin with a policy, so no twinsieve service began it, or its beginning "
            "was deleted: give another --prefix, or make the topics anew (retention.ms and retention.bytes must be -1)"
        )
    if first.policy.space_id != wanted.space_id:
        raise ForeignLogError(
            f"{topics.fingerprints} is of space {first.policy.space_id}, this service would make fingerprints of "
            f"{wanted.space_id}: start it with the options the log was begun with, or begin another log with --prefix "
            "(`twinsieve replay` fills it)"
        )
    return first


def check_policy(in_force: Policy, wanted: RequestedPolicy) -> None:
    """PolicyDiffersError where the service was started with another rule or action than the log has."""
    rule_differs = wanted.rule is not None and wanted.rule != in_force.rule
    action_differs = wanted.action is not None and wanted.action is not in_force.action
    if not rule_differs and not action_differs:
        return
    differences = [
        f"{name} {theirs}, asked for is {ours}"
        for differs, name, theirs, ours in (
            (rule_differs, "rule", in_force.rule, wanted.rule),
            (action_differs, "action", in_force.action, wanted.action),
        )
        if differs
    ]
    raise PolicyDiffersError(
        f"the log decides by {'; '.join(differences)}: leave the option out to work by the log's policy, or change it "
        "for all services from a certain record on with `twinsieve policy set`"
    )


def append_policy(connection: Connection, topics: Topics, record: PolicyRecord) -> int:
    """Append a policy to the log and return its sequence."""
    message = Message(
        topics.fingerprints, encode(record), headers=log_headers(record, topics.fingerprints), partition=0
    )
    return append(connection, topics.fingerprints, [message])[0]


BY = "twinsieve.by"
AT_ONCE = 2000
WAIT_S = 0.5

Read = Callable[[int, int], None]
"""Told how many records of how many were read."""


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy that decides at the end of the log. sequence: of its record. changes: policy records after the first.

    log: identity of the log. end: the offset after its last record.
    """

    policy: Policy
    sequence: int
    changes: int
    log: str
    end: int


def policy_in_force(connection: Connection, topics: Topics, read: Read = lambda _done, _total: None) -> PolicyInForce:
    """Read the log and return its policy; ForeignLogError where no service has begun it yet."""
    found: PolicyInForce | None = None
    log = LogConsumer(connection, topics.fingerprints)
    try:
        for record in _records(log, read):
            if record.key is not None:  # only pages have one
                continue
            value = decode(record.value or b"")
            if not isinstance(value, PolicyRecord) or (value.initial and found is not None):
                continue
            if found is None and value.log is not None:
                found = PolicyInForce(value.policy, record.offset, 0, value.log, 0)
            elif found is not None:
                found = replace(found, policy=value.policy, sequence=record.offset, changes=found.changes + 1)
        end = log.end()
    finally:
        log.close()
    if found is None:
        raise _not_begun(topics)
    return replace(found, end=end)


def change_policy(
    connection: Connection, topics: Topics, in_force: PolicyInForce, rule: MatchRule | None, action: Action | None
) -> tuple[Policy, int] | None:
    """Append the policy in force with another rule or action; return it and its sequence, None if it is the same."""
    old = in_force.policy
    new = Policy(rule or old.rule, action or old.action, old.space_id)
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
    """Append `records` to the log, and return the sequence of each. ForeignLogError where no service has begun it.

    by: who says so; stands in a header, where it changes nothing.
    """
    require_log(connection, topics)
    log = LogConsumer(connection, topics.fingerprints)
    try:
        require_begun(log, topics)
    finally:
        log.close()
    return _append(connection, topics, records, by)


def corrections_in(connection: Connection, topics: Topics, read: Read = lambda _done, _total: None) -> list[Correction]:
    """Read the log and return the corrections in it, in their order, and which of them hold."""
    log = LogConsumer(connection, topics.fingerprints)
    try:
        require_begun(log, topics)
        found = (correction_of(record, decode(record.value or b"")) for record in _records(log, read) if not record.key)
        return with_force(correction for correction in found if correction is not None)
    finally:
        log.close()


def correction_of(record: ConsumerRecord, value: LogRecord) -> Correction | None:
    """Return the correction that a record of the log is, with who and when; None where it is none."""
    if not isinstance(value, CorrectionRecord):
        return None
    by = dict(record.headers).get(BY)
    said_by = None if by is None else by.decode("utf-8", "replace")
    return Correction(sequence=record.offset, record=value, at=record.timestamp / 1000, by=said_by)


def require_begun(log: LogConsumer, topics: Topics) -> None:
    """ForeignLogError where `log`, that of `topics`, has no record yet."""
    if log.read_one(0) is None:
        raise _not_begun(topics)


def _append(
    connection: Connection,
    topics: Topics,
    records: Sequence[RetractionRecord | CorrectionRecord | PolicyRecord],
    by: str | None = None,
) -> list[int]:
    log = topics.fingerprints
    more = () if by is None else ((BY, by.encode("utf-8", "replace")),)
    messages = [
        Message(log, encode(record), headers=(*log_headers(record, log), *more), partition=0) for record in records
    ]
    return append(connection, log, messages)


def _records(log: LogConsumer, read: Read) -> Iterator[ConsumerRecord]:
    """Yield what the log has now."""
    end = log.end()
    while (position := log.position) < end:
        read(position, end)
        yield from log.poll(WAIT_S, AT_ONCE)
    read(end, end)


def _not_begun(topics: Topics) -> StateError:
    return ForeignLogError(
        f"{topics.fingerprints} is empty: the first `twinsieve serve` begins it with its policy; start one first, or "
        "give the --prefix that it has"
    )
