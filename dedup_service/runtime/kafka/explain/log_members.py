"""Pages of a service's log for groups: the whole log is read and decided again.

A replay gives the same verdicts byte for byte, so the log alone is needed: neither the topic `verdicts`, which
expires, nor a running service. It costs what `twinsieve replay` does, and the memory of the kept pages.
"""

from contextlib import ExitStack, closing

from dedup_service.core.decision.replica import Replica
from dedup_service.runtime.groups.log_groups import LogGroups
from dedup_service.runtime.groups.spool import GroupSpool, Progress
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.control.operator_records import require_begun
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, numbered
from dedup_service.runtime.kafka.state.page_names import temporary_page_names
from dedup_service.runtime.kafka.topics import Topics

__all__ = ["spool_log"]


def spool_log(connection: Connection, topics: Topics, spool: GroupSpool, progress: Progress) -> dict[str, int]:
    """Add the pages of the log up to its present end to `spool`, with the hosts' own text there.

    progress: (records, records of the log). Return the counts of the replica. Raises ForeignLogError if no service has
    begun the log, BrokerError if it cannot be read.
    """
    with ExitStack() as stack:
        replica = Replica(stack.enter_context(temporary_page_names()))
        log = stack.enter_context(closing(LogConsumer(connection, topics.fingerprints)))
        require_begun(connection, topics, log)
        groups = LogGroups(replica, spool)
        for messages in log.read_to_end(progress, max_records=MESSAGES_AT_ONCE):
            groups.take([(message.timestamp, *pair) for message in messages for pair in numbered([message])])
        spool.host_text = replica.host_text()
        if replica.policy is not None:
            spool.policy = replica.policy.canonical
        return dict(replica.counts)
