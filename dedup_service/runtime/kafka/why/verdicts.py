"""A verdict of the past, from the topic `verdicts`: found by time, since it was written soon after the page was logged.

One partition has the verdicts of an address; it is read from a minute before that time, for some seconds. Nothing but
an explanation waits for it.
"""

import time

from kafka import KafkaConsumer, errors
from kafka.structs import TopicPartition

from dedup_service.core.verdict import Verdict
from dedup_service.runtime.kafka.client import inside
from dedup_service.runtime.kafka.client.consumers import consumer
from dedup_service.runtime.kafka.client.partitioning import murmur2
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import PASSING, for_good
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.kafka.wire.keys import page_key
from dedup_service.runtime.kafka.wire.verdict import read_verdict

__all__ = ["PastVerdicts"]

SLACK_MS = 60_000
"""Clocks of two machines differ by less."""

ANSWER_S, CLOSE_S = 5.0, 5.0
POLL_MS, AT_ONCE = 100, 2000
FETCH_BYTES = 1 << 20


class PastVerdicts:
    """One thread uses it; connected when it is first needed."""

    def __init__(self, connection: Connection, topics: Topics) -> None:
        self._connection = connection
        self._topic = topics.verdicts
        self._consumer: KafkaConsumer | None = None

    def find(self, sequence: int, canonical_url: str, logged_ms: int) -> Verdict | None:
        """Return the verdict of the page at `sequence`; None where it is kept no longer, or not found in 5 s.

        Raises UnreachableError where no broker can be connected to, NotAuthorisedError where they refuse.
        """
        if self._consumer is None:
            self._consumer = consumer(self._connection, FETCH_BYTES)
        deadline = time.monotonic() + ANSWER_S
        try:
            return self._search(self._consumer, sequence, page_key(canonical_url), logged_ms, deadline)
        except errors.OffsetOutOfRangeError:
            return None
        except PASSING as error:
            if found := for_good(error, f"to read {self._topic}"):
                raise found from error
            return None

    def close(self) -> None:
        """Let go of the connection."""
        if self._consumer is not None:
            inside.close_consumer(self._consumer, CLOSE_S)

    def _search(
        self, reader: KafkaConsumer, sequence: int, key: bytes, logged_ms: int, deadline: float
    ) -> Verdict | None:
        numbers = reader.partitions_for_topic(self._topic)
        if not numbers:
            return None
        at = TopicPartition(self._topic, (murmur2(key) & 0x7FFFFFFF) % len(numbers))
        reader.assign([at])
        start = reader.offsets_for_times({at: max(0, logged_ms - SLACK_MS)}).get(at)
        if start is None:
            return None
        reader.seek(at, start.offset)
        end = reader.end_offsets([at])[at]
        while time.monotonic() < deadline and inside.position(reader, at, start.offset) < end:
            for record in reader.poll(timeout_ms=POLL_MS, max_records=AT_ONCE).get(at, []):
                if record.key == key and (verdict := _read(record.value)) is not None and verdict.sequence == sequence:
                    return verdict
        return None


def _read(value: bytes | None) -> Verdict | None:
    try:
        return read_verdict(value or b"")[0]
    except ValueError:
        return None
