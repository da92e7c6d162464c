"""Transactions while a broker dies or freezes, or a producer is fenced: all or nothing, and in limited time."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.errors import TransactionLostError
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka import Cluster
from tests.hangs import HANG_S
from tests.integration.kafka.reading import committed_values, take

pytestmark = [pytest.mark.slow, pytest.mark.broker]

SEED = 20_261_121


def batch(topics: Topics, name: str, count: int = 20) -> list[Message]:
    return [Message(topics.fingerprints, f"{name} {number}".encode(), b"key") for number in range(count)]


def whole(values: list[bytes]) -> dict[str, int]:
    """How often each name is there in full; fails where one is there in part."""
    counts = Counter(value.decode() for value in values)
    names = {name.rpartition(" ")[0] for name in counts}
    found = {}
    for name in names:
        times = {counts[f"{name} {number}"] for number in range(20)}
        assert len(times) == 1, f"transaction {name} is there in part: {times}"
        found[name] = times.pop()
    return found


@pytest.fixture
def threads() -> Iterator[None]:
    """Check that no thread of a retired producer is left once its request has timed out."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + HANG_S
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        left.pop().join(0.2)
    assert not left


@pytest.mark.usefixtures("threads")
def test_a_commit_outlives_the_broker(
    wounded: Cluster, connection: Connection, own_topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker is killed after the last send and before the commit; the commit ends when it is back, committed.

    This is the cure of the lost request: without it the commit waits until it is given up, and is reported lost.
    """
    commit = internals.commit

    def kill_first(producer: object, timeout_s: float) -> None:
        wounded.kill(0)
        threading.Timer(1.0, wounded.start, [0]).start()
        commit(producer, timeout_s)

    transactions = TransactionalProducer(connection, f"{own_topics.prefix}a", timeout_s=HANG_S)
    transactions.open()
    try:
        transactions.commit(batch(own_topics, "before"))
        with monkeypatch.context() as patched:
            patched.setattr(internals, "commit", kill_first)
            transactions.commit(batch(own_topics, "during"))
        transactions.commit(batch(own_topics, "after"))
    finally:
        transactions.close()
    assert whole(committed_values(connection, own_topics.fingerprints)) == {"before": 1, "during": 1, "after": 1}


@pytest.mark.long
@pytest.mark.usefixtures("threads")
def test_kills_at_any_moment_leave_whole_transactions(
    wounded: Cluster, connection: Connection, own_topics: Topics
) -> None:
    """What `commit` returned for is there once; what it raised for is there once or not at all; nothing in part."""
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

    transactions = TransactionalProducer(connection, f"{own_topics.prefix}a", timeout_s=HANG_S)
    transactions.open()
    transactions._timeout_s = 8.0
    killer = threading.Thread(target=hurt)
    killer.start()
    told: dict[str, bool] = {}
    try:
        while not stop.is_set():
            name = f"t{len(told)}"
            try:
                transactions.commit(batch(own_topics, name))
                told[name] = True
            except TransactionLostError:
                told[name] = False
        transactions._timeout_s = HANG_S
        transactions.commit(batch(own_topics, "last"))
    finally:
        killer.join()
        transactions.close()
    found = whole(committed_values(connection, own_topics.fingerprints))
    assert found["last"] == 1
    assert set(found.values()) == {1}
    assert {name for name, committed in told.items() if committed} <= set(found)


@pytest.mark.usefixtures("threads")
def test_a_frozen_broker_does_not_block_a_commit_indefinitely(
    wounded: Cluster, connection: Connection, own_topics: Topics
) -> None:
    """It is reported lost while the broker still sleeps, and so is the next; after that everything works again."""
    transactions = TransactionalProducer(connection, f"{own_topics.prefix}a", timeout_s=HANG_S)
    transactions.open()
    try:
        transactions.commit(batch(own_topics, "before"))
        wounded.pause(0)
        transactions._timeout_s = 3.0
        try:
            for name in ("lost 1", "lost 2"):
                with pytest.raises(TransactionLostError):
                    transactions.commit(batch(own_topics, name))
        finally:
            wounded.resume(0)
        transactions._timeout_s = HANG_S
        transactions.open()
        transactions.commit(batch(own_topics, "after"))
    finally:
        transactions.close()
    found = whole(committed_values(connection, own_topics.fingerprints))
    assert (found.pop("before"), found.pop("after")) == (1, 1)
    assert set(found.values()) <= {1}


@pytest.mark.usefixtures("threads")
def test_a_fenced_producer_raises_and_can_continue(connection: Connection, own_topics: Topics) -> None:
    """A second producer under the id makes the first one's next transaction a lost one; after that it is usable."""
    first, second = (TransactionalProducer(connection, f"{own_topics.prefix}same") for _ in range(2))
    first.open()
    try:
        first.commit(batch(own_topics, "first"))
        second.open()
        second.commit(batch(own_topics, "second"))
        with pytest.raises(TransactionLostError, match="another producer"):
            first.commit(batch(own_topics, "fenced"))
        first.commit(batch(own_topics, "again"))
        with pytest.raises(TransactionLostError, match="rewind"):
            second.commit(batch(own_topics, "fenced in turn"))
    finally:
        first.close()
        second.close()
    assert whole(committed_values(connection, own_topics.fingerprints)) == {"first": 1, "second": 1, "again": 1}


def test_offsets_are_committed_with_the_messages_or_not_at_all(connection: Connection, own_topics: Topics) -> None:
    """A generation that is over commits neither; the reader's own commits both, and the group goes on from there."""
    append(connection, own_topics.pages, [Message(own_topics.pages, b"%d" % n, partition=0) for n in range(10)])
    transactions = TransactionalProducer(connection, f"{own_topics.prefix}a")
    transactions.open()
    reader = GroupConsumer(connection, own_topics.pages, own_topics.prefix, "one", on_revoked=lambda _: None)
    try:
        take(reader, 10)
        at = TopicPartition(own_topics.pages, 0)
        group = reader.group_metadata()
        with pytest.raises(TransactionLostError):
            transactions.commit(
                batch(own_topics, "stale"), {at: 7}, group._replace(generation_id=group.generation_id + 5)
            )
        assert reader.rewind()[at] == 0
        transactions.commit(batch(own_topics, "good"), {at: 7}, group)
        assert reader.rewind()[at] == 7
        assert [record.offset for record in take(reader, 3)] == [7, 8, 9]
    finally:
        reader.close(leave=True)
        transactions.close()
    assert whole(committed_values(connection, own_topics.fingerprints)) == {"good": 1}


def test_a_commit_of_an_earlier_generation_is_lost(connection: Connection, own_topics: Topics) -> None:
    """The group knows another member under the name, which may be ourselves after joining again."""
    append(connection, own_topics.pages, [Message(own_topics.pages, b"x", partition=0)])
    transactions = TransactionalProducer(connection, f"{own_topics.prefix}a")
    transactions.open()
    reader = GroupConsumer(connection, own_topics.pages, own_topics.prefix, "one", on_revoked=lambda _: None)
    try:
        take(reader, 1)
        other = reader.group_metadata()._replace(member_id="one-somebody-else")
        with pytest.raises(TransactionLostError, match="FencedInstanceId"):
            transactions.commit([], {TopicPartition(own_topics.pages, 0): 1}, other)
    finally:
        reader.close(leave=True)
        transactions.close()
