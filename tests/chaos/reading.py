"""Read topics as a plain consumer without a group sees them: committed records only.

`read_all` reads topics from beginning to end; `Tail` keeps reading while a round runs. Both wait for brokers
that are unavailable, and work around nothing else: they must see what any consumer would see. `connect` only
makes the client, and leaves no thread where it cannot.
"""

import time
from collections.abc import Iterable, Iterator

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaError

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import UnreachableError

FETCH_BYTES = 16 << 20


def reader(
    bootstrap: str, topics: Iterable[str], *, isolation: str = "read_committed", timeout_s: float = 60.0
) -> KafkaConsumer:
    """Return a consumer at the beginning of all partitions; TimeoutError if the topics cannot be read."""
    deadline = time.monotonic() + timeout_s
    while True:
        consumer = None
        try:
            consumer = connect(
                KafkaConsumer,
                Connection(bootstrap),
                isolation_level=isolation,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                allow_auto_create_topics=False,
                max_partition_fetch_bytes=FETCH_BYTES,
                fetch_max_bytes=FETCH_BYTES,
                reconnect_backoff_max_ms=300,
                bootstrap_timeout_ms=5000,
                metrics_enabled=False,
            )
            consumer.assign([place for topic in topics for place in _partitions(consumer, topic)])
            consumer.seek_to_beginning()
        except (KafkaError, LookupError, UnreachableError) as error:
            if consumer is not None:
                consumer.close(autocommit=False, timeout_ms=1000)
            if time.monotonic() > deadline:
                raise TimeoutError(f"cannot read {topics} from {bootstrap} within {timeout_s:g} s") from error
            time.sleep(0.2)
        else:
            return consumer


def read_all(bootstrap: str, topics: Iterable[str], *, timeout_s: float = 120.0) -> dict[str, list[ConsumerRecord]]:
    """Return all committed records of each of `topics`, sorted by partition and offset.

    Reads to the end offsets at the time of the call. Transactions that are open by then must end. Raises
    TimeoutError if an end is not reached; the message names the partitions.
    """
    topics = list(topics)
    found: dict[str, list[ConsumerRecord]] = {topic: [] for topic in topics}
    deadline = time.monotonic() + timeout_s
    ends = _ends(bootstrap, topics, timeout_s)
    consumer = reader(bootstrap, topics, timeout_s=timeout_s)
    try:
        while behind := {place: end for place, end in ends.items() if consumer.position(place) < end}:
            if time.monotonic() > deadline:
                raise TimeoutError(f"committed records end before {behind}: is a transaction open?")
            for records in consumer.poll(timeout_ms=300).values():
                found[records[0].topic] += records
    finally:
        consumer.close(autocommit=False, timeout_ms=2000)
    for records in found.values():
        records.sort(key=lambda record: (record.partition, record.offset))
    return found


def end_of(bootstrap: str, topic: str) -> int:
    """Return the sum of the end offsets: the number of records, if all were written without transactions."""
    consumer = reader(bootstrap, [topic])
    try:
        return sum(consumer.end_offsets(list(consumer.assignment())).values())
    finally:
        consumer.close(autocommit=False, timeout_ms=1000)


class Tail:
    """Keeps reading new records. Yields each record once, even if its consumer had to be replaced."""

    def __init__(self, bootstrap: str, topics: Iterable[str]) -> None:
        self._bootstrap = bootstrap
        self._topics = list(topics)
        self._next: dict[TopicPartition, int] = {}
        self._consumer = reader(bootstrap, self._topics)

    def poll(self, timeout_s: float = 0.2) -> Iterator[ConsumerRecord]:
        """Yield new records; nothing while the brokers are unavailable."""
        try:
            batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        except KafkaError:
            self._replace_consumer()
            return
        for place, records in batches.items():
            for record in records:
                if record.offset >= self._next.get(place, 0):
                    self._next[place] = record.offset + 1
                    yield record

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close(autocommit=False, timeout_ms=1000)

    def _replace_consumer(self) -> None:
        self.close()
        self._consumer = reader(self._bootstrap, self._topics)
        for place, offset in self._next.items():
            self._consumer.seek(place, offset)


def _ends(bootstrap: str, topics: list[str], timeout_s: float) -> dict[TopicPartition, int]:
    """Return the end offset of each partition, uncommitted records included."""
    consumer = reader(bootstrap, topics, isolation="read_uncommitted", timeout_s=timeout_s)
    try:
        return dict(consumer.end_offsets(list(consumer.assignment())))
    finally:
        consumer.close(autocommit=False, timeout_ms=1000)


def _partitions(consumer: KafkaConsumer, topic: str) -> list[TopicPartition]:
    numbers = consumer.partitions_for_topic(topic)
    if not numbers:
        raise LookupError(topic)
    return [TopicPartition(topic, number) for number in sorted(numbers)]
