"""An index over several processes: real shards, a resolver and a broker, and verdicts as of one process."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.control.operator_records import begin_layout
from dedup_service.runtime.kafka.messages.shard_messages import answer_parts, decode_answer, decode_answer_part
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from tests.chaos.checking import check
from tests.chaos.reading import read_all
from tests.crawls.stream import Sent, stream
from tests.hangs import HANG_S, wait_until
from tests.integration.conftest import Broker
from tests.integration.serving import Serving
from tests.integration.test_written_once import await_answers

pytestmark = pytest.mark.slow

Start = Callable[..., Serving]

WINDOW = 512
"""Pages of the window: so few that shards answer for most; no message of the log has more."""


@pytest.fixture
def sharded(broker: Broker, topics: Topics) -> Topics:
    """The topics of the test with those for shards, and a log that begins with eight slots and a short window."""
    create(broker.connection, topics, Layout(partitions=4, slots=8))
    begin_layout(broker.connection, topics, IndexLayout(slots=8, window=WINDOW))
    return topics


@pytest.fixture
def start(broker: Broker, sharded: Topics, tmp_path: Path) -> Iterator[Start]:
    """Start processes of one service; `state` names the folder. They are killed afterwards."""
    started: list[Serving] = []

    def begin(state: str, *arguments: object, **settings: object) -> Serving:
        log = tmp_path / f"{state}-{len(started)}.log"
        where = ("--bootstrap", broker.bootstrap, "--prefix", sharded.prefix, "--group", "g")
        started.append(Serving(log, *where, "--state", tmp_path / state, *arguments, snapshot_every=100, **settings))
        return started[-1]

    yield begin
    for serving in started:
        serving.process.kill()
        serving.process.wait()


def publish(broker: Broker, topics: Topics, sent: list[Sent]) -> None:
    append(broker.connection, topics.pages, [Message(topics.pages, one.value, one.key, one.headers) for one in sent])


def test_a_missing_shard_is_named_and_nothing_is_decided_without_it(
    broker: Broker, sharded: Topics, start: Start
) -> None:
    """/readyz of the resolver names it within seconds; when it is there, everything is decided."""
    sent = list(stream(8, 200))
    resolver = start("resolver", "--steps", "decide", "--shards", "2")
    start("fingerprints", "--steps", "fingerprint")
    start("one", "--steps", "shard", "--shard", "1/2")
    publish(broker, sharded, sent)
    resolver.wait_for(lambda: "shard 2/2 has not answered" in resolver.get("/readyz")[1])
    assert resolver.get("/readyz")[0] == 503
    resolver.wait_for(lambda: any("shard 2/2 has not answered" in line["event"] for line in resolver.lines))
    assert "shard 1/2" not in resolver.get("/readyz")[1]
    assert read_all(broker.bootstrap, [sharded.verdicts])[sharded.verdicts] == []
    start("two", "--steps", "shard", "--shard", "2/2")
    await_answers(broker, sharded, len(sent))
    deadline = time.monotonic() + HANG_S
    while resolver.get("/readyz")[0] != 200:
        assert time.monotonic() < deadline, resolver.get("/readyz")
        time.sleep(0.2)
    assert check(broker.bootstrap, sharded, sent).complaints == []


@pytest.mark.long
def test_a_resolver_whose_answers_are_deleted_holds_no_partitions_and_ends(
    broker: Broker, sharded: Topics, start: Start
) -> None:
    """With an empty folder and expired `candidates` it leaves all pages to the other one, and says what to do."""
    sent = list(stream(8, 200))
    decide = ("--steps", "decide", "--shards", "1")
    start("resolver", *decide)
    start("fingerprints", "--steps", "fingerprint")
    start("one", "--steps", "shard", "--shard", "1/1")
    publish(broker, sharded, sent[:100])
    await_answers(broker, sharded, 100)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.delete_records({TopicPartition(sharded.candidates, 0): -1})
    admin.close()
    lost = start("lost", *decide, stall_s=3)
    lost.wait_for(lambda: "decide: shard 1/1 has not answered to message 0" in lost.get("/readyz")[1])
    publish(broker, sharded, sent[100:])
    await_answers(broker, sharded, len(sent))
    assert check(broker.bootstrap, sharded, sent).complaints == []
    assert lost.process.wait(HANG_S) == 1
    text = lost.log.read_text()
    assert "does not have all answers behind message -1 of the log any more" in text
    assert "copy of the --state of another resolver" in text
    assert "--answer-all" in text
    assert "Traceback" not in text


@pytest.mark.long
def test_a_resolver_with_an_empty_folder_joins_when_it_has_decided_the_log(
    broker: Broker, sharded: Topics, start: Start
) -> None:
    """Until then it has no partitions; then it gets its share of them."""
    sent = list(stream(8, 200))
    decide = ("--steps", "decide", "--shards", "1")
    start("resolver", *decide)
    start("fingerprints", "--steps", "fingerprint")
    start("one", "--steps", "shard", "--shard", "1/1")
    publish(broker, sharded, sent)
    await_answers(broker, sharded, len(sent))
    new = start("new", *decide)
    wait_until(lambda: new.get("/readyz")[0] == 200, lambda: new.get("/readyz"))


@pytest.mark.long
def test_replicas_that_answer_differently_stop_the_resolver(broker: Broker, sharded: Topics, start: Start) -> None:
    """With --verify it ends with an error that names the shard and the message."""
    sent = list(stream(9, 100))
    resolver = start("resolver", "--steps", "decide", "--shards", "1", "--verify")
    start("fingerprints", "--steps", "fingerprint")
    start("one", "--steps", "shard", "--shard", "1/1")
    publish(broker, sharded, sent)
    await_answers(broker, sharded, len(sent))
    last = decode_answer_part(read_all(broker.bootstrap, [sharded.candidates])[sharded.candidates][-1].value)
    other = replace(decode_answer(last.offset, [last.answer]), first=0, is_all=False)
    values = answer_parts(other, last.number, last.log)
    append(broker.connection, sharded.candidates, [Message(sharded.candidates, value, partition=0) for value in values])
    assert resolver.process.wait(HANG_S) == 1
    assert f"two replicas of shard 1/1 give different answers to message {last.offset}" in resolver.log.read_text()
