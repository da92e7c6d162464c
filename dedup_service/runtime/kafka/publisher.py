"""Publishing from somebody else's thread or event loop, with bounded memory."""

import threading
from concurrent.futures import Future
from typing import Any

from kafka import KafkaProducer

from dedup_service.runtime.kafka.messages import Message
from dedup_service.runtime.kafka.settings import Connection

__all__ = ["Publisher"]


class Publisher:
    """Messages out, each acknowledged by its own future; at most `max_messages` and `max_bytes` in flight."""

    def __init__(self, connection: Connection, *, max_messages: int = 1000, max_bytes: int = 32 << 20) -> None:
        self._producer = KafkaProducer(
            **connection.configs(acks="all", compression_type="lz4", linger_ms=20, batch_size=256 << 10)
        )
        self.max_messages, self.max_bytes = max_messages, max_bytes
        self.published = self.retried = self.failed = self.in_flight = self.in_flight_bytes = 0
        self._changed = threading.Condition()

    def has_room(self, size_bytes: int = 0) -> bool:
        """Whether a message of this size may be submitted now."""
        return not self.in_flight or (
            self.in_flight < self.max_messages and self.in_flight_bytes + size_bytes <= self.max_bytes
        )

    def submit(self, message: Message) -> Future[tuple[int, int]]:
        """Send; the future gives (partition, offset) once the brokers have acknowledged it."""
        answer: Future[tuple[int, int]] = Future()
        with self._changed:
            self.in_flight += 1
            self.in_flight_bytes += message.size_bytes

        def done(_: Any) -> None:
            with self._changed:
                self.in_flight -= 1
                self.in_flight_bytes -= message.size_bytes
                self.published += 1
                self._changed.notify_all()

        sent = self._producer.send(
            message.topic, message.value, message.key, list(message.headers), partition=message.partition
        )
        sent.add_both(done)
        sent.add_callback(lambda r: answer.set_result((r.partition, r.offset)))
        sent.add_errback(answer.set_exception)
        return answer

    def flush(self, timeout_s: float) -> bool:
        """Whether everything submitted was acknowledged within `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: self.in_flight == 0, timeout_s)

    def close(self, timeout_s: float) -> int:
        """Flush and close; the number of messages that were not acknowledged."""
        self.flush(timeout_s)
        self._producer.close(timeout=1)
        return self.in_flight + self.failed
