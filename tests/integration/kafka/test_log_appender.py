"""Appends while a broker dies or freezes: every message at least once, and none before those ahead of it."""

import random
import threading
import time
from collections.abc import Iterator

import pytest

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import AppendLostError, RecordTooLargeError
from dedup_service.runtime.kafka.client.log_appender import LogAppender
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from tests.hangs import HANG_S
from tests.integration.kafka.reading import committed_values

pytestmark = [pytest.mark.slow, pytest.mark.broker]

SEED = 20_261_123


@pytest.fixture
def threads() -> Iterator[None]:
    """Check that no thread of a retired producer is left once its request has timed out."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + HANG_S
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        left.pop().join(0.2)
    assert not left


def numbered(topics: Topics, numbers: range, size: int = 600) -> list[Message]:
    """Messages with a number and noise, so that some hundred are several requests."""
    return [Message(topics.fingerprints, b"%d " % number + random.Random(number).randbytes(size)) for number in numbers]


def first_order(values: list[bytes]) -> list[int]:
    """The numbers in the order in which they are there for the first time."""
    return list(dict.fromkeys(int(value.partition(b" ")[0]) for value in values))


def test_messages_are_there_in_order_with_their_offsets(connection: Connection, own_topics: Topics) -> None:
    """Several requests long, with large ones among small ones."""
    appender = LogAppender(connection, "a")
    appender.open()
    try:
        messages = numbered(own_topics, range(900))
        messages[100:100] = numbered(own_topics, range(10_000, 10_003), 40_000)
        assert appender.append([]) == []
        assert appender.append(messages[:1]) == [0]
        assert appender.append(messages[1:]) == list(range(1, len(messages)))
    finally:
        appender.close()
    assert committed_values(connection, own_topics.fingerprints) == [message.value for message in messages]


@pytest.mark.long
@pytest.mark.usefixtures("threads")
def test_kills_at_any_moment_lose_nothing(wounded: Cluster, connection: Connection, own_topics: Topics) -> None:
    """Who appends again what may be lost has every message there, and for the first time in order."""
    chance = random.Random(SEED)
    stop = threading.Event()

    def hurt() -> None:
        try:
            for _ in range(3):
                time.sleep(chance.uniform(0.2, 1.5))
                wounded.kill(0)
                time.sleep(chance.uniform(0.0, 1.0))
                wounded.start(0)
        finally:
            stop.set()

    appender = LogAppender(connection, "a", timeout_s=10.0)
    appender.open()
    killer = threading.Thread(target=hurt)
    killer.start()
    done = lost = 0
    try:
        while not stop.is_set() or lost:
            try:
                appender.append(numbered(own_topics, range(done, done + 400)))
                done, lost = done + 400, 0
            except AppendLostError:
                lost += 1
                assert lost < 60
    finally:
        killer.join()
        appender.close()
    assert first_order(committed_values(connection, own_topics.fingerprints)) == list(range(done))


@pytest.mark.usefixtures("threads")
def test_a_frozen_broker_does_not_block_an_append(wounded: Cluster, connection: Connection, own_topics: Topics) -> None:
    """It is given up while the broker sleeps; what arrives late all the same is in its order, too."""
    appender = LogAppender(connection, "a", timeout_s=HANG_S)
    appender.open()
    try:
        appender.append(numbered(own_topics, range(10)))
        wounded.pause(0)
        appender._timeout_s = 3.0
        try:
            with pytest.raises(AppendLostError):
                appender.append(numbered(own_topics, range(10, 500)))
        finally:
            wounded.resume(0)
        appender._timeout_s = HANG_S
        appender.append(numbered(own_topics, range(10, 500)))
    finally:
        appender.close()
    assert first_order(committed_values(connection, own_topics.fingerprints)) == list(range(500))


def test_nothing_comes_after_a_message_that_is_too_large(connection: Connection, own_topics: Topics) -> None:
    """We refuse it before anything is sent, the topic after what was ahead of it; its place is named."""
    small = Topics(f"{own_topics.prefix}small.")
    create(connection, small, Layout(partitions=1, max_page_bytes=20_000))
    noise = random.Random(SEED).randbytes(60_000)
    appender = LogAppender(connection, "a", max_bytes=100_000)
    appender.open()
    try:
        for large in (noise * 2, noise):
            messages = [Message(small.pages, value) for value in (b"a", b"b", large, b"c")]
            with pytest.raises(RecordTooLargeError, match="message 2 ") as caught:
                appender.append(messages)
            assert caught.value.position == 2
        appender.append([Message(small.pages, b"good")])
    finally:
        appender.close()
    assert committed_values(connection, small.pages) == [b"a", b"b", b"good"]
