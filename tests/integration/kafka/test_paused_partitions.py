"""Partitions that are paused and resumed give all their records, although the library forgets some."""

import time

import pytest

from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Topics
from tests.hangs import HANG_S
from tests.integration.conftest import Broker

pytestmark = pytest.mark.slow


def test_records_set_aside_by_a_pause_are_returned(broker: Broker, topics: Topics) -> None:
    """Half of a partition is read, then it is paused, the others are read to their end, and it is resumed."""
    messages = [Message(topics.pages, b"%d" % n, partition=n % 2) for n in range(20)]
    append(broker.connection, topics.pages, messages)
    reader = GroupConsumer(broker.connection, topics.pages, f"{topics.prefix}g", "one", on_revoked=lambda _: None)
    try:
        found = read(reader, 5)
        first = found[0].partition
        reader.pause([TopicPartition(topics.pages, first)])
        found += read(reader, 10)
        assert {record.partition for record in found[5:]} == {1 - first}
        assert reader.poll(0.5, 5) == []
        reader.resume(reader.paused)
        found += read(reader, 5)
    finally:
        reader.close(leave=True)
    assert sorted(int(record.value) for record in found) == list(range(20))


def read(reader: GroupConsumer, count: int) -> list:  # type: ignore[type-arg]
    """Poll, at most five records at a time, until `count` have arrived."""
    found: list = []  # type: ignore[type-arg]
    deadline = time.monotonic() + HANG_S
    while len(found) < count and time.monotonic() < deadline:
        found += reader.poll(0.2, min(5, count - len(found)))
    assert len(found) == count
    return found
