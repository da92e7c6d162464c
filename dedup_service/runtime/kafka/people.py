"""Records that people add to the log: a policy, retractions, corrections.

They stand in the log like any other record, so every process and every replay comes to them at the same place.
Invariant: the first record of a log is the policy of the service that began it; nothing is added to an empty log.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dedup_service.core.changelog import CorrectionRecord, LogRecord, Policy, PolicyRecord, RetractionRecord
from dedup_service.core.errors import StateError
from dedup_service.core.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.corrections import Correction, with_force
from dedup_service.runtime.kafka.client.clients import Connection, ConsumerRecord, LogReader, Message, append
from dedup_service.runtime.kafka.policies import ForeignLogError
from dedup_service.runtime.kafka.topics import Topics, require_log
from dedup_service.runtime.kafka.wire.headers import log_headers
from dedup_service.runtime.kafka.wire.log_record import decode, encode

__all__ = [
    "InForce",
    "add_records",
    "change_policy",
    "correction_of",
    "corrections_in",
    "policy_in_force",
    "require_begun",
]

BY = "twinsieve.by"
AT_ONCE = 2000
WAIT_S = 0.5

Read = Callable[[int, int], None]
"""Told how many records of how many were read."""


@dataclass(frozen=True, slots=True)
class InForce:
    """The policy that decides at the end of the log. sequence: of its record. changes: policy records after the first.

    log: identity of the log. end: the offset after its last record.
    """

    policy: Policy
    sequence: int
    changes: int
    log: str
    end: int


def policy_in_force(connection: Connection, topics: Topics, read: Read = lambda _done, _total: None) -> InForce:
    """Read the log and return its policy; ForeignLogError where no service has begun it yet."""
    found: InForce | None = None
    log = LogReader(connection, topics.fingerprints)
    try:
        for record in _records(log, read):
            if record.key is not None:  # only pages have one
                continue
            value = decode(record.value or b"")
            if not isinstance(value, PolicyRecord) or (value.initial and found is not None):
                continue
            if found is None and value.log is not None:
                found = InForce(value.policy, record.offset, 0, value.log, 0)
            elif found is not None:
                found = replace(found, policy=value.policy, sequence=record.offset, changes=found.changes + 1)
        end = log.end()
    finally:
        log.close()
    if found is None:
        raise _not_begun(topics)
    return replace(found, end=end)


def change_policy(
    connection: Connection, topics: Topics, in_force: InForce, rule: MatchRule | None, action: Action | None
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
    log = LogReader(connection, topics.fingerprints)
    try:
        require_begun(log, topics)
    finally:
        log.close()
    return _append(connection, topics, records, by)


def corrections_in(connection: Connection, topics: Topics, read: Read = lambda _done, _total: None) -> list[Correction]:
    """Read the log and return the corrections in it, in their order, and which of them hold."""
    log = LogReader(connection, topics.fingerprints)
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


def require_begun(log: LogReader, topics: Topics) -> None:
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


def _records(log: LogReader, read: Read) -> Iterator[ConsumerRecord]:
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
