"""Publish a stream at a fixed rate, through failures of brokers.

A plain idempotent producer with a bounded number of records in flight. A record whose delivery failed is
sent again and may then be in the topic twice, as with any crawler. The topic `pages` itself shows what
arrived.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.crawls.stream import Sent

IN_FLIGHT = 1000


@dataclass(frozen=True, slots=True)
class _Flight:
    sent: Sent
    future: Any


class PacedPublisher:
    """Publishes to `topic`. published: acknowledged records; resent: deliveries that were repeated."""

    def __init__(self, bootstrap: str, topic: str, *, in_flight: int = IN_FLIGHT) -> None:
        self._topic = topic
        self._in_flight = in_flight
        self._flights: deque[_Flight] = deque()
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            enable_idempotence=True,
            acks="all",
            linger_ms=20,  # as a crawl publishes
            batch_size=256 << 10,
            compression_type="lz4",
            delivery_timeout_ms=60_000,
            request_timeout_ms=10_000,
            reconnect_backoff_max_ms=300,
            max_block_ms=60_000,
            max_request_size=8 << 20,
            metrics_enabled=False,
        )
        self.published = 0
        self.resent = 0

    def publish(self, records: Iterable[Sent], *, rate: float | None, stopped: Callable[[], bool] = bool) -> None:
        """Publish records, `rate` a second (None: unlimited), until `stopped()`; await acknowledgements."""
        began = time.monotonic()
        for count, sent in enumerate(records):
            if stopped():
                break
            if rate is not None and (wait := began + count / rate - time.monotonic()) > 0:
                time.sleep(wait)
            self.send(sent)
        self.finish()

    def send(self, sent: Sent) -> None:
        """Send one record; wait while too many are in flight."""
        while len(self._flights) >= self._in_flight:
            self._await_oldest()
        self._flights.append(_Flight(sent, self._send(sent)))

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        while self._flights:
            self._await_oldest()

    def close(self) -> None:
        """Close the producer."""
        self._producer.close(timeout=5)

    def _await_oldest(self) -> None:
        flight = self._flights.popleft()
        try:
            flight.future.get(timeout=90)
            self.published += 1
        except KafkaError:
            self.resent += 1
            self._flights.append(_Flight(flight.sent, self._send(flight.sent)))

    def _send(self, sent: Sent) -> Any:
        while True:
            try:
                return self._producer.send(self._topic, sent.value, sent.key, list(sent.headers))
            except KafkaError:  # no metadata while the brokers are unavailable
                self.resent += 1
                time.sleep(0.2)
