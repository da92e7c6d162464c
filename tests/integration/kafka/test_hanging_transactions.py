"""A transaction whose end marker a broker lost (KAFKA-20734): readers stop until it is repaired as decided.

How it is lost here: the only copy of a partition is away when its transaction ends.
"""

import itertools
import json
import logging
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError

from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client import internals, log_consumer
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import BrokerError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.control.hanging_transactions import TransactionOutcome, find_hanging, repair
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from tests.integration.kafka.reading import committed_values, until

pytestmark = [pytest.mark.long, pytest.mark.broker]


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Three brokers; the topics of the tests have one copy."""
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def connection(three: Cluster) -> Connection:
    return Connection(three.bootstrap)


@pytest.fixture(params=["commit", "abort"])
def outcome(request: pytest.FixtureRequest) -> TransactionOutcome:
    """How the transaction ended before its marker was lost."""
    return TransactionOutcome(request.param)


@pytest.fixture
def lost(three: Cluster, connection: Connection, outcome: TransactionOutcome) -> Topics:
    """Topics whose log begins with a transaction that was decided but not ended, followed by another one."""
    topics = Topics(f"lost-{outcome.value}.")
    create(connection, topics, Layout(partitions=1, replication=1))
    leader = leader_of(connection, topics.fingerprints)
    name, decided = begun(connection, topics, but_not_on=leader)
    three.kill(leader)
    if outcome is TransactionOutcome.COMMIT:
        internals.commit(decided, 60)
    ended = {TransactionOutcome.COMMIT: "CompleteCommit", TransactionOutcome.ABORT: "CompleteAbort"}[
        outcome
    ]  # aborted by its timeout
    until(lambda: coordinated(connection, name) == ended, "the coordinator's final state")
    internals.discard(decided, 5)
    three.start(leader)
    until(lambda: leader_of(connection, topics.fingerprints) == leader, "the partition's leader")
    later = TransactionalProducer(connection, f"{topics.prefix}later")
    later.commit([Message(topics.fingerprints, b"later")])
    later.close()
    return topics


def begun(connection: Connection, topics: Topics, but_not_on: int = -1) -> tuple[str, KafkaProducer]:
    """An open transaction with one record, coordinated by another broker; its name and its producer."""
    for number in itertools.count():
        name = f"{topics.prefix}{number}"
        made = connect(KafkaProducer, connection, transactional_id=name, transaction_timeout_ms=5000)
        made.init_transactions()
        with closing(connect(KafkaAdminClient, connection)) as client:
            if client.describe_transactions([name])[name].coordinator_id != but_not_on:
                break
        internals.discard(made, 5)
    made.begin_transaction()
    made.send(topics.fingerprints, b"decided").get(30)
    return name, made


def leader_of(connection: Connection, topic: str) -> int:
    with closing(connect(KafkaAdminClient, connection)) as client:
        return client.describe_topics([topic])[0]["partitions"][0]["leader_id"]


def coordinated(connection: Connection, name: str) -> str:
    """The transaction's state; "" while no coordinator answers."""
    with suppress(BrokerError, KafkaError), closing(connect(KafkaAdminClient, connection)) as client:
        return client.describe_transactions([name])[name].state.value
    return ""


def test_a_hanging_transaction_is_repaired_as_decided(connection, lost, outcome, caplog, monkeypatch, capsys):
    """Nothing can be read, with a warning; after the repair committed records are there, and aborted ones are not."""
    monkeypatch.setattr(log_consumer, "_STALL_S", 0.2)
    reader = LogConsumer(connection, lost.fingerprints)
    with caplog.at_level(logging.WARNING):
        until(lambda: "reading is blocked" in caplog.text, "a warning", lambda: reader.poll(0.2, 10))
    reader.close()
    assert "twinsieve topics repair-transactions" in caplog.text

    where = ["--bootstrap", connection.bootstrap, "--prefix", lost.prefix]
    assert run(["topics", "repair-transactions", "--dry-run", "--json", *where]) == 0
    told = json.loads(capsys.readouterr().out)
    assert not told["repaired"]
    (one,) = told["transactions"]
    assert (one["topic"], one["partition"], one["offset"]) == (lost.fingerprints, 0, 0)
    assert one["transactional_id"].startswith(lost.prefix)
    assert one["outcome"] == outcome.value
    assert committed_values(connection, lost.fingerprints) == []

    assert run(["topics", "repair-transactions", *where]) == 0
    assert outcome.value in capsys.readouterr().out
    expected = [b"decided", b"later"] if outcome is TransactionOutcome.COMMIT else [b"later"]
    assert committed_values(connection, lost.fingerprints) == expected
    assert run(["topics", "repair-transactions", *where]) == 0
    assert capsys.readouterr().out == "There are no hanging transactions.\n"


def test_an_active_transaction_is_left_alone(connection):
    """One that its producer may still commit is not found, and ends as its producer decides."""
    topics = Topics("alive.")
    create(connection, topics, Layout(partitions=1, replication=1))
    _, alive = begun(connection, topics)
    found = find_hanging(connection, topics)
    assert found == []
    repair(connection, found)
    internals.commit(alive, 30)
    internals.discard(alive, 5)
    assert committed_values(connection, topics.fingerprints) == [b"decided"]
