"""The log, read in order and without a group."""

import time

from kafka import KafkaConsumer
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.settings import Connection

__all__ = ["LogReader"]


class LogReader:
    """Committed records of partition 0 of `topic`."""

    def __init__(self, connection: Connection, topic: str, *, fetch_bytes: int = 8 << 20) -> None:
        self._partition = TopicPartition(topic, 0)
        self._consumer = KafkaConsumer(
            **connection.configs(
                isolation_level="read_committed",
                auto_offset_reset="none",
                enable_auto_commit=False,
                fetch_max_bytes=fetch_bytes,
                max_partition_fetch_bytes=fetch_bytes,
                allow_auto_create_topics=False,
            )
        )
        self._consumer.assign([self._partition])
        self.seek(0)

    def seek(self, offset: int) -> None:
        """Go on from `offset`."""
        self._consumer.seek(self._partition, offset)

    @property
    def position(self) -> int:
        """Offset of the next record to be read."""
        return int(self._consumer.position(self._partition))

    def poll(self, timeout_s: float, max_records: int) -> list[ConsumerRecord]:
        """The next records in order; [] where there are none yet."""
        batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        return [record for batch in batches.values() for record in batch]

    def end(self) -> int:
        """The last stable offset: everything below it is decided."""
        return int(self._consumer.end_offsets([self._partition])[self._partition])

    def read_one(self, offset: int) -> ConsumerRecord | None:
        """The first committed record at or after `offset`, or None where there is none; the position stays."""
        before, end = self.position, self.end()
        self.seek(offset)
        try:
            deadline = time.monotonic() + 10
            while self.position < end and time.monotonic() < deadline:
                records = self.poll(0.2, 1)
                if records:
                    return records[0]
            return None
        finally:
            self.seek(before)

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close(autocommit=False, timeout_ms=5_000)
