"""What was written stays known, and what was never written is noticed, whatever happens to the groups' offsets.

Services are real processes, killed with SIGKILL, so nothing is saved at the end.
"""

import json
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from dedup_service.core.log_records import PageRecord, UnwrittenRecord
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from tests.chaos.checking import check
from tests.chaos.reading import Tail, read_all
from tests.crawls.stream import Sent, stream
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from tests.integration.serving import Serving

pytestmark = pytest.mark.long

Start = Callable[..., Serving]


@pytest.fixture
def start(broker: Broker, topics: Topics, tmp_path: Path) -> Iterator[Start]:
    """Start services of one group; `state` names the folder. They are killed afterwards."""
    started: list[Serving] = []

    def begin(*arguments: object, state: str = "state", prefix: str = topics.prefix, group: str = "g") -> Serving:
        log = tmp_path / f"log-{len(started)}"
        where = ("--bootstrap", broker.bootstrap, "--prefix", prefix, "--group", group, "--state", tmp_path / state)
        started.append(Serving(log, *where, *arguments))
        return started[-1]

    yield begin
    for serving in started:
        serving.process.kill()
        serving.process.wait()


def publish(broker: Broker, topics: Topics, sent: Sequence[Sent]) -> None:
    append(broker.connection, topics.pages, [Message(topics.pages, one.value, one.key, one.headers) for one in sent])


def pages(topics: Topics, count: int, partition: int, first: int = 0) -> list[Message]:
    """Different pages of one partition."""
    texts = (f"{number} " + uuid.uuid5(uuid.NAMESPACE_URL, str(number)).hex * 12 for number in range(first, 10**9))
    return [
        Message(
            topics.pages,
            json.dumps({"url": f"https://a.example/{partition}/{at}", "title": f"t{at}", "text": text}).encode(),
            partition=partition,
        )
        for at, text in zip(range(first, first + count), texts, strict=False)
    ]


def await_answers(broker: Broker, topics: Topics, count: int) -> None:
    """Wait until so many verdicts and dead letters are written."""
    await_records(broker, (topics.verdicts, topics.dlq), count)


def await_records(broker: Broker, names: Sequence[str], count: int) -> None:
    """Wait until topics have so many records."""
    _await(broker, names, count, lambda _record: 1)


def await_logged(broker: Broker, topics: Topics, count: int) -> None:
    """Wait until the log has so many pages."""
    _await(
        broker,
        [topics.fingerprints],
        count,
        lambda message: sum(isinstance(record, PageRecord) for _, record in numbered([message])),
    )


def _await(broker: Broker, names: Sequence[str], count: int, count_in: Callable[[ConsumerRecord], int]) -> None:
    tail = Tail(broker.bootstrap, names)
    deadline, records = time.monotonic() + HANG_S, 0
    try:
        while records < count:
            records += sum(map(count_in, tail.poll()))
            assert time.monotonic() < deadline, f"{records} of {count} records"
    finally:
        tail.close()


def kill(serving: Serving) -> None:
    serving.process.kill()
    serving.process.wait()


def test_a_second_group_on_one_prefix(broker: Broker, topics: Topics, start: Start) -> None:
    """It would write every output again; the log names its group, and all steps refuse another."""
    sent = list(stream(32, 60))
    publish(broker, topics, sent)
    first = start()
    await_answers(broker, topics, len(sent))
    first.end(signal.SIGTERM)
    for number, steps in enumerate((["both"], ["fingerprint"], ["decide"], ["shard", "--shard", "1/1"], ["canonical"])):
        other = start("--steps", *steps, state=f"other-{number}", group="another")
        assert other.process.wait(HANG_S) == 1
        assert f"is the log of group {topics.prefix}g, this service is of group {topics.prefix}another" in (
            other.log.read_text()
        )
    assert check(broker.bootstrap, topics, sent).complaints == []


