"""A few messages, appended once: people's records in the log, outside any transaction."""

from collections.abc import Iterable
from typing import Any

from kafka import KafkaProducer

from dedup_service.runtime.kafka.client import inside
from dedup_service.runtime.kafka.client.connecting import connect
from dedup_service.runtime.kafka.client.messages import Message
from dedup_service.runtime.kafka.client.producers import COMMON, Leftovers, check_size, send, too_large
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import PASSING, for_good, passing

__all__ = ["append"]

_TIMEOUT_S = 30.0
_MAX_BYTES = 16 << 20


def append(connection: Connection, topic: str, messages: Iterable[Message]) -> list[int]:
    """Append to `topic`; return the offset of each message, once all replicas in sync have them.

    Raises UnreachableError and NotAuthorisedError with nothing written; BrokerError where that is not sure after 30 s:
    look before you try again.
    """
    messages = list(messages)
    for position, message in enumerate(messages):
        check_size(message, position, _MAX_BYTES)
    producer = connect(
        KafkaProducer,
        connection,
        **COMMON,
        max_request_size=_MAX_BYTES,
        max_block_ms=_TIMEOUT_S * 1000,
        delivery_timeout_ms=2 * _TIMEOUT_S * 1000,
    )
    futures: list[Any] = []
    try:
        futures.extend(send(producer, message, topic=topic) for message in messages)
        inside.wait_for_all(producer, futures, _TIMEOUT_S)
        return [int(future.value.offset) for future in futures]
    except PASSING as error:
        doing = f"to append to {topic}"
        last = inside.last_error(producer)
        raise too_large(messages, futures) or for_good(error, doing, last) or passing(error, doing) from error
    finally:
        Leftovers().take(producer)
