"""The log as one reader sees it: committed, in order, and never quietly another one."""

import pytest
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import LogChangedError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.topics import Layout, Topics, create, remove
from tests.integration.kafka.reading import until

pytestmark = [pytest.mark.slow, pytest.mark.broker]


def messages(topics: Topics, count: int) -> list[Message]:
    """So many records for the log."""
    return [Message(topics.fingerprints, b"%d" % number, partition=0) for number in range(count)]


def test_the_end_is_that_of_what_is_committed(connection: Connection, own_topics: Topics) -> None:
    """Markers of transactions count as offsets, and reading gets to the end past them."""
    transactions = TransactionalProducer(connection, f"{own_topics.prefix}t")
    transactions.open()
    transactions.commit(messages(own_topics, 3))
    transactions.commit(messages(own_topics, 2))
    reader = LogConsumer(connection, own_topics.fingerprints)
    found: list[bytes] = []
    try:
        assert reader.end() == 7
        until(lambda: reader.position == 7, "the end", lambda: found.extend(r.value for r in reader.poll(0.2, 2)))
        assert found == [b"0", b"1", b"2", b"0", b"1"]
    finally:
        reader.close()
        transactions.close()


def test_one_record_can_be_looked_up_in_between(connection: Connection, own_topics: Topics) -> None:
    """The position stays where it was; past the end there is none."""
    append(connection, own_topics.fingerprints, messages(own_topics, 5))
    reader = LogConsumer(connection, own_topics.fingerprints)
    try:
        reader.seek(4)
        looked_up = reader.read_one(2)
        assert looked_up is not None
        assert (looked_up.offset, looked_up.value) == (2, b"2")
        assert reader.read_one(5) is None
        assert reader.position == 4
    finally:
        reader.close()


def test_a_log_that_lost_its_beginning_is_refused(connection: Connection, own_topics: Topics) -> None:
    """Records that somebody deleted are missing from every later verdict."""
    append(connection, own_topics.fingerprints, messages(own_topics, 5))
    admin = KafkaAdminClient(bootstrap_servers=connection.servers)
    admin.delete_records({TopicPartition(own_topics.fingerprints, 0): 3})
    admin.close()
    reader = LogConsumer(connection, own_topics.fingerprints)
    try:
        with pytest.raises(LogChangedError, match="deleted, truncated or created again"):
            until(lambda: False, "the refusal", lambda: reader.poll(0.2, 10))
    finally:
        reader.close()


def test_a_log_made_anew_is_refused(connection: Connection, own_topics: Topics) -> None:
    """Another topic under the same name ends before what was read."""
    append(connection, own_topics.fingerprints, messages(own_topics, 5))
    reader = LogConsumer(connection, own_topics.fingerprints)
    try:
        until(lambda: reader.position == 5, "all records", lambda: reader.poll(0.2, 10))
        remove(connection, own_topics)
        create(connection, own_topics, Layout(partitions=1))
        with pytest.raises(LogChangedError):
            until(lambda: False, "the refusal", lambda: (reader.poll(0.2, 10), reader.end()))
    finally:
        reader.close()
