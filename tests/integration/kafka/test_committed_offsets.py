"""Committed offsets without joining the group: failures lose nothing, a dead network thread is replaced."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka.coordinator.consumer import ConsumerCoordinator

from dedup_service.runtime.kafka.client.admin import committed_offsets
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.client.errors import BrokerError, UnreachableError
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.log_consumer import PartitionReader
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka import Cluster
from tests.hangs import HANG_S

pytestmark = [pytest.mark.slow, pytest.mark.broker]

GROUP = "offsets-group"


@pytest.fixture
def committed(connection: Connection, own_topics: Topics) -> dict[TopicPartition, int]:
    """A group that has read two pages of partition 0 and committed that in a transaction."""
    append(connection, own_topics.pages, [Message(own_topics.pages, b"{}", partition=0)] * 2)
    member = GroupConsumer(connection, own_topics.pages, GROUP, "member", on_revoked=lambda _: None)
    producer = TransactionalProducer(connection, f"{own_topics.prefix}committer")
    producer.open()
    while not member.poll(0.2, 10):
        pass
    offsets = {TopicPartition(own_topics.pages, 0): 2}
    producer.commit([], offsets, member.group_metadata())
    member.close(leave=True)
    producer.close()
    return offsets


def resources() -> tuple[int, int]:
    """Threads and open files of this process."""
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))


def settled(before: tuple[int, int]) -> tuple[int, int]:
    """Threads and files now; waits for threads that are about to end."""
    deadline = time.monotonic() + HANG_S
    while resources() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    return resources()


def crash(*_: object) -> None:
    """A round of the library's event loop that fails; any exception may end it."""
    raise LookupError("a fault of the library")


def end_network_threads(monkeypatch: pytest.MonkeyPatch, times: int) -> list[object]:
    """End the network thread of the next consumers that ask for offsets; return those that it was done to."""
    done: list[object] = []
    real: Callable[..., Any] = ConsumerCoordinator._send_offset_fetch_request

    async def ending(self: Any, partitions: Any) -> Any:
        if len(done) < times:
            done.append(self)
            self._net._poll_once = crash  # the thread ends with that exception, and closing raises it again
        return await real(self, partitions)

    monkeypatch.setattr(ConsumerCoordinator, "_send_offset_fetch_request", ending)
    return done


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_committed_goes_through_the_one_adapter(
    connection: Connection, own_topics: Topics, committed: dict[TopicPartition, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two network threads end one after the other; the third consumer answers, and nothing of the two is left."""
    assert committed_offsets(connection, GROUP, own_topics.pages) == committed
    before = resources()
    done = end_network_threads(monkeypatch, times=2)
    assert committed_offsets(connection, GROUP, own_topics.pages) == committed
    assert len(done) == 2
    done.clear()
    assert settled(before) <= before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_member_whose_network_thread_ends_joins_again(connection: Connection, own_topics: Topics) -> None:
    """Whatever exception ended it, the next records are read."""
    with closing(GroupConsumer(connection, own_topics.pages, GROUP, "member", on_revoked=lambda _: None)) as member:
        append(connection, own_topics.pages, [Message(own_topics.pages, b"1")])
        assert [record.value for record in read(member, 1)] == [b"1"]
        assert member._consumer is not None
        member._consumer._net._poll_once = crash
        append(connection, own_topics.pages, [Message(own_topics.pages, b"2")])
        assert b"2" in [record.value for record in read(member, 2)]


def read(member: GroupConsumer, count: int) -> list[ConsumerRecord]:
    """The next records; they begin again where the group has committed, here at the first one."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + HANG_S
    while len(records) < count and time.monotonic() < deadline:
        records += member.poll(0.5, 10)
    return records


def test_a_topic_that_does_not_exist_has_no_offsets(connection: Connection) -> None:
    """Nor has it partitions."""
    assert committed_offsets(connection, GROUP, "nowhere") == {}
    reader = PartitionReader(connection, fetch_bytes=1 << 20, timeout_s=HANG_S)
    assert reader.partitions_of("nowhere") == []
    reader.close()


@pytest.mark.long
def test_failed_tries_lose_no_thread_and_no_socket(
    connection: Connection, own_topics: Topics, wounded: Cluster
) -> None:
    """Neither with a broker that is frozen, nor with one that is dead."""
    quick = Connection(connection.bootstrap, {"request_timeout_ms": "1000", "bootstrap_timeout_ms": "1500"})

    def after_three_failures() -> tuple[int, int]:
        for _ in range(3):
            with pytest.raises(UnreachableError):
                committed_offsets(quick, GROUP, own_topics.pages)
        return settled(before)

    committed_offsets(connection, GROUP, own_topics.pages)
    before = resources()
    wounded.pause(0)
    try:
        assert after_three_failures() <= before
    finally:
        wounded.resume(0)
    wounded.kill(0)
    try:
        assert after_three_failures() <= before
    finally:
        wounded.start(0)


def test_a_broker_that_freezes_between_two_questions_ends_them(
    connection: Connection, own_topics: Topics, wounded: Cluster
) -> None:
    """The brokers are asked each time, and only for so long; what the client remembers may be out of date."""
    reader = PartitionReader(connection, fetch_bytes=1 << 20, timeout_s=HANG_S)
    assert len(reader.partitions_of(own_topics.pages)) == 2
    wounded.pause(0)
    reader._timeout_s = 1.0
    try:
        with pytest.raises(BrokerError):
            reader.partitions_of(own_topics.verdicts)
    finally:
        wounded.resume(0)
        reader.close()
