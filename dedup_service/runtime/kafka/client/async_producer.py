"""Publishing from another thread or an event loop, with bounded memory.

How: `submit` only queues, and a thread of the producer hands messages to the library, whose `send` may block
for seconds. The library retries by itself for as long as it takes (idempotent, so nothing is doubled or
reordered by that). A producer that fails for good is replaced and what it held is sent again; only then may
a message be there twice.
Bound: `max_messages` and `max_bytes` from `submit` to the brokers' acknowledgement, whatever the library
holds of it.
Invariants: a future has a result only once the brokers have acknowledged the message; every future is
settled in the end.
"""

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any

from kafka import KafkaProducer
from kafka.producer.future import RecordMetadata

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import BrokerError, OptionError, UnreachableError
from dedup_service.runtime.kafka.client.producers import (
    COMMON,
    Message,
    RetiredProducers,
    check_size,
    first_size_error,
    send,
)
from dedup_service.runtime.kafka.client.retry import TRANSIENT, ThrottledWarning, permanent_error

_LOG = logging.getLogger(__name__)

_WEEK_MS = 7 * 24 * 3600 * 1000
_BLOCK_MS = 5_000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_JOIN_S = 2.0


class _Sent:
    """A message in flight. answer: the future of its submitter."""

    __slots__ = ("answer", "message", "pause_s", "producer")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.answer: Future[tuple[int, int]] = Future()
        self.pause_s = _FIRST_PAUSE_S
        self.producer: KafkaProducer | None = None


