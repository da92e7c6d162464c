"""Read with deadlines: the expected records arrive, or the test fails and says what was missing."""

import time
from collections.abc import Callable

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from tests.hangs import HANG_S


def until(reached: Callable[[], bool], what: str, turn: Callable[[], object] = lambda: time.sleep(0.02)) -> None:
    """Call `turn` until `reached` holds."""
    deadline = time.monotonic() + HANG_S
    while not reached():
        assert time.monotonic() < deadline, f"not within {HANG_S:g} s: {what}"
        turn()


def take(reader: GroupConsumer, count: int) -> list[ConsumerRecord]:
    """Poll until `count` records have arrived."""
    found: list[ConsumerRecord] = []
    until(lambda: len(found) >= count, f"{count} records", lambda: found.extend(reader.poll(0.2, count - len(found))))
    return found


def committed_values(connection: Connection, topic: str) -> list[bytes]:
    """Every committed value of a topic with one partition, in order."""
    reader = LogConsumer(connection, topic)
    values: list[bytes] = []
    try:
        end = reader.end()
        until(
            lambda: reader.position >= end,
            f"the end of {topic}",
            lambda: values.extend(record.value for record in reader.poll(0.2, 500)),
        )
    finally:
        reader.close()
    return values
