"""What all producers share: messages as values, their partitions and sizes, and how a producer is retired.

Retirement: a producer that has failed is stopped without a flush (`internals.discard`); its thread ends with
the request that it waits for, and at most two such threads are left at a time. `append` writes a few
messages once, outside any transaction: what operators add to the log. Pipelines use `TransactionalProducer`,
crawls `AsyncProducer`.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer
from kafka.partitioner.default import murmur2

from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import BrokerError, RecordTooLargeError
from dedup_service.runtime.kafka.client.retry import (
    TOO_LARGE,
    TRANSIENT,
    Backoff,
    ThrottledWarning,
    permanent_error,
    reasons,
    transient_error,
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Message:
    """A message to write.

    `partition` None: the key chooses it (no key: any partition), as in every Kafka client.
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of key, value and headers, before compression."""
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return len(self.value or b"") + len(self.key or b"") + headers


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition of `key` in a topic with so many partitions.

    >>> partition_for(b"21", 8)
    4
    """
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)


COMMON: dict[str, Any] = {
    "acks": "all",
    "allow_auto_create_topics": False,
    "enable_idempotence": True,
    "metrics_enabled": False,
}

_OVERHEAD = 80
"""The library adds at most 61 bytes to a record's own when it estimates the size, and some per header."""
_OVERHEAD_PER_HEADER = 16

_JOIN_S = 1.0
_MAX_THREADS = 2


class RetiredProducers:
    """Threads of retired producers: each ends with the request that it waits for.

    At most two may be left.
    """

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def retire(self, producer: KafkaProducer) -> None:
        """Stop a producer; it sends nothing more."""
        self._threads.append(internals.discard(producer, _JOIN_S))

    def wait(self, timeout_s: float) -> None:
        """Wait until one more may be retired; at most `timeout_s`, which is that of a request."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        while len(self._threads) >= _MAX_THREADS:
            self._threads.pop(0).join(timeout_s)


class SingleProducer(ABC):
    """One producer of the library at a time, which is given up when it fails, and another one takes its place.

    name: in warnings and errors. timeout_s: after which work is given up. max_bytes: of the largest message, before
    compression.
    """

    def __init__(
        self, connection: Connection, name: str, *, timeout_s: float = 10.0, max_bytes: int = 16 << 20
    ) -> None:
        self._connection, self._name = connection, name
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._producer: KafkaProducer | None = None
        self._retired = RetiredProducers()

    def open(self, stop: threading.Event | None = None) -> None:
        """Connect, and end what earlier owners of a transactional id left open; try until it works or `stop` is set.

        Raises NotAuthorisedError and ConfigurationError, which no second try changes.
        """
        if self._producer is None:
            try_until_done(self._renew, f"{self._name}: no producer yet", stop)

    def close(self) -> None:
        """Give the producer up; what is under way may still arrive.

        An open transaction ends with its timeout, or with the next owner of the id.
        """
        if self._producer is not None:
            self._retired.retire(self._producer)
            self._producer = None

    @abstractmethod
    def _renew(self) -> None:
        """Create a producer."""

    def _connected(self, **configs: Any) -> KafkaProducer:
        """Return a producer with these options, once few enough of those before it are still stopping."""
        self._retired.wait(self._timeout_s)
        timeout_ms = int(self._timeout_s * 1000)
        return connect(
            KafkaProducer,
            self._connection,
            **COMMON,
            max_block_ms=timeout_ms,
            bootstrap_timeout_ms=timeout_ms,
            max_request_size=self._max_bytes,
            compression_type="lz4",
            linger_ms=1_000,  # until all messages are handed over; then nothing lingers
            batch_size=256 << 10,
            **configs,
        )

    def _checked(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages; RecordTooLargeError if one of them is too large."""
        checked = list(messages)
        for position, message in enumerate(checked):
            check_size(message, position, self._max_bytes)
        return checked


def try_until_done(action: Callable[[], None], waiting: str, stop: threading.Event | None) -> None:
    """Call `action` until it returns or `stop` is set; raise what no second try changes.

    waiting: what is warned of meanwhile.
    """
    backoff = Backoff(stop, warning=ThrottledWarning(_LOG, waiting))
    while not backoff.stopped:
        try:
            action()
        except BrokerError as error:
            if not error.retryable:
                raise
            backoff.wait(error)
        else:
            return


def send(producer: KafkaProducer, message: Message, topic: str | None = None) -> Any:
    """Hand a message to the producer, for `topic` or the message's own; return the library's future.

    The library refuses a message with neither key nor value: such a value becomes empty.
    """
    value = b"" if message.key is None and message.value is None else message.value
    return producer.send(topic or message.topic, value, message.key, list(message.headers), partition=message.partition)


def check_size(message: Message, position: int, max_bytes: int) -> None:
    """Raise RecordTooLargeError if the producer would refuse the message."""
    size = message.size_bytes + _OVERHEAD + _OVERHEAD_PER_HEADER * len(message.headers)
    if size > max_bytes:
        raise _size_error(message, position, f"the producer's limit is {max_bytes}")


def first_size_error(messages: Sequence[Message], futures: Sequence[Any], first: int = 0) -> RecordTooLargeError | None:
    """Return an error for the first message that the brokers found too large, None if there is none.

    first: position of the first message among those that were to be written.
    """
    for position, (message, future) in enumerate(zip(messages, futures, strict=False), first):
        if _is_size_error(future.exception) and internals.was_refused(future):
            return _size_error(message, position, "the topic's max.message.bytes is lower")
    return None


def _is_size_error(error: BaseException | None) -> bool:
    """Whether brokers or producer found a message too large: this one, or another one of its batch."""
    return any(isinstance(reason, TOO_LARGE) for reason in reasons(error))


def _size_error(message: Message, position: int, limit: str) -> RecordTooLargeError:
    return RecordTooLargeError(
        f"message {position} for topic {message.topic} has {message.size_bytes} bytes: {limit}", position
    )


_TIMEOUT_S = 30.0
_MAX_BYTES = 16 << 20


def append(connection: Connection, topic: str, messages: Iterable[Message]) -> list[int]:
    """Append messages to `topic` outside any transaction.

    Return their offsets once all replicas in sync have them. Raises UnreachableError and NotAuthorisedError
    with nothing written; BrokerError if that is uncertain after 30 s: read the topic before you try
    again.
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
        internals.wait_for_all(producer, futures, _TIMEOUT_S)
        return [int(future.value.offset) for future in futures]
    except TRANSIENT as error:
        action = f"to append to {topic}"
        last = internals.last_error(producer)
        raise (
            first_size_error(messages, futures)
            or permanent_error(error, action, last, needs="Write")
            or transient_error(error, action)
        ) from error
    finally:
        RetiredProducers().retire(producer)
