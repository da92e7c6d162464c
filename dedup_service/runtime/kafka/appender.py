"""A few messages, appended once: for people's records in the log, outside any transaction."""

from collections.abc import Iterable

from kafka import KafkaProducer

from dedup_service.runtime.kafka.messages import Message
from dedup_service.runtime.kafka.settings import Connection

__all__ = ["append"]


def append(connection: Connection, topic: str, messages: Iterable[Message]) -> list[int]:
    """Append to `topic` and return the offset of each, once all replicas in sync have them."""
    producer = KafkaProducer(**connection.configs(enable_idempotence=True, acks="all"))
    try:
        futures = [producer.send(topic, m.value, m.key, list(m.headers), partition=m.partition) for m in messages]
        producer.flush(30)
        return [int(future.get(30).offset) for future in futures]
    finally:
        producer.close(timeout=5)
