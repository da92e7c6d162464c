"""Pages read a second time, in the order of the log: their content, while the topic `pages` keeps it.

How: one consumer over all partitions, without a group; what it brings ahead of the log's order waits in a queue for
each partition, and a partition whose queue is long is paused. Within a partition the log has rising offsets, so each
record is read once.
"""

import time
from collections import deque

from kafka import errors
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.core.changelog import Source
from dedup_service.runtime.kafka.client import inside
from dedup_service.runtime.kafka.client.consumers import consumer
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import PASSING, for_good

__all__ = ["PagesAgain"]

ANSWER_S = 60.0
CLOSE_S = 5.0
POLL_MS = 200
AT_ONCE = 500
HELD_RECORDS = 1000
FETCH_BYTES = 4 << 20


class PagesAgain:
    """The records of `topic` as they stand now; what comes later is not looked for."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._topic = topic
        self._consumer = consumer(connection, FETCH_BYTES)
        numbers = self._consumer.partitions_for_topic(topic) or set()
        partitions = [TopicPartition(topic, number) for number in numbers]
        self._consumer.assign(partitions)
        self._begin = dict(self._consumer.beginning_offsets(partitions)) if partitions else {}
        self._end = dict(self._consumer.end_offsets(partitions)) if partitions else {}
        for at, offset in self._begin.items():
            self._consumer.seek(at, offset)
        self._position = dict(self._begin)
        self._held: dict[TopicPartition, deque[ConsumerRecord]] = {at: deque() for at in partitions}

    def find(self, source: Source) -> ConsumerRecord | None:
        """Return the record at `source`, None where it is kept no longer, or was asked for before.

        Raises UnreachableError where the brokers do not give it within 60 s, NotAuthorisedError where they refuse.
        """
        at = TopicPartition(source.topic, source.partition)
        if self.is_gone(source):
            return None
        held, deadline = self._held[at], time.monotonic() + ANSWER_S
        while True:
            while held and held[0].offset < source.offset:
                held.popleft()
            if held:
                return held.popleft() if held[0].offset == source.offset else None
            if self._position[at] > source.offset or self._position[at] >= self._end[at]:
                return None
            if time.monotonic() > deadline:
                raise UnreachableError(f"{self._topic}, partition {source.partition} is not given; are its brokers up?")
            self._read()

    def is_gone(self, source: Source) -> bool:
        """Whether the record at `source` is of another topic, or was deleted."""
        begin = self._begin.get(TopicPartition(source.topic, source.partition))
        return begin is None or source.offset < begin

    def close(self) -> None:
        """Let go of the connection."""
        inside.close_consumer(self._consumer, CLOSE_S)

    def _read(self) -> None:
        full = {at for at, held in self._held.items() if len(held) >= HELD_RECORDS}
        self._consumer.resume(*(self._consumer.paused() - full))
        self._consumer.pause(*full)
        try:
            batches = self._consumer.poll(timeout_ms=POLL_MS, max_records=AT_ONCE)
        except errors.OffsetOutOfRangeError:  # deleted while we were reading: go on with what is left
            self._begin = dict(self._consumer.beginning_offsets(list(self._held)))
            for at, offset in self._begin.items():
                if self._position[at] < offset:
                    self._consumer.seek(at, offset)
                    self._position[at] = offset
            return
        except PASSING as error:
            if found := for_good(error, f"to read {self._topic}"):
                raise found from error
            time.sleep(POLL_MS / 1000)
            return
        for at, records in batches.items():
            self._held[at].extend(records)
        for at, before in self._position.items():
            self._position[at] = inside.position(self._consumer, at, before)