class AsyncProducer:
    """Publishes messages; each is acknowledged by its own future. Any thread may call any method.

    max_messages, max_bytes: in flight at once; a larger message goes alone. max_message_bytes: of one,
    uncompressed. Counters: published (acknowledged), retried (by us; the library does not report its own),
    failed, in_flight, in_flight_bytes. The constructor raises UnreachableError, NotAuthorisedError and
    ConfigurationError.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        max_messages: int = 1000,
        max_bytes: int = 32 << 20,
        max_message_bytes: int = 16 << 20,
        linger_ms: int = 20,
    ) -> None:
        self._connection = connection
        self._configs: dict[str, Any] = {
            **COMMON,
            "compression_type": "lz4",
            "linger_ms": linger_ms,
            "batch_size": 256 << 10,
            "max_request_size": max_message_bytes,
            "max_block_ms": _BLOCK_MS,
            "delivery_timeout_ms": _WEEK_MS,
        }
        self._max_message_bytes = max_message_bytes
        self.max_messages, self.max_bytes = max_messages, max_bytes
        self.published = self.retried = self.failed = self.in_flight = self.in_flight_bytes = 0
        self._changed = threading.Condition()
        self._queue: deque[_Sent] = deque()
        self._waiting: list[tuple[float, _Sent]] = []
        self._open: set[_Sent] = set()
        self._closing = False
        self._broken = False
        self._warning = ThrottledWarning(_LOG, f"messages wait for {connection.bootstrap}", after_s=2.0)
        self._retired = RetiredProducers()
        self._producer: KafkaProducer | None = connect(KafkaProducer, connection, **self._configs)
        self._thread = threading.Thread(target=self._run, name="twinsieve-publisher", daemon=True)
        self._thread.start()

    def check_topic(self, topic: str) -> None:
        """Raise OptionError if the brokers do not know the topic, UnreachableError if none answers."""
        producer = self._producer
        try:
            found = producer is not None and producer.partitions_for(topic)
        except TRANSIENT as error:
            found = permanent_error(error, f"to write to {topic}", needs="Write")
            if found:
                raise found from error
            raise OptionError(
                f"the brokers at {self._connection.bootstrap} do not have a topic {topic}: create it "
                "(twinsieve topics create), or name another"
            ) from error
        if not found:
            raise UnreachableError(f"no broker answers about the topic {topic}; try again")

    def has_room(self, size_bytes: int = 0) -> bool:
        """Whether a message of this size may be submitted now."""
        fits = self.in_flight < self.max_messages and self.in_flight_bytes + size_bytes <= self.max_bytes
        return fits or not self.in_flight

    def submit(self, message: Message) -> Future[tuple[int, int]]:
        """Send a message.

        The future gives (partition, offset) once the brokers have acknowledged it. Never blocks. The future
        raises RecordTooLargeError or NotAuthorisedError, and BrokerError if the producer is closed first.
        Raises BrokerError if there is no room (`has_room`), or the producer is closed.
        """
        sent = _Sent(message)
        size = message.size_bytes
        with self._changed:
            if self._closing:
                raise BrokerError("the publisher is closed; create a new one")
            if not self.has_room(size):
                raise BrokerError(
                    f"{self.in_flight} messages of {self.in_flight_bytes} bytes are in flight, and {size} bytes more "
                    f"exceed {self.max_messages} messages or {self.max_bytes} bytes: wait until some are acknowledged"
                )
            self.in_flight += 1
            self.in_flight_bytes += size
            self._open.add(sent)
            self._queue.append(sent)
            self._changed.notify_all()
        return sent.answer

    def flush(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` until every future is settled; return whether it is so."""
        with self._changed:
            return self._changed.wait_for(lambda: self.in_flight == 0, timeout_s)

    def close(self, timeout_s: float) -> int:
        """Wait for messages in flight, `timeout_s` at most; return how many were not acknowledged by then.

        Their futures raise BrokerError; the messages may still have arrived.
        """
        self.flush(timeout_s)
        with self._changed:
            if self._closing:
                return 0
            self._closing = True
            self._changed.notify_all()
        self._thread.join(_BLOCK_MS / 1000 + _JOIN_S)
        self._replace(give_up=True)
        with self._changed:
            left = list(self._open)
        for sent in left:
            self._settle(sent, error=BrokerError("the publisher was closed before the message was acknowledged"))
        return len(left)

    def _run(self) -> None:
        while (sent := self._next()) is not None:
            try:
                self._send(sent)
            except Exception as error:  # a bug, here or in the library, must not stop the other messages
                self._settle(sent, error=error)
        self._replace(give_up=True)

    def _next(self) -> _Sent | None:
        """Wait for the next message to hand over and return it; None at the end."""
        with self._changed:
            while not self._closing:
                now = time.monotonic()
                due = [pair for pair in self._waiting if pair[0] <= now]
                for pair in due:
                    self._waiting.remove(pair)
                    self._queue.append(pair[1])
                if self._queue:
                    return self._queue.popleft()
                self._changed.wait(min((at for at, _ in self._waiting), default=now + 60.0) - now)
        return None

    def _send(self, sent: _Sent) -> None:
        try:
            check_size(sent.message, 0, self._max_message_bytes)
            sent.producer = self._current()
            future = send(sent.producer, sent.message)
        except TRANSIENT as error:
            self._broken = sent.producer is not None and internals.has_failed(sent.producer)
            self._failed(sent, error)
        except TwinsieveError as error:
            if error.retryable:
                self._retry(sent, error)
            else:
                self._settle(sent, error=error)
        else:
            future.add_callback(self._acknowledged, sent)
            future.add_errback(self._refused, sent, future)

    def _current(self) -> KafkaProducer:
        if self._broken or self._producer is None:
            self._replace()
        return self._producer

    def _replace(self, *, give_up: bool = False) -> None:
        """Retire the producer, which fails the messages it holds, and create another unless `give_up`."""
        if self._producer is not None:
            old, self._producer = self._producer, None
            self._retired.retire(old)
        if not give_up:
            self._retired.wait(_BLOCK_MS / 1000)
            self._producer = connect(KafkaProducer, self._connection, **self._configs)
            self._broken = False

    def _acknowledged(self, sent: _Sent, record: RecordMetadata) -> None:
        self._warning.over()
        self._settle(sent, result=(record.partition, record.offset))

    def _refused(self, sent: _Sent, future: Any, error: BaseException) -> None:
        if large := first_size_error([sent.message], [future]):
            self._settle(sent, error=large)
        else:
            self._broken |= sent.producer is self._producer and internals.has_failed(sent.producer)
            self._failed(sent, error)

    def _failed(self, sent: _Sent, error: BaseException) -> None:
        last = internals.last_error(sent.producer) if sent.producer is not None else None
        if found := permanent_error(error, f"to write to {sent.message.topic}", last, needs="Write"):
            self._settle(sent, error=found)
        else:
            self._retry(sent, error)

    def _retry(self, sent: _Sent, error: BaseException) -> None:
        self._warning.about(f"{type(error).__name__}: {error}")
        with self._changed:
            self.retried += 1
            self._waiting.append((time.monotonic() + sent.pause_s, sent))
            sent.pause_s = min(2 * sent.pause_s, _LONGEST_PAUSE_S)
            self._changed.notify_all()

    def _settle(self, sent: _Sent, *, result: tuple[int, int] | None = None, error: Exception | None = None) -> None:
        with self._changed:
            if sent not in self._open:
                return
            self._open.discard(sent)
            self.in_flight -= 1
            self.in_flight_bytes -= sent.message.size_bytes
            self.published += error is None
            self.failed += error is not None
            self._changed.notify_all()
        if not sent.answer.set_running_or_notify_cancel():
            return  # the submitter has cancelled it
        if error is None:
            sent.answer.set_result(result or (0, 0))
        else:
            sent.answer.set_exception(error)