@pytest.mark.parametrize("running", [False, True])
def test_pages_deleted_and_made_again(broker: Broker, topics: Topics, start: Start, running: bool) -> None:
    """Its offsets mean other records: refused at the start and while it runs, saying what to do."""
    append(broker.connection, topics.pages, pages(topics, 20, 0))
    serving = start()
    await_answers(broker, topics, 20)
    if not running:
        serving.end(signal.SIGTERM)
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    client.delete_topics([topics.pages])
    while topics.pages in client.list_topics():
        time.sleep(0.1)
    client.close()
    create(broker.connection, topics, Layout(partitions=4))
    append(broker.connection, topics.pages, pages(topics, 30, 0, 100))
    if not running:
        serving = start()
    assert serving.process.wait(HANG_S) != 0
    text = serving.log.read_text()
    assert "was deleted and created again" in text
    assert "topics create --prefix NEW" in text
    assert "Traceback" not in text


def expire(broker: Broker, topics: Topics, offset: int) -> None:
    """Delete the records of partition 0 below an offset, as retention does."""
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    client.delete_records({TopicPartition(topics.pages, 0): offset})
    client.close()


@pytest.mark.parametrize("later", [0, 5])
def test_retention_deletes_pages_that_are_logged_but_not_yet_answered(
    broker: Broker, topics: Topics, start: Start, later: int
) -> None:
    """The loss is counted and named, each page is a dead letter, and its next copy is unique."""
    lost = pages(topics, 300, 0)
    append(broker.connection, topics.pages, lost)
    first = start("--steps", "fingerprint")
    await_logged(broker, topics, 300)
    first.end(signal.SIGTERM)
    expire(broker, topics, 300)
    append(broker.connection, topics.pages, pages(topics, later, 0, 1000))
    second = start()
    await_answers(broker, topics, 300 + later)
    letters = read_all(broker.bootstrap, [topics.dlq])[topics.dlq]
    headers = [dict(letter.headers) for letter in letters]
    assert sorted(int(header["twinsieve.offset"]) for header in headers) == list(range(300))
    assert all(b"deleted before it could be" in header["twinsieve.error"] for header in headers)
    assert "twinsieve_expired_records_total 300.0" in second.get("/metrics")[1]
    log = numbered(read_all(broker.bootstrap, [topics.fingerprints])[topics.fingerprints])
    assert sum(len(record.sequences) for _, record in log if isinstance(record, UnwrittenRecord)) == 300
    append(broker.connection, topics.pages, lost)
    await_answers(broker, topics, 600 + later)
    verdicts = read_all(broker.bootstrap, [topics.verdicts])[topics.verdicts]
    assert Counter(json.loads(verdict.value)["verdict"] for verdict in verdicts) == {"unique": 300 + later}


def test_a_topic_whose_limit_was_lowered_stops_nobody(broker: Broker, topics: Topics, start: Start) -> None:
    """A page that it does not take any more is a dead letter, and leaves the index: its next copy is unique."""
    noise = random.Random(7)
    large = {"url": "https://a.example/large", "title": "t", "text": "".join(map(chr, noise.choices(HAN, k=200_000)))}
    append(broker.connection, topics.pages, pages(topics, 3, 0))
    start()
    await_answers(broker, topics, 3)
    limit(broker, topics.unique, 100_000)
    records = [Message(topics.pages, json.dumps(large).encode(), partition=0), *pages(topics, 3, 0, 10)]
    append(broker.connection, topics.pages, records)
    await_answers(broker, topics, 8)  # the verdict of the large page, and its dead letter
    (letter,) = read_all(broker.bootstrap, [topics.dlq])[topics.dlq]
    assert b"the page was not passed on" in dict(letter.headers)["twinsieve.error"]
    limit(broker, topics.unique, 16 << 20)
    append(broker.connection, topics.pages, records[:1])
    await_answers(broker, topics, 9)
    verdicts = read_all(broker.bootstrap, [topics.verdicts])[topics.verdicts]
    assert Counter(json.loads(verdict.value)["verdict"] for verdict in verdicts) == {"unique": 8}


HAN = range(0x4E00, 0x9000)


def limit(broker: Broker, topic: str, size_bytes: int) -> None:
    """Set the largest batch that a topic takes."""
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": str(size_bytes)})])
    client.close()
