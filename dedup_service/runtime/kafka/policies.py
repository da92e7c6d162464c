"""The policy of a log: who gives it the first one, and who may work under the one it has.

The first record of a log is a policy, appended by whichever service starts on the empty log. Several may try; the
first record wins, the others are void (`initial`). It also gives the log its identity and its space, for good.
"""

import uuid
from dataclasses import dataclass

from dedup_service.core.changelog import Policy, PolicyRecord
from dedup_service.core.errors import StateError
from dedup_service.core.profiles import rule_for
from dedup_service.core.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client.clients import Connection, LogReader, Message, append
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.kafka.wire.headers import log_headers
from dedup_service.runtime.kafka.wire.log_record import decode, encode

__all__ = ["ForeignLogError", "PolicyDiffersError", "Wanted", "append_policy", "check_policy", "first_policy"]


class ForeignLogError(StateError):
    """The log is of another space, or is none. Start with the options it was begun with, or on another --prefix."""


class PolicyDiffersError(StateError):
    """The policy in force is not the one asked for. Leave the options out, or change the log with `policy set`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a service was started with; None where it takes what the log says."""

    space_id: str
    rule: MatchRule | None = None
    action: Action | None = None

    @property
    def policy(self) -> Policy:
        """The policy that an empty log takes."""
        return Policy(self.rule or rule_for(), self.action or Action.FLAG, self.space_id)


def first_policy(connection: Connection, topics: Topics, log: LogReader, wanted: Wanted) -> PolicyRecord:
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


def check_policy(in_force: Policy, wanted: Wanted) -> None:
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
