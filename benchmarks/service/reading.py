"""What a plain consumer sees of a topic: committed records, without a group.

`read_all` reads topics from beginning to end; `Tail` goes on reading while a round runs. Both survive brokers that are
away, and nothing else: what the service wrote is to be seen as any consumer would see it.
"""

import time
from collections.abc import Iterable, Iterator

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaError

__all__ = ["Tail", "end_of", "read_all", "reader"]

FETCH_BYTES = 16 << 20


def reader(
    bootstrap: str, topics: Iterable[str], *, isolation: str = "read_committed", timeout_s: float = 60.0
) -> KafkaConsumer:
    """Return a consumer at the beginning of all partitions of `topics`; TimeoutError where they are not to be had."""
    deadline = time.monotonic() + timeout_s
    while True:
        consumer = None
        try:
            consumer = KafkaConsumer(
                bootstrap_servers=bootstrap.split(","),
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
        except (KafkaError, LookupError) as error:
            if consumer is not None:
                consumer.close(autocommit=False, timeout_ms=1000)
            if time.monotonic() > deadline:
                raise TimeoutError(f"no reading of {topics} from {bootstrap} within {timeout_s:g} s") from error
            time.sleep(0.2)
        else:
            return consumer


def read_all(bootstrap: str, topics: Iterable[str], *, timeout_s: float = 120.0) -> dict[str, list[ConsumerRecord]]:
    """Return all committed records of each of `topics`, partition by partition in order of offset.

    The end is that of the moment of the call, open transactions included: they have to end. TimeoutError where it is
    not reached, which names who is behind.
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
    """Return the sum of the partitions' ends: the number of records where none was written in a transaction."""
    consumer = reader(bootstrap, [topic])
    try:
        return sum(consumer.end_offsets(list(consumer.assignment())).values())
    finally:
        consumer.close(autocommit=False, timeout_ms=1000)


class Tail:
    """Reads on and on. A record is handed out once, also where the consumer had to be made anew."""

    def __init__(self, bootstrap: str, topics: Iterable[str]) -> None:
        self._bootstrap = bootstrap
        self._topics = list(topics)
        self._next: dict[TopicPartition, int] = {}
        self._consumer = reader(bootstrap, self._topics)

    def poll(self, timeout_s: float = 0.2) -> Iterator[ConsumerRecord]:
        """Yield what is new; nothing while the brokers are away."""
        try:
            batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        except KafkaError:
            self._again()
            return
        for place, records in batches.items():
            for record in records:
                if record.offset >= self._next.get(place, 0):
                    self._next[place] = record.offset + 1
                    yield record

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close(autocommit=False, timeout_ms=1000)

    def _again(self) -> None:
        self.close()
        self._consumer = reader(self._bootstrap, self._topics)
        for place, offset in self._next.items():
            self._consumer.seek(place, offset)


def _ends(bootstrap: str, topics: list[str], timeout_s: float) -> dict[TopicPartition, int]:
    """Return where each partition ends, whether what is there is committed or not."""
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
