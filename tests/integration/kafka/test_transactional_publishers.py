"""Publishers that use transactions: their markers and what they abort take offsets, and are no lost records."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from dedup_service.core.log_records import ExpiredRecord
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition, connect
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.log_record import decode
from dedup_service.runtime.kafka.monitor import BacklogMonitor
from dedup_service.runtime.kafka.state.step_offsets import DECIDE, FINGERPRINT, StepOffsets
from dedup_service.runtime.kafka.topics import OutputMode, Topics
from tests.chaos.reading import read_all
from tests.integration.conftest import Broker
from tests.integration.kafka.reading import committed_values, until
from tests.integration.kafka.test_service import Progress, running, settings

pytestmark = [pytest.mark.slow, pytest.mark.broker]


def page(number: int) -> bytes:
    """A page with a distinct text."""
    text = " ".join(f"word{number}x{position}" for position in range(60))
    return json.dumps({"url": f"https://a.example/{number}", "text": text}).encode()


def transaction(broker: Broker, topics: Topics, partition: int, value: bytes, *, committed: bool) -> None:
    """Publish a page in a transaction: two offsets, of the page and of the marker."""
    name = f"{topics.prefix}publisher"
    with closing(connect(KafkaProducer, broker.connection, transactional_id=name)) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topics.pages, value, partition=partition).get(30)
        producer.commit_transaction() if committed else producer.abort_transaction()


def offsets_of(broker: Broker, topics: Topics) -> Mapping[str, Mapping[int, int]]:
    """How far each step is in each partition."""
    with closing(StepOffsets(broker.connection, topics)) as offsets:
        offsets.refresh()
        return {
            step: {at.partition: offset for at, offset in offsets.of(step).items()} for step in (FINGERPRINT, DECIDE)
        }


def expire(broker: Broker, topics: Topics, ends: Mapping[int, int]) -> None:
    """Delete everything below these offsets, as retention does."""
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        client.delete_records({TopicPartition(topics.pages, number): end for number, end in ends.items()})


def reaches(broker: Broker, topics: Topics, wanted: Mapping[int, int]) -> Callable[[], bool]:
    """Whether both steps have committed these offsets."""
    return lambda: offsets_of(broker, topics) == {FINGERPRINT: wanted, DECIDE: wanted}


def test_a_partition_with_an_open_transaction_is_not_behind(broker: Broker, topics: Topics) -> None:
    """What is committed of it is read, so other partitions do not wait for it; what is not read yet counts."""
    group, name = f"{topics.prefix}g", f"{topics.prefix}publisher"
    parts = [TopicPartition(topics.pages, number) for number in range(4)]
    append(broker.connection, topics.pages, [Message(topics.pages, page(n), partition=n // 2) for n in range(4)])
    with (
        closing(connect(KafkaProducer, broker.connection, transactional_id=name)) as producer,
        closing(GroupConsumer(broker.connection, topics.pages, group, "one", on_revoked=lambda _: None)) as reader,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topics.pages, page(4), partition=0).get(30)
        found: list[ConsumerRecord] = []
        until(lambda: len(found) == 1, "a record", lambda: found.extend(reader.poll(0.2, 1)))
        assert reader.behind >= {parts[found[0].partition]}
        until(lambda: not reader.behind, "all read to their ends", lambda: found.extend(reader.poll(0.2, 1)))
        assert len(found) == 4
        producer.abort_transaction()


@pytest.mark.long
@pytest.mark.parametrize("outputs", OutputMode)
def test_what_is_no_record_is_not_missed(broker: Broker, topics: Topics, tmp_path: Path, outputs: OutputMode) -> None:
    """A partition ends with a marker, another has aborted records alone; retention deletes both while no one runs."""
    transaction(broker, topics, 0, page(0), committed=True)
    transaction(broker, topics, 1, page(1), committed=False)
    progress, chosen, ends = Progress(), settings(broker, topics, tmp_path, outputs=outputs), {0: 2, 1: 2}
    with running(chosen, progress):
        until(reaches(broker, topics, ends), f"both steps at {ends}")
    transactions = len(committed_values(broker.connection, topics.offsets))
    expire(broker, topics, ends)
    monitor = BacklogMonitor(broker.connection, topics, f"{topics.prefix}g")
    assert {row.deleted for row in monitor.measure().partitions} == {0}
    monitor.disconnect()
    again = Progress()
    with running(chosen, again):
        append(broker.connection, topics.pages, [Message(topics.pages, page(2), partition=number) for number in (0, 1)])
        again.wait_for(lambda: again.done == 2)
    assert not [problem for problem in (*progress.problems, *again.problems) if problem.kind == "expired"]
    assert committed_values(broker.connection, topics.dlq) == []
    log = [decode(value) for value in committed_values(broker.connection, topics.fingerprints)]
    assert not [record for records in log for record in records if isinstance(record, ExpiredRecord)]
    # Two steps and two partitions: each was moved by the page alone.
    assert len(committed_values(broker.connection, topics.offsets)) == transactions + 4
    assert len(read_all(broker.bootstrap, [topics.verdicts])[topics.verdicts]) == 3


@pytest.mark.long
@pytest.mark.parametrize("outputs", OutputMode)
def test_idle_partitions_are_committed_once(
    broker: Broker, topics: Topics, tmp_path: Path, outputs: OutputMode
) -> None:
    """A service that starts where there is nothing new writes nothing, and a marker costs one message for each step."""
    progress, chosen = Progress(), settings(broker, topics, tmp_path, outputs=outputs)
    with running(chosen, progress):
        for end in (2, 4):
            transaction(broker, topics, 3, page(3), committed=False)
            until(reaches(broker, topics, {3: end}), f"both steps at {end}")
    assert len(committed_values(broker.connection, topics.offsets)) == 4
