"""Pages of a service's log for groups: the whole log is read and decided again.

A replay gives the same verdicts byte for byte, so the log alone is needed: neither the topic `verdicts`, which
expires, nor a running service. It costs what `twinsieve replay` does, and the memory of the kept pages.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing

from dedup_service.core.groups.canonical import is_known_policy
from dedup_service.core.log_records import PolicyRecord
from dedup_service.runtime.groups.log_groups import LogGroups
from dedup_service.runtime.groups.spool import GroupSpool, Progress
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.control.operator_records import PolicyInForce, policy_after, require_begun
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, numbered
from dedup_service.runtime.kafka.state.temporary_replica import TemporaryReplica, temporary_replica
from dedup_service.runtime.kafka.topics import Topics


def spool_log(
    connection: Connection, topics: Topics, spool: GroupSpool, progress: Progress, bases: Mapping[str, str]
) -> dict[str, int]:
    """Add the pages of the log up to its present end to `spool`, with the hosts' own text there.

    progress: (records, records of the log). bases: where those of the log are, by name. Return as `spool_messages`.
    Raises ForeignLogError if no service has begun the log, BrokerError if it cannot be read, and as
    `temporary_replica`.
    """
    with ExitStack() as stack:
        log = stack.enter_context(closing(LogConsumer(connection, topics.fingerprints)))
        require_begun(connection, topics, log)
        reading = stack.enter_context(temporary_replica(log, bases))
        return spool_messages(log.read_to_end(progress, max_records=MESSAGES_AT_ONCE), spool, reading)


def spool_messages(
    batches: Iterable[Sequence[ConsumerRecord]], spool: GroupSpool, reading: TemporaryReplica
) -> dict[str, int]:
    """Add the pages in messages of a log to `spool`, with its policy: of those that were in force, the last known one.

    Return the counts of the replica, and as `unknown_policies` how many policies in force were left out.
    """
    replica, groups = reading.replica, LogGroups(reading.replica, spool)
    in_force: PolicyInForce | None = None
    unknown = set()
    for messages in batches:
        records = [(message.timestamp, *pair) for message in messages for pair in numbered([message])]
        groups.take(records)
        reading.step(len(records))
        for _, sequence, record in records:
            if isinstance(record, PolicyRecord):
                in_force = policy_after(in_force, sequence, record)
                if is_known_policy(in_force.policy.canonical):
                    spool.policy = in_force.policy.canonical
                else:
                    unknown.add(in_force.sequence)
    spool.host_text = replica.host_text()
    return replica.counts | {"unknown_policies": len(unknown)}
