"""Producers that are made, used and given up without leaving threads behind."""

import threading
from typing import Any

from kafka import KafkaProducer

from dedup_service.runtime.kafka.client import inside
from dedup_service.runtime.kafka.client.errors import RecordTooLargeError
from dedup_service.runtime.kafka.client.messages import Message
from dedup_service.runtime.kafka.client.partitioning import KeyPartitioner
from dedup_service.runtime.kafka.client.translated import TOO_LARGE, reasons

__all__ = ["COMMON", "Leftovers", "check_size", "is_too_large", "send", "too_large"]

COMMON = {
    "acks": "all",
    "allow_auto_create_topics": False,
    "enable_idempotence": True,
    "metrics_enabled": False,
    "partitioner": KeyPartitioner(),
}

_OVERHEAD = 80
"""The client adds at most 61 bytes to a record's own when it estimates the size, and some per header."""
_OVERHEAD_PER_HEADER = 16

_PATIENCE_S = 1.0
_MOST_LEFT = 2


class Leftovers:
    """Threads of producers that were given up: each ends with the request it waits for, and few may be left."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def take(self, producer: KafkaProducer) -> None:
        """Give a producer up; nothing more is sent by it."""
        self._threads.append(inside.discard(producer, _PATIENCE_S))

    def wait(self, timeout_s: float) -> None:
        """Wait until there is room for one more; at most `timeout_s`, which is that of a request."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        while len(self._threads) >= _MOST_LEFT:
            self._threads.pop(0).join(timeout_s)


def send(producer: KafkaProducer, message: Message, topic: str | None = None) -> Any:
    """Hand a message to the producer, for `topic` or its own; return the library's future."""
    return producer.send(
        topic or message.topic, message.value, message.key, list(message.headers), partition=message.partition
    )


def check_size(message: Message, position: int, max_bytes: int) -> None:
    """RecordTooLargeError where the producer would refuse the message."""
    size = message.size_bytes + _OVERHEAD + _OVERHEAD_PER_HEADER * len(message.headers)
    if size > max_bytes:
        raise _too_large(message, position, f"the producer's limit is {max_bytes}")


def too_large(messages: list[Message], futures: list[Any]) -> RecordTooLargeError | None:
    """Return which message the brokers found too large, if any."""
    for position, (message, future) in enumerate(zip(messages, futures, strict=False)):
        if is_too_large(future.exception) and inside.was_refused(future):
            return _too_large(message, position, "the topic's max.message.bytes is lower")
    return None


def is_too_large(error: BaseException | None) -> bool:
    """Whether brokers or producer found a message too large, this one or one that this one went down with."""
    return any(isinstance(reason, TOO_LARGE) for reason in reasons(error))


def _too_large(message: Message, position: int, limit: str) -> RecordTooLargeError:
    return RecordTooLargeError(
        f"message {position} for topic {message.topic} has {message.size_bytes} bytes: {limit}", position
    )
