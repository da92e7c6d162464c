"""The backlog of the steps, measured from outside on a real broker: true while they stand still."""

import time
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.structs import TopicPartition

from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.probes import BLIND_LIMIT_S, Health
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.monitor import BacklogMonitor
from dedup_service.runtime.kafka.state.step_offsets import DECIDE, FINGERPRINT, StepOffsets
from dedup_service.runtime.kafka.status import Backlog, PartitionBacklog, ServiceStatus, StepStatus
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka import Cluster
from tests.hangs import HANG_S
from tests.integration.kafka.reading import until

pytestmark = [pytest.mark.slow, pytest.mark.broker]

PUBLISHED_S = int(time.time())


class Clocks:
    """Monotonic and wall time of a test."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def monotonic(self) -> float:
        return 1000.0 + self.passed_s

    def wall(self) -> float:
        return PUBLISHED_S + self.passed_s


@pytest.fixture
def clocks() -> Clocks:
    """Time stands still until the test moves it."""
    return Clocks()


@pytest.fixture
def monitor(connection: Connection, own_topics: Topics, clocks: Clocks) -> Iterator[BacklogMonitor]:
    """A monitor without its thread: the test measures."""
    made = BacklogMonitor(
        connection, own_topics, f"{own_topics.prefix}g", clock=clocks.monotonic, wall_clock=clocks.wall
    )
    yield made
    made.disconnect()


def publish(connection: Connection, topics: Topics, numbers: range, timestamp_s: float = PUBLISHED_S) -> None:
    """Put records into partition 0 of `pages`."""
    producer = KafkaProducer(bootstrap_servers=connection.servers)
    for number in numbers:
        producer.send(topics.pages, b"%d" % number, partition=0, timestamp_ms=int(1000 * timestamp_s))
    producer.flush()
    producer.close()


def advance(connection: Connection, topics: Topics, step: str, offset: int) -> None:
    """Write that `step` has done what is below `offset` of partition 0."""
    offsets = StepOffsets(connection, topics)
    append(connection, topics.offsets, list(offsets.messages(step, {TopicPartition(topics.pages, 0): offset})))


def row(backlog: Backlog, step: str, number: int = 0) -> PartitionBacklog:
    """Return what `step` has not done of a partition."""
    (found,) = [row for row in backlog.partitions if (row.step, row.number) == (step, number)]
    return found


def test_lag_and_ages_grow_while_the_steps_stand_still(
    connection: Connection, own_topics: Topics, monitor: BacklogMonitor, clocks: Clocks
) -> None:
    """Nobody reads, publishing goes on: lag, the age of the oldest page and the time of the stall say so."""
    publish(connection, own_topics, range(10))
    clocks.passed_s = 5.0
    first = row(monitor.measure(), FINGERPRINT)
    assert (first.partition, first.lag, first.oldest_s, first.stalled_s) == (f"{own_topics.pages}-0", 10, 5.0, 0.0)
    publish(connection, own_topics, range(20), PUBLISHED_S + 30)
    clocks.passed_s = 65.0
    later = monitor.measure()
    assert {(one.lag, one.oldest_s, one.stalled_s) for one in later.partitions if one.number == 0} == {(30, 65.0, 60.0)}
    assert {(one.lag, one.oldest_s, one.stalled_s) for one in later.partitions if one.number == 1} == {(0, 0.0, 0.0)}
    assert later.lag(DECIDE) == {f"{own_topics.pages}-0": 30, f"{own_topics.pages}-1": 0}


def test_a_step_that_makes_progress_does_not_stall(
    connection: Connection, own_topics: Topics, monitor: BacklogMonitor, clocks: Clocks
) -> None:
    """Behind, but moving: the age is that of the oldest record that waits now; each step has its own."""
    publish(connection, own_topics, range(10))
    publish(connection, own_topics, range(10, 20), PUBLISHED_S + 10)
    monitor.measure()
    for passed_s, offset in ((30.0, 5), (60.0, 10)):
        clocks.passed_s = passed_s
        advance(connection, own_topics, FINGERPRINT, offset)
        moving = row(monitor.measure(), FINGERPRINT)
    assert (moving.offset, moving.lag, moving.oldest_s, moving.stalled_s) == (10, 10, 50.0, 0.0)
    assert row(monitor.backlog(), DECIDE).stalled_s == 60.0
    advance(connection, own_topics, FINGERPRINT, 20)
    advance(connection, own_topics, DECIDE, 20)
    assert {(one.lag, one.oldest_s, one.stalled_s) for one in monitor.measure().partitions} == {(0, 0.0, 0.0)}


def test_the_marker_of_a_transaction_is_no_waiting_page(
    connection: Connection, own_topics: Topics, monitor: BacklogMonitor, clocks: Clocks
) -> None:
    """A crawler may publish in transactions; after its last page nothing waits, though the partition goes on."""
    transactions = TransactionalProducer(connection, f"{own_topics.prefix}t")
    transactions.open()
    transactions.commit([Message(own_topics.pages, b"page", partition=0)])
    transactions.close()
    for step in (FINGERPRINT, DECIDE):
        advance(connection, own_topics, step, 1)
    monitor.measure()
    clocks.passed_s = 600.0
    assert {(one.lag, one.stalled_s) for one in monitor.measure().partitions} == {(0, 0.0)}
    publish(connection, own_topics, range(1))
    assert row(monitor.measure(), DECIDE).lag == 1


@pytest.mark.parametrize(
    ("timestamp_s", "oldest_s"), [(PUBLISHED_S + 1800, 40.0), (PUBLISHED_S - 9000, 9040.0)], ids=["ahead", "behind"]
)
def test_timestamps_are_those_of_the_producer(
    connection: Connection,
    own_topics: Topics,
    monitor: BacklogMonitor,
    clocks: Clocks,
    timestamp_s: float,
    oldest_s: float,
) -> None:
    """A page from the future has no negative age, and is as old as it was seen waiting; the stall ignores both."""
    publish(connection, own_topics, range(1), timestamp_s)
    assert row(monitor.measure(), DECIDE).oldest_s == max(0.0, oldest_s - 40.0)
    clocks.passed_s = 40.0
    waiting = row(monitor.measure(), DECIDE)
    assert (waiting.oldest_s, waiting.stalled_s) == (oldest_s, 40.0)


def test_records_beyond_retention_are_counted_while_the_steps_stand_still(
    connection: Connection, own_topics: Topics, monitor: BacklogMonitor
) -> None:
    """They are lost, or about to be, before any step has noticed."""
    publish(connection, own_topics, range(20))
    advance(connection, own_topics, FINGERPRINT, 10)
    advance(connection, own_topics, DECIDE, 4)
    monitor.measure()
    admin = KafkaAdminClient(bootstrap_servers=connection.servers)
    admin.delete_records({TopicPartition(own_topics.pages, 0): 15})
    admin.close()
    backlog = monitor.measure()
    assert [(row(backlog, step).deleted, row(backlog, step).lag) for step in (FINGERPRINT, DECIDE)] == [(5, 5), (11, 5)]


@pytest.mark.long
def test_without_brokers_the_figures_are_old_and_say_so(
    wounded: Cluster, connection: Connection, own_topics: Topics
) -> None:
    """The last figures stay, with the time at which they were true; /readyz gives the reason; it ends by itself."""
    publish(connection, own_topics, range(3))
    monitor = BacklogMonitor(connection, own_topics, f"{own_topics.prefix}g", interval_s=0.1)
    monitor.start()
    try:
        until(lambda: bool(monitor.backlog().partitions), "a measurement")
        wounded.kill(0)
        until(lambda: bool(monitor.backlog().problem), "a failed measurement")
        blind = monitor.backlog()
        assert row(blind, DECIDE).lag == 3
        steps = tuple(StepStatus(step=step, ticked_at=0.0, assigned=(1,)) for step in (FINGERPRINT, DECIDE))
        now = [blind.measured_at or 0.0]
        health = Health(lambda: ServiceStatus(None, steps, 2, monitor.backlog()), clock=lambda: now[0])
        assert health.ready().good
        now[0] += BLIND_LIMIT_S + 10
        assert not health.ready().good
        assert "for 25 s it is not known whether pages wait: no broker" in health.ready().text
        wounded.start(0)
        until(lambda: monitor.backlog().problem == "", "a measurement after the outage")
        assert (monitor.backlog().measured_at or 0.0) > (blind.measured_at or 0.0)
        assert row(monitor.backlog(), DECIDE).lag == 3
    finally:
        if not wounded.answers(0):
            wounded.start(0)
        monitor.close(5.0)


def test_a_missing_topic_does_not_end_the_monitor(connection: Connection) -> None:
    """Whatever is wrong is a reason, never an error of the service."""
    monitor = BacklogMonitor(connection, Topics("nowhere."), "g", interval_s=0.1)
    monitor.start()
    until(lambda: bool(monitor.backlog().problem), "a failed measurement")
    assert "nowhere.pages is not there" in monitor.backlog().problem
    monitor.close(5.0)


def test_pages_behind_an_open_transaction_of_a_publisher_are_a_stall(
    connection: Connection, own_topics: Topics, monitor: BacklogMonitor, clocks: Clocks
) -> None:
    """They can be neither read nor counted, for as long as the publisher likes; a short one is no stall."""
    publisher = KafkaProducer(bootstrap_servers=connection.servers, transactional_id=f"{own_topics.prefix}crawler")
    publisher.init_transactions()
    publisher.begin_transaction()
    publisher.send(own_topics.pages, b"0", partition=0).get(timeout=HANG_S)
    publish(connection, own_topics, range(3))
    assert row(monitor.measure(), FINGERPRINT).stalled_s == 0
    clocks.passed_s = 100.0
    now = row(monitor.measure(), FINGERPRINT)
    assert (now.lag, now.blocked, now.stalled_s) == (0, True, 100.0)
    publisher.commit_transaction()
    publisher.close()
    until(lambda: row(monitor.measure(), FINGERPRINT).lag > 0, "the lag")
    assert not row(monitor.backlog(), FINGERPRINT).blocked


@pytest.mark.long
def test_a_transaction_that_keeps_the_steps_from_reading_on_is_named(
    connection: Connection, own_topics: Topics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that stays open on `dedup.offsets` is on /readyz, in the log and a metric, until it ends."""
    monkeypatch.setattr("dedup_service.runtime.kafka.monitor._ANSWER_S", 0.5)
    monkeypatch.setattr("dedup_service.runtime.kafka.monitor._ASK_TRANSACTIONS_S", 0.0)
    publish(connection, own_topics, range(3))
    name = f"{own_topics.prefix}g.decide.1"
    frozen = KafkaProducer(bootstrap_servers=connection.servers, transactional_id=name)
    frozen.init_transactions()
    frozen.begin_transaction()
    frozen.send(own_topics.offsets, b"{}", b"{}", partition=0).get(timeout=HANG_S)
    monitor = BacklogMonitor(
        connection, own_topics, f"{own_topics.prefix}g", interval_s=0.1, wall_clock=lambda: time.time() + 100
    )
    monitor.start()
    try:
        until(lambda: bool(monitor.backlog().transactions), "the transaction")
        (found,) = monitor.backlog().transactions
        assert (found.topic, found.partition, found.transactional_id) == (own_topics.offsets, 0, name)
        assert found.producer_id >= 0
        assert abs(found.since_ms / 1000 - time.time()) < 60
        steps = tuple(StepStatus(step=step, ticked_at=0.0, assigned=(0,)) for step in (FINGERPRINT, DECIDE))

        def status() -> ServiceStatus:
            return ServiceStatus(None, steps, 2, monitor.backlog())

        began = monitor.backlog().measured_at or 0.0
        health = Health(status, clock=lambda: began + BLIND_LIMIT_S + 10)
        for part in (
            f"{own_topics.offsets}-0 ",
            name,
            f"producer id {found.producer_id}",
            "Ongoing",
            "open there since",
        ):
            assert part in health.ready().text
            assert part in caplog.text
        labels = {
            "topic": own_topics.offsets,
            "partition": "0",
            "transactional_id": name,
            "producer_id": str(found.producer_id),
        }
        registry = Metrics(status, health).registry
        assert registry.get_sample_value("twinsieve_open_transaction_seconds", labels) is not None
        frozen.commit_transaction()
        until(lambda: not monitor.backlog().transactions and not monitor.backlog().problem, "its end")
        assert registry.get_sample_value("twinsieve_open_transaction_seconds", labels) is None
    finally:
        monitor.close(5.0)
        frozen.close()


def test_which_processes_there_are(
    connection: Connection, own_topics: Topics, monitor: BacklogMonitor, clocks: Clocks
) -> None:
    """By the names in the groups, with their partitions of `pages`, also one that has none."""
    assert monitor.measure().members == ()
    readers = [
        GroupConsumer(connection, own_topics.pages, f"{own_topics.prefix}g", name, on_revoked=lambda _: None)
        for name in ("first", "second", "third")
    ]
    try:

        def are_known() -> bool:
            for reader in readers:
                reader.poll(0.05, 1)
            clocks.passed_s += 30.0
            members = monitor.measure().members
            assert {one.step for one in members} <= {FINGERPRINT}
            return [one.name for one in members] == ["first", "second", "third"] and sorted(
                one.partitions for one in members
            ) == [(), (0,), (1,)]

        until(are_known, "the members of the group")
    finally:
        for reader in readers:
            reader.close()
