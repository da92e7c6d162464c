"""End transactions as their coordinators decided: the marker that a broker left out is written."""

from collections.abc import Iterable

from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.client import inside
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.settling.endless import Endless
from dedup_service.runtime.kafka.settling.history import Outcome
from dedup_service.runtime.kafka.topics.admin import administration

__all__ = ["settle"]


def settle(connection: Connection, found: Iterable[Endless]) -> None:
    """Write the markers of those whose outcome is known; others are left as they are.

    Needs *Alter* on the cluster. Raises NotAuthorisedError where it is missing, BrokerError for the rest.
    """
    with administration(connection) as client:
        for one in found:
            if one.outcome is not None:
                inside.write_marker(
                    client,
                    TopicPartition(one.topic, one.partition),
                    (one.producer_id, one.epoch),
                    one.coordinator_epoch,
                    committed=one.outcome is Outcome.COMMIT,
                )
