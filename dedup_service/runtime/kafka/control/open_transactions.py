"""Transactions that keep the service from reading its own topics: which, whose, and since when.

Readers of committed records stop at the first record of an open transaction. One of the service ends within its
timeout of 10 s, or is ended by the brokers; one that is open for longer hangs (`hanging_transactions`), or belongs to
a publisher that takes its time. Whichever it is, the steps stand still and see no reason.

How: the leaders of the partitions say which transactions are open, and the coordinators whose they are. The first
needs *Read* on the topics, which a service has; without *Describe* on a transactional id its name stays unknown.
"""

from dedup_service.runtime.kafka.client.admin import administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.status import BlockingTransaction
from dedup_service.runtime.kafka.topics.plan import Topics

_UNKNOWN = "unknown"


def blocking_transactions(
    connection: Connection, topics: Topics, before_ms: int | None = None
) -> tuple[BlockingTransaction, ...]:
    """Return the transactions that are open on the topics that the steps read, the oldest first.

    before_ms: only those whose producers last wrote before, in Unix milliseconds. Raises BrokerError.
    """
    with administration(connection) as admin:
        read = admin.partitions_of([topics.pages, topics.fingerprints, topics.offsets])
        found = [one for one in admin.open_transactions(read) if before_ms is None or one.last_write_ms < before_ms]
        names = admin.transactions_of(one.producer_id for one in found)
    rows = []
    for one in found:
        name, state = names.get(one.producer_id, (_UNKNOWN, _UNKNOWN))
        rows.append(
            BlockingTransaction(
                topic=one.partition.topic,
                partition=one.partition.partition,
                offset=one.offset,
                since_ms=one.last_write_ms,
                producer_id=one.producer_id,
                transactional_id=name,
                state=state,
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.since_ms, row.topic, row.partition)))
