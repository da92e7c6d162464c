"""How far a group has come, asked without being a member of it."""

from kafka import KafkaConsumer
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.client.errors import BrokerError
from dedup_service.runtime.kafka.client.settings import Connection

__all__ = ["committed_offsets"]

_TIMEOUT_MS = 30_000  # above the longest transaction: an offset in an open one has to be waited for


def committed_offsets(connection: Connection, group: str, topic: str) -> dict[TopicPartition, int]:
    """Return the committed offset of each partition of `topic` that has one; BrokerError where nobody answers."""
    try:
        consumer = KafkaConsumer(
            **connection.configs(group_id=group, isolation_level="read_committed", enable_auto_commit=False)
        )
        try:
            partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
            offsets = {at: consumer.committed(at, timeout_ms=_TIMEOUT_MS) for at in partitions}
        finally:
            consumer.close(autocommit=False)
    except KafkaError as error:
        raise BrokerError(
            f"cannot read the offsets of group {group}: {error!r}; try again when the brokers answer"
        ) from error
    return {at: offset for at, offset in offsets.items() if offset is not None}
