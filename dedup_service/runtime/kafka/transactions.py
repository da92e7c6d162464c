"""Whole transactions: all messages and the offsets they came from, or nothing."""

import threading
import time
from collections.abc import Iterable, Mapping

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

from dedup_service.runtime.kafka.errors import TransactionLostError
from dedup_service.runtime.kafka.messages import Message
from dedup_service.runtime.kafka.settings import Connection

__all__ = ["Transactions"]


class Transactions:
    """A producer of whole transactions under one transactional id."""

    def __init__(
        self,
        connection: Connection,
        transactional_id: str,
        *,
        timeout_s: float = 10.0,
        max_bytes: int = 8 << 20,
        compression: str | None = "lz4",
    ) -> None:
        self._configs = connection.configs(
            transactional_id=transactional_id,
            transaction_timeout_ms=int(timeout_s * 1000),
            max_request_size=max_bytes,
            compression_type=compression,
            retry_backoff_ms=5,
            batch_size=256 << 10,
            linger_ms=5,
        )
        self._producer: KafkaProducer | None = None

    def open(self, stop: threading.Event | None = None) -> None:
        """Fence earlier owners of the id; try until it works or `stop` is set."""
        while self._producer is None and not (stop and stop.is_set()):
            try:
                producer = KafkaProducer(**self._configs)
                producer.init_transactions()
                self._producer = producer
            except KafkaError:
                time.sleep(0.2)

    def commit(
        self,
        messages: Iterable[Message],
        offsets: Mapping[TopicPartition, int] | None = None,
        group: ConsumerGroupMetadata | None = None,
    ) -> list[tuple[int, int]]:
        """One transaction; (partition, offset) of each message, in order."""
        producer = self._producer
        assert producer is not None
        try:
            producer.begin_transaction()
            futures = [producer.send(m.topic, m.value, m.key, list(m.headers), partition=m.partition) for m in messages]
            if offsets:
                producer.send_offsets_to_transaction(
                    {p: OffsetAndMetadata(offset) for p, offset in offsets.items()}, group
                )
            producer.commit_transaction()
            return [(r.partition, r.offset) for r in (future.get(0) for future in futures)]
        except KafkaError as error:
            self._producer = None
            producer.close(timeout=1)
            self.open()
            raise TransactionLostError(f"the transaction was lost: {error}; rewind and go on") from error

    def close(self) -> None:
        """Let go of the producer."""
        if self._producer is not None:
            self._producer.close(timeout=5)
            self._producer = None
