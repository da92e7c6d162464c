"""A replay that did not end leaves topics that nothing accepts; after they are removed it is repeated as a whole."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import Policy, PolicyRecord, RejectedRecord, Source
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client.connect import TopicPartition, connect
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.control.replay import BATCH_RECORDS, Replayed
from dedup_service.runtime.kafka.control.replay_topics import ReplayTopics, require_empty
from dedup_service.runtime.kafka.messages.log_record import log_message
from dedup_service.runtime.kafka.service import DECIDE, FINGERPRINT, Service, ServiceSettings
from dedup_service.runtime.kafka.topics import Layout, Topics, create, describe, remove
from dedup_service.runtime.resources import build_fingerprinter
from deploy.kafka.readiness import wait_until
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from tests.integration.kafka.test_service import Progress, running
from tests.page_names import NamesInMemory

pytestmark = pytest.mark.slow

RECORDS = 20_000
BEGIN = PolicyRecord(Policy(rule_for(), Action.FLAG, build_fingerprinter().space_id), initial=True, log="the-log")


@pytest.fixture
def log(broker: Broker, topics: Topics) -> Topics:
    """A long log, of records that are no pages."""
    records = (RejectedRecord(Source(topics.pages, 0, offset), "no page") for offset in range(RECORDS))
    append(
        broker.connection,
        topics.fingerprints,
        [log_message(topics.fingerprints, record) for record in (BEGIN, *records)],
    )
    return topics


@pytest.fixture
def half(broker: Broker, topics: Topics) -> Iterator[Topics]:
    """Empty topics beside them."""
    made = Topics(f"{topics.prefix}half.")
    create(broker.connection, made, Layout(partitions=1))
    yield made
    remove(broker.connection, made)


def command(broker: Broker, log: Topics, half: Topics) -> list[str]:
    """The replay of one set into the other."""
    return ["replay", "--bootstrap", broker.bootstrap, "--prefix", log.prefix, "--to-prefix", half.prefix]


def ended_at(broker: Broker, log: Topics, half: Topics, offset: int, number: signal.Signals) -> int:
    """Run the replay and send it a signal as soon as the new log has a record at `offset`, committed or not."""
    partition = TopicPartition(half.fingerprints, 0)
    with closing(connect(KafkaConsumer, broker.connection)) as reader:  # of uncommitted records, too
        process = subprocess.Popen([sys.executable, "-m", "dedup_service.interfaces.cli", *command(broker, log, half)])
        try:
            while reader.end_offsets([partition])[partition] <= offset:
                assert process.poll() is None, "the replay ended before it was killed"
                time.sleep(0.002)
        finally:
            process.send_signal(number)
    return process.wait(HANG_S)


def emptied(broker: Broker, topics: Topics) -> None:
    """Remove the topics and create them again, as an operator does."""
    remove(broker.connection, topics)
    assert wait_until(lambda: not describe(broker.connection, topics), timeout_s=HANG_S)
    create(broker.connection, topics, Layout(partitions=1))


def refusals(broker: Broker, topics: Topics, capfd: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What every command says that uses the log of `topics`, by its name; exit code 1 is expected of all."""
    told = {}
    for name, *more in (
        ("policy", "show"),
        ("policy", "set", "--profile", "balanced:2"),
        ("retract", "https://a.example/1"),
        ("correct", "https://a.example/1", "--duplicate-of", "https://a.example/2"),
        ("corrections",),
        ("why", "https://a.example/1"),
        ("replay",),
    ):
        where = ["--bootstrap", broker.bootstrap, "--prefix", topics.prefix]
        assert run([name, *more, *where]) == 1, name
        told[" ".join([name, *more])] = capfd.readouterr().err
    return told


def service(broker: Broker, topics: Topics, state: Path, *steps: str) -> ServiceSettings:
    """A service with the default group."""
    return ServiceSettings(
        connection=broker.connection,
        state=state,
        prefix=topics.prefix,
        steps=frozenset(steps or {FINGERPRINT, DECIDE}),
    )


@pytest.mark.parametrize(
    ("share", "number", "code"),
    [
        pytest.param(0.0, signal.SIGKILL, -9, marks=pytest.mark.long),
        pytest.param(0.5, signal.SIGKILL, -9, marks=pytest.mark.long),
        pytest.param(0.9, signal.SIGKILL, -9, marks=pytest.mark.long),
        pytest.param(0.3, signal.SIGTERM, 143, marks=pytest.mark.long),
    ],
)
def test_replay_to_prefix_killed_half_way(
    broker: Broker,
    log: Topics,
    half: Topics,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    share: float,
    number: signal.Signals,
    code: int,
) -> None:
    """Nothing uses what it left, and nothing is added; after a complete replay a service continues from there."""
    assert ended_at(broker, log, half, int(share * 2 * RECORDS / BATCH_RECORDS), number) == code
    for name, told in refusals(broker, half, capfd).items():
        assert "has not ended" in told, name
        assert "twinsieve topics create" in told, name
    assert run(command(broker, log, half)) == 1
    assert "has not ended" in capfd.readouterr().err
    for steps in ([FINGERPRINT], [DECIDE], [FINGERPRINT, DECIDE]):
        with pytest.raises(StateError, match="has not ended"):
            Service(service(broker, half, tmp_path / "state", *steps)).run(threading.Event())

    emptied(broker, half)
    assert run(command(broker, log, half)) == 0
    progress = Progress()
    with running(service(broker, half, tmp_path / "state"), progress) as continued:
        value = json.dumps({"url": "https://a.example/1", "text": "a text"}).encode()
        append(broker.connection, half.pages, [Message(half.pages, value, partition=0)])
        progress.wait_for(lambda: progress.done >= 1)
        counts = continued.ask(lambda replica: dict(replica.counts))
    assert (counts["rejected"], counts["undecided"]) == (RECORDS, 1)


def filling(broker: Broker, half: Topics) -> tuple[ReplayTopics, TransactionalProducer]:
    """A replay in this process, to be stopped at any point."""
    transactions = TransactionalProducer(broker.connection, f"{half.prefix}replay")
    transactions.open()
    return ReplayTopics(half, "new-log", transactions, Replica(NamesInMemory())), transactions


def test_the_mark_is_written_first_and_last(
    broker: Broker, half: Topics, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The topics are refused before the first record of the log and after the last one, until the mark says so."""
    sink, transactions = filling(broker, half)
    with closing(transactions):
        sink.begin()
        assert all("has not ended" in told for told in refusals(broker, half, capfd).values())
        with pytest.raises(StateError, match="has not ended"):  # and does not begin the empty log
            Service(service(broker, half, tmp_path)).run(threading.Event())
        sink.take([Replayed(0, BEGIN)])
        assert all("has not ended" in told for told in refusals(broker, half, capfd).values())
        sink.finish()
        assert run(["policy", "show", "--bootstrap", broker.bootstrap, "--prefix", half.prefix]) == 0
        with pytest.raises(StateError, match="something was written to"):
            require_empty(broker.connection, half)


def test_a_log_that_was_deleted_alone_is_not_begun_again(broker: Broker, half: Topics, tmp_path: Path) -> None:
    """The offsets beside it are of the old one: a service would pass over every page below them."""
    sink, transactions = filling(broker, half)
    with closing(transactions):
        sink.begin()
        sink.finish()
    with pytest.raises(StateError, match=r"is empty, but .*dedup\.offsets has offsets of a log"):
        Service(service(broker, half, tmp_path)).run(threading.Event())
