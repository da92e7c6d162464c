"""A member of a group: it joins with any polling, once under any name, and reports everything that it lost."""

import threading
from collections.abc import Callable
from contextlib import closing

import pytest
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.errors import InstanceInUseError
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka import Cluster
from tests.integration.kafka.conftest import QUICK
from tests.integration.kafka.reading import take, until

pytestmark = [pytest.mark.slow, pytest.mark.broker]

RECORDS = 40


class Member:
    """A consumer that keeps its records, and drops those of revoked partitions."""

    def __init__(self, connection: Connection, topics: Topics, instance: str, *, on_demand: bool = False) -> None:
        self.found: list[ConsumerRecord] = []
        self.begun: list[TopicPartition] = []
        self.expired: list[tuple[TopicPartition, int, int]] = []
        self.reader = GroupConsumer(
            connection,
            topics.pages,
            f"{topics.prefix}g",
            instance,
            on_revoked=self._revoked,
            on_assigned=self.begun.extend,
            on_expired=lambda partition, start, end: self.expired.append((partition, start, end)),
            session_timeout_s=10.0,
            on_demand=on_demand,
        )

    def turn(self, timeout_s: float = 0.05) -> None:
        """Poll once."""
        records = self.reader.poll(timeout_s, 100)  # may call `_revoked`
        self.found += records

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.found = [r for r in self.found if TopicPartition(r.topic, r.partition) not in partitions]


def publish(connection: Connection, topics: Topics) -> None:
    """Put records into both partitions."""
    append(connection, topics.pages, [Message(topics.pages, b"%d" % n, partition=n % 2) for n in range(RECORDS)])


def both(*members: Member) -> Callable[[], None]:
    """Return a function that polls each member once."""

    def turn() -> None:
        for member in members:
            member.turn()

    return turn


def test_a_member_joins_however_short_its_polls_are(connection: Connection, own_topics: Topics) -> None:
    """A join that is answered between two polls is not lost."""
    publish(connection, own_topics)
    member = Member(connection, own_topics, "one")
    pause = threading.Event()

    def turn() -> None:
        member.turn(0.0)
        pause.wait(0.05)

    try:
        until(lambda: len(member.found) == RECORDS, "all records", turn)
    finally:
        member.reader.close(leave=True)


def test_a_member_alone_joins_once(connection: Connection, own_topics: Topics) -> None:
    """It knows the partitions before it joins: to learn of them later is another join, which ends transactions."""
    publish(connection, own_topics)
    member = Member(connection, own_topics, "one")
    try:
        until(lambda: len(member.found) == RECORDS, "all records", member.turn)
        joined = member.reader.group_metadata().generation_id
        for _ in range(20):
            member.turn()
        assert (joined, member.reader.group_metadata().generation_id) == (1, 1)
    finally:
        member.reader.close(leave=True)


@pytest.mark.parametrize("added", ["away", "back"])
def test_a_leader_that_comes_back_gets_partitions_that_are_added(
    wounded: Cluster, connection: Connection, own_topics: Topics, added: str
) -> None:
    """Whether they came while it was away or afterwards; as a follower it would leave them to nobody."""
    quick = Connection(wounded.bootstrap, QUICK | {"metadata_max_age_ms": "500"})
    before = Member(connection, own_topics, "one")
    until(lambda: len(before.reader.assigned) == 2, "both partitions", before.turn)
    before.reader.close()
    again = Member(quick, own_topics, "one")
    try:
        if added == "back":
            until(lambda: len(again.reader.assigned) == 2, "both partitions again", again.turn)
        with closing(KafkaAdminClient(bootstrap_servers=connection.servers)) as admin:
            admin.create_partitions({own_topics.pages: 3})
        append(connection, own_topics.pages, [Message(own_topics.pages, b"new", partition=2)])
        until(lambda: [record.partition for record in again.found] == [2], "the record of the third", again.turn)
    finally:
        again.reader.close(leave=True)


def test_of_two_processes_with_one_name_the_first_stops(connection: Connection, own_topics: Topics) -> None:
    """It raises after it was fenced three times; the other one continues."""
    publish(connection, own_topics)
    one, two = Member(connection, own_topics, "same"), Member(connection, own_topics, "same")
    try:
        until(lambda: bool(one.reader.assigned), "the first is in", one.turn)
        with pytest.raises(InstanceInUseError, match="stop one of the two"):
            until(lambda: False, "the first stops", both(two, one))
        one.reader.close()
        until(lambda: len(two.found) == RECORDS, "the second reads", two.turn)
    finally:
        two.reader.close(leave=True)


def test_records_that_retention_deleted_are_counted(connection: Connection, own_topics: Topics) -> None:
    """Reading continues at the beginning, and the number of missing records is known."""
    publish(connection, own_topics)
    at = TopicPartition(own_topics.pages, 0)
    member = Member(connection, own_topics, "one")
    transactions = TransactionalProducer(connection, f"{own_topics.prefix}t")
    transactions.open()
    take(member.reader, 1)
    transactions.commit([], {at: 3}, member.reader.group_metadata())
    member.reader.close(leave=True)
    admin = KafkaAdminClient(bootstrap_servers=connection.servers)
    admin.delete_records({at: 10})
    admin.close()
    again = Member(connection, own_topics, "one")
    try:
        until(lambda: any(r.partition == 0 for r in again.found), "records of partition 0", again.turn)
        assert min(record.offset for record in again.found if record.partition == 0) == 10
        assert again.expired == [(at, 3, 10)]
    finally:
        again.reader.close(leave=True)
        transactions.close()


def test_rewinding_reads_again_what_was_not_committed(connection: Connection, own_topics: Topics) -> None:
    """Reading continues from the committed offset, or else from the beginning."""
    publish(connection, own_topics)
    member = Member(connection, own_topics, "one")
    try:
        until(lambda: len(member.found) == RECORDS, "all records", member.turn)
        assert set(member.reader.rewind().values()) == {0}
        member.found.clear()
        until(lambda: len(member.found) == RECORDS, "all records again", member.turn)
    finally:
        member.reader.close(leave=True)


def test_a_member_on_demand_reads_what_it_is_asked_for(connection: Connection, own_topics: Topics) -> None:
    """It is a member without reading anything, reads a part, and goes back to another."""
    publish(connection, own_topics)
    member = Member(connection, own_topics, "one", on_demand=True)
    first, second = (TopicPartition(own_topics.pages, number) for number in (0, 1))
    try:
        until(lambda: len(member.begun) == 2, "both partitions", member.turn)
        for _ in range(20):
            member.turn()
        assert member.found == []
        for partition, start in ((first, 7), (second, 12), (first, 2)):
            member.found.clear()
            member.reader.read_only({partition: (start, start + 1)})
            until(lambda: bool(member.found), "a record", member.turn)
            found = member.found[0]
            assert (found.partition, found.offset) == (partition.partition, start)
    finally:
        member.reader.close(leave=True)
