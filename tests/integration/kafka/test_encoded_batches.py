"""Messages that are handed over as whole batches are written as the library would have written them."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.record.default_records import DefaultRecordBatchBuilder

from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.encoded_batches import encode_record
from dedup_service.runtime.kafka.client.errors import RecordTooLargeError
from dedup_service.runtime.kafka.client.producers import Message, partition_for
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.topics import Topics
from tests.chaos.reading import read_all
from tests.integration.conftest import PARTITIONS, Broker

names = st.text(max_size=90)
contents = st.binary(max_size=200)
messages = st.builds(
    Message,
    st.just("topic"),
    st.none() | contents,
    st.none() | contents,
    st.lists(st.tuples(names, contents), max_size=6).map(tuple),
)


@given(st.lists(messages, min_size=1, max_size=150))
def test_records_have_the_bytes_of_the_library(some: list[Message]) -> None:
    """Key, value and headers of any length; a message with neither key nor value has an empty value, as `send` does."""
    library = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    for at, message in enumerate(some):
        value = b"" if message.key is None and message.value is None else message.value
        library.append(at, 1000, message.key, value, list(message.headers))
    header = library.header_size_in_bytes()
    assert b"".join(encode_record(at, message) for at, message in enumerate(some)) == bytes(library._buffer[header:])


def test_a_long_value_has_the_bytes_of_the_library() -> None:
    """Its length takes three bytes."""
    message = Message("topic", b"v" * 70_000, b"k" * 9_000, (("n", b"c" * 20_000),))
    library = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    library.append(9_000, 1000, message.key, message.value, list(message.headers))
    assert encode_record(9_000, message) == bytes(library._buffer[library.header_size_in_bytes() :])


@pytest.fixture
def producer(broker: Broker, topics: Topics) -> Iterator[TransactionalProducer]:
    """A producer of transactions."""
    made = TransactionalProducer(broker.connection, f"{topics.prefix}batches")
    made.open()
    with closing(made):
        yield made


def keyed(topics: Topics, count: int, size: int) -> list[Message]:
    """Messages of two topics in turns, of random bytes, which do not compress."""
    noise = random.Random(3)
    names = (topics.verdicts, topics.unique)
    return [
        Message(
            names[at % 2], at.to_bytes(4, "big") + noise.randbytes(size), b"key %d" % (at % 17), (("n", b"%d" % at),)
        )
        for at in range(count)
    ]


@pytest.mark.broker
@pytest.mark.slow
def test_messages_are_where_the_commit_says(broker: Broker, topics: Topics, producer: TransactionalProducer) -> None:
    """In their partition's order, in as many batches as they need, with the partition that their key has."""
    sent = keyed(topics, 3_000, 400)  # 600 KB a topic, in batches of 256 KiB
    placed = producer.commit(sent)
    read = read_all(broker.bootstrap, [topics.verdicts, topics.unique])
    found = {(topic, one.partition, one.offset): one for topic, records in read.items() for one in records}
    assert len(found) == len(set(zip((one.topic for one in sent), placed, strict=True))) == 3_000
    latest: dict[tuple[str, int], int] = {}
    for message, (partition, offset) in zip(sent, placed, strict=True):
        record = found[message.topic, partition, offset]
        assert (record.key, record.value, tuple(record.headers)) == (message.key, message.value, message.headers)
        assert partition == partition_for(message.key or b"", PARTITIONS)
        assert offset > latest.get((message.topic, partition), -1)
        latest[message.topic, partition] = offset


@pytest.mark.broker
@pytest.mark.slow
def test_of_many_messages_the_one_that_is_too_large_is_named(
    broker: Broker, topics: Topics, producer: TransactionalProducer
) -> None:
    """A topic takes less than others: nothing is written, the position is that message's, and what follows is."""
    small = f"{topics.prefix}small"
    sent = [replace(one, topic=small) if one.topic == topics.verdicts else one for one in keyed(topics, 400, 100)]
    large = Message(small, random.Random(4).randbytes(60_000), sent[100].key)
    with closing(connect(KafkaAdminClient, broker.connection)) as client:
        client.create_topics([NewTopic(small, PARTITIONS, 1, topic_configs={"max.message.bytes": "20000"})])
        try:
            with pytest.raises(RecordTooLargeError) as refused:
                producer.commit([*sent[:200], large, *sent[200:]])
            assert refused.value.position == 200
            assert read_all(broker.bootstrap, [small])[small] == []
            assert len(producer.commit(sent)) == 400
        finally:
            client.delete_topics([small])
