"""Readers without a group: the log, committed, in order and never silently another one; and any partitions."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaAdminClient
from kafka.structs import ConsumerGroupMetadata, TopicPartition

from dedup_service.runtime.kafka.client.admin import committed_offsets
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import LogChangedError, UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, PartitionReader
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.topics import Layout, Topics, create, remove
from deploy.kafka import Cluster
from tests.hangs import HANG_S
from tests.integration.kafka.reading import until

pytestmark = [pytest.mark.slow, pytest.mark.broker]


def messages(topics: Topics, count: int) -> list[Message]:
    """Return so many records for the log."""
    return [Message(topics.fingerprints, b"%d" % number, partition=0) for number in range(count)]


def delete_below(connection: Connection, partition: TopicPartition, offset: int) -> None:
    """Delete records, as retention does."""
    admin = KafkaAdminClient(bootstrap_servers=connection.servers)
    admin.delete_records({partition: offset})
    admin.close()


@pytest.fixture
def partitions(connection: Connection) -> Iterator[PartitionReader]:
    """A reader of partitions."""
    reader = PartitionReader(connection, fetch_bytes=1 << 20, timeout_s=HANG_S)
    yield reader
    reader.close()


def test_a_log_may_be_numbered_from_any_number(connection: Connection, own_topics: Topics) -> None:
    """Positions, ends, records and progress fit each other; what is before the first record is its place."""
    append(connection, own_topics.fingerprints, messages(own_topics, 4))
    reader, steps = LogConsumer(connection, own_topics.fingerprints), list[tuple[int, int]]()
    try:
        reader.number_from(1000)
        assert (reader.position, reader.end()) == (1000, 1004)
        one = reader.read_one(1002)
        assert one is not None
        assert (one.offset, one.value, reader.position) == (1002, b"2", 1000)
        reader.seek(1003)
        assert [record.offset for batch in reader.read_to_end() for record in batch] == [1003]
        reader.seek(0)
        read = [record for batch in reader.read_to_end(lambda *step: steps.append(step)) for record in batch]
        assert [(record.offset, record.value) for record in read] == [(1000 + at, b"%d" % at) for at in range(4)]
        assert (steps[0], steps[-1]) == ((0, 4), (4, 4))
    finally:
        reader.close()


def test_the_end_is_that_of_committed_records(connection: Connection, own_topics: Topics) -> None:
    """Markers of transactions count as offsets, and reading reaches the end past them."""
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
    """Deleted records would be missing from every later verdict."""
    append(connection, own_topics.fingerprints, messages(own_topics, 5))
    delete_below(connection, TopicPartition(own_topics.fingerprints, 0), 3)
    reader = LogConsumer(connection, own_topics.fingerprints)
    try:
        with pytest.raises(LogChangedError, match="deleted, truncated or created again"):
            until(lambda: False, "the refusal", lambda: reader.poll(0.2, 10))
    finally:
        reader.close()


def test_a_log_that_was_created_again_is_refused(connection: Connection, own_topics: Topics) -> None:
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


def test_the_log_is_read_to_its_end_in_batches(connection: Connection, own_topics: Topics) -> None:
    """Up to the end that it has at the start or that is given, from the position on; progress ends at the end."""
    append(connection, own_topics.fingerprints, messages(own_topics, 7))
    reader = LogConsumer(connection, own_topics.fingerprints)
    progress: list[tuple[int, int]] = []
    try:
        reader.seek(1)
        batches = [
            [record.offset for record in batch]
            for batch in reader.read_to_end(lambda done, total: progress.append((done, total)), max_records=2)
        ]
        assert [offset for batch in batches for offset in batch] == [1, 2, 3, 4, 5, 6]
        assert max(map(len, batches)) == 2
        assert (progress[0], progress[-1]) == ((1, 7), (7, 7))
        reader.seek(0)
        assert [record.offset for batch in reader.read_to_end(max_records=2, end=3) for record in batch][:3] == [
            0,
            1,
            2,
        ]
        reader.seek(7)
        assert list(reader.read_to_end()) == []
    finally:
        reader.close()


def test_records_are_found_by_their_place(
    connection: Connection, own_topics: Topics, partitions: PartitionReader
) -> None:
    """One that was deleted or never written is None; one partition after another, with one reader."""
    first, second = partitions.partitions_of(own_topics.pages)
    assert partitions.partitions_of("no-such-topic") == []
    append(connection, own_topics.pages, [Message(own_topics.pages, b"%d" % n, partition=n % 2) for n in range(8)])
    for partition, offset, value in ((first, 2, b"4"), (second, 0, b"1"), (second, 3, b"7")):
        record = partitions.read_at(partition, offset)
        assert record is not None
        assert (record.offset, record.value) == (offset, value)
    delete_below(connection, first, 3)
    delete_below(connection, second, 4)
    assert partitions.read_at(first, 2) is None
    assert partitions.read_at(second, 2) is None, "nothing is left of the partition"
    assert partitions.read_at(first, 9) is None
    record = partitions.read_at(first, 3)
    assert record is not None
    assert record.value == b"6"


def test_partitions_are_read_to_their_ends(
    connection: Connection, own_topics: Topics, partitions: PartitionReader
) -> None:
    """Records are in order within each; paused partitions wait; deleted records are skipped, as `beginnings` says."""
    append(connection, own_topics.pages, [Message(own_topics.pages, b"%d" % n, partition=n % 2) for n in range(10)])
    first, second = partitions.partitions_of(own_topics.pages)
    ends = partitions.ends([first, second])
    assert (ends, partitions.beginnings) == ({first: 5, second: 5}, {first: 0, second: 0})
    partitions.assign(partitions.beginnings)
    found: list[bytes] = []
    until(
        lambda: partitions.positions[first] == 5,
        "one partition",
        lambda: found.extend(record.value for record in partitions.poll(0.2, 2, paused={second})),
    )
    assert found == [b"0", b"2", b"4", b"6", b"8"]
    assert partitions.positions[second] == 0
    assert [r.value for batch in partitions.read(ends) for r in batch] == [b"1", b"3", b"5", b"7", b"9"]
    delete_below(connection, second, 3)
    partitions.assign({second: 1})
    assert [record.value for batch in partitions.read({second: 5}) for record in batch] == [b"7", b"9"]
    assert partitions.beginnings[second] == 3
    with closing(PartitionReader(connection, fetch_bytes=1 << 20, timeout_s=HANG_S)) as hasty:
        hasty.assign({second: 5})
        hasty._timeout_s = 1.0
        with pytest.raises(UnreachableError, match="no record within 1 s"):
            list(hasty.read({second: 6}))


def test_partitions_can_be_read_from_a_time_on(
    connection: Connection, own_topics: Topics, partitions: PartitionReader
) -> None:
    """The first record that is not older; none where all are."""
    append(connection, own_topics.pages, [Message(own_topics.pages, b"0", partition=0)])
    time.sleep(0.05)
    middle_ms = int(time.time() * 1000)
    time.sleep(0.05)
    append(connection, own_topics.pages, [Message(own_topics.pages, b"1", partition=0)])
    first, _ = partitions.partitions_of(own_topics.pages)
    assert partitions.offset_at(first, 0) == 0
    assert partitions.offset_at(first, middle_ms) == 1
    assert partitions.offset_at(first, middle_ms + 3_600_000) is None


@pytest.mark.long
def test_a_reader_waits_for_an_absent_broker(wounded: Cluster, connection: Connection, own_topics: Topics) -> None:
    """The reader continues where the broker comes back in time, and raises where it does not."""
    append(connection, own_topics.fingerprints, messages(own_topics, 1))
    append(connection, own_topics.pages, [Message(own_topics.pages, b"a page", partition=1)])
    patient, hasty = (PartitionReader(connection, fetch_bytes=1 << 20, timeout_s=HANG_S) for _ in range(2))
    for reader in (patient, hasty):
        assert reader.read_at(TopicPartition(own_topics.fingerprints, 0), 0) is not None
    page = TopicPartition(own_topics.pages, 1)
    hasty._timeout_s = 1.0
    wounded.kill(0)
    back = threading.Timer(3.0, wounded.start, [0])
    back.start()
    try:
        with pytest.raises(UnreachableError):
            hasty.read_at(page, 0)
        record = patient.read_at(page, 0)
        assert record is not None
        assert record.value == b"a page"
        assert patient.ends([page]) == {page: 1}
    finally:
        back.join()
        patient.close()
        hasty.close()


def test_offsets_of_a_group_are_read_without_joining_it(connection: Connection, own_topics: Topics) -> None:
    """Only partitions with a committed offset have one; a group that never committed has none."""
    group = f"{own_topics.prefix}group"
    second = TopicPartition(own_topics.pages, 1)
    transactions = TransactionalProducer(connection, f"{own_topics.prefix}t")
    transactions.open()
    transactions.commit([], {second: 4}, ConsumerGroupMetadata(group))
    transactions.close()
    assert committed_offsets(connection, group, own_topics.pages) == {second: 4}
    assert committed_offsets(connection, f"{group}-other", own_topics.pages) == {}
    admin = KafkaAdminClient(bootstrap_servers=connection.servers)
    assert not admin.describe_groups([group])[group]["members"]
    admin.close()
