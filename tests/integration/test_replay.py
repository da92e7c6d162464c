"""A log decided again: unchanged, by another rule, in another space, into separate topics."""

import json
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import (
    CorrectionRecord,
    ExpiredRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    UnwrittenRecord,
    sequence_at,
)
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.control.operator_records import BY, append_policy, corrections_in
from dedup_service.runtime.kafka.messages.log_record import log_message, log_messages, numbered
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.messages.verdict import verdict_value
from dedup_service.runtime.kafka.topics import Layout, Topics, create, remove, require_log
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.preparation import BadRecord, prepare_record
from tests.integration.conftest import Broker
from tests.interfaces.cli.running import article, page
from tests.page_names import NamesInMemory

pytestmark = pytest.mark.slow

PAGES = 60
TAKEN_DOWN = "p3"
GONE_AND_BACK = json.dumps(page(5, article(5))).encode()
SPACE = build_fingerprinter().space_id


def published(broker: Broker, topics: Topics) -> list[PageMessage]:
    """Pages, a third of them copies, and a bad record, as they are in `pages`, partition by partition."""
    values = [json.dumps(page(number, article(number % 40))).encode() for number in range(PAGES)] + [b"rubbish"]
    messages = [Message(topics.pages, value, partition=number % 4) for number, value in enumerate(values)]
    offsets = append(broker.connection, topics.pages, messages)
    return [
        PageMessage(topics.pages, number % 4, offset, value)
        for number, (offset, value) in enumerate(zip(offsets, values, strict=True))
    ]


def logged(broker: Broker, topics: Topics, messages: list[PageMessage]) -> None:
    """The log that a service would have written, with a retraction, a change of action and a repetition."""
    policy = Policy(rule_for(), Action.FLAG, SPACE)
    records: list[LogRecord] = [PolicyRecord(policy, initial=True, log="the-log")]
    for message in messages:
        source = Source(message.topic, message.partition, message.offset)
        answer = prepare_record(SpaceOptions(), message)
        bad = isinstance(answer, BadRecord)
        records.append(RejectedRecord(source, answer.problem) if bad else PageRecord(source, answer, SPACE))
    records[20:20] = [RetractionRecord("https://news.example/3", "gone"), records[5]]
    records[30:30] = [PolicyRecord(Policy(rule_for(), Action.DROP, SPACE), replaces=0), records[0]]
    log = topics.fingerprints
    append(broker.connection, log, [message for message, _ in log_messages(log, records)])


def messages_of(connection: Connection, topic: str) -> list[ConsumerRecord]:
    """All messages of a topic with one partition."""
    found: list[ConsumerRecord] = []
    with closing(LogConsumer(connection, topic)) as reader:
        end = reader.end()
        while reader.position < end:
            found += reader.poll(0.5, 1000)
    return found


def values_of(connection: Connection, topic: str) -> list[bytes]:
    """The values of all messages of a topic with one partition."""
    return [message.value for message in messages_of(connection, topic)]


def records_of(connection: Connection, topics: Topics) -> list[tuple[int, LogRecord]]:
    """The records of a log, with their sequences."""
    return numbered(messages_of(connection, topics.fingerprints))


def expected(connection: Connection, topics: Topics, *, rule_k: int | None = None) -> list[bytes]:
    """The verdicts of a replica that reads the log, with another rule where one is given."""
    replica, verdicts = Replica(NamesInMemory()), []
    for sequence, record in records_of(connection, topics):
        if rule_k is not None and isinstance(record, PolicyRecord):
            policy = Policy(rule_for("both", k=rule_k), record.policy.action, SPACE)
            outcome = replica.apply(sequence, replace(record, policy=policy))
        else:
            outcome = replica.apply(sequence, record)
        if outcome is not None and outcome.verdict is not None:
            verdicts.append(verdict_value(outcome.verdict, outcome.source))
    return verdicts


@pytest.fixture
def log(broker: Broker, topics: Topics) -> Topics:
    """Topics with pages and their log."""
    logged(broker, topics, published(broker, topics))
    return topics


@pytest.fixture
def new_topics(broker: Broker, topics: Topics) -> Topics:
    """Empty topics beside them, all of one partition."""
    made = Topics(f"{topics.prefix}new.")
    create(broker.connection, made, Layout(partitions=1))
    yield made
    remove(broker.connection, made)


def test_unchanged(broker: Broker, log: Topics, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Without an option the verdicts are those that the log gives, byte for byte."""
    output = tmp_path / "verdicts.jsonl"
    arguments = ["replay", "--bootstrap", broker.bootstrap, "--prefix", log.prefix, "--output", str(output)]
    assert run(arguments) == 0
    assert output.read_bytes().splitlines() == expected(broker.connection, log)
    kinds = {line["url"]: line["verdict"] for line in map(json.loads, output.read_bytes().splitlines())}
    assert (kinds["https://news.example/43"], kinds["https://news.example/44"]) == ("unique", "duplicate")
    counts = json.loads(capfd.readouterr().err)
    assert (counts["rejected"], counts["repeated"], counts["retraction"], counts["missing"]) == (1, 1, 1, 0)
    assert counts["unique"] == Counter(kinds.values())["unique"]


def test_by_another_rule(broker: Broker, log: Topics, capfd: pytest.CaptureFixture[str]) -> None:
    """The rule applies from the first page on; the output is standard output by default."""
    assert run(["replay", "--bootstrap", broker.bootstrap, "--prefix", log.prefix, "--profile", "both:0"]) == 0
    assert capfd.readouterr().out.encode().splitlines() == expected(broker.connection, log, rule_k=0)


def test_into_separate_topics(broker: Broker, log: Topics, new_topics: Topics) -> None:
    """A log with a new identity, which gives the same verdicts to every reader; it is filled only once."""
    arguments = ["replay", "--bootstrap", broker.bootstrap, "--prefix", log.prefix]
    arguments += ["--to-prefix", new_topics.prefix, "--action", "pass"]
    assert run([*arguments, "--group", "news"]) == 0
    records = [record for _, record in records_of(broker.connection, new_topics)]
    first = records[0]
    assert isinstance(first, PolicyRecord)
    assert (first.policy.action, first.log != "the-log") == (Action.PASS, True)
    described = {topic.name: topic for topic in require_log(broker.connection, new_topics)}
    assert (first.group, first.pages) == (f"{new_topics.prefix}news", described[new_topics.pages].topic_id)
    policies = [record for record in records if isinstance(record, PolicyRecord)]
    assert [(record.initial, record.replaces) for record in policies] == [(True, None), (False, None)]
    verdicts = values_of(broker.connection, new_topics.verdicts)
    assert verdicts == expected(broker.connection, new_topics)
    assert len(verdicts) == PAGES - 1
    assert run(arguments) == 1


def test_in_another_space(broker: Broker, log: Topics, new_topics: Topics) -> None:
    """Each page is prepared again, in the order of the log, and passed on with its content."""
    arguments = ["replay", "--bootstrap", broker.bootstrap, "--prefix", log.prefix, "--from", "pages"]
    assert run([*arguments, "--to-prefix", new_topics.prefix, "--space", "tf", "--processes", "2"]) == 0
    space_id = build_fingerprinter(SpaceOptions(scheme="tf")).space_id
    old, new = ([record for _, record in records_of(broker.connection, one)] for one in (log, new_topics))
    pages = [record for record in new if isinstance(record, PageRecord)]
    kept = [record for record in old if isinstance(record, PageRecord) and record.prepared.page.id != TAKEN_DOWN]
    sources = [record.source for record in kept]
    assert [record.source for record in pages] == list(dict.fromkeys(sources))
    assert {record.space_id for record in pages} == {space_id}
    verdicts = values_of(broker.connection, new_topics.verdicts)
    assert verdicts == expected(broker.connection, new_topics)
    kinds = Counter(json.loads(value)["verdict"] for value in verdicts)
    unique = [json.loads(value)["url"] for value in values_of(broker.connection, new_topics.unique)]
    assert len(unique) == len(set(unique)) == kinds["unique"]
    assert values_of(broker.connection, new_topics.dlq) == [b"rubbish"]


@pytest.mark.parametrize("source", ["log", "pages"])
def test_a_page_that_was_taken_down_is_in_no_new_topic(
    broker: Broker, log: Topics, new_topics: Topics, capfd: pytest.CaptureFixture[str], source: str
) -> None:
    """Its visits before the last retraction, and the retraction itself, are left out; a visit after it is not."""
    gone = log_message(log.fingerprints, RetractionRecord("https://news.example/5", "gone"))
    (visit,) = append(broker.connection, log.pages, [Message(log.pages, GONE_AND_BACK, partition=2)])
    answer = prepare_record(SpaceOptions(), PageMessage(log.pages, 2, visit, GONE_AND_BACK))
    assert not isinstance(answer, BadRecord)
    back = log_message(log.fingerprints, PageRecord(Source(log.pages, 2, visit), answer, SPACE))
    append(broker.connection, log.fingerprints, [gone, back])
    arguments = ["replay", "--bootstrap", broker.bootstrap, "--prefix", log.prefix, "--from", source]
    assert run([*arguments, "--to-prefix", new_topics.prefix]) == 0
    records = [record for _, record in records_of(broker.connection, new_topics)]
    logged_urls = Counter(record.prepared.page.url for record in records if isinstance(record, PageRecord))
    assert (logged_urls["https://news.example/3"], logged_urls["https://news.example/5"]) == (0, 1)
    assert not any(isinstance(record, RetractionRecord) for record in records)
    verdicts = values_of(broker.connection, new_topics.verdicts)
    assert verdicts == expected(broker.connection, new_topics)
    passed = values_of(broker.connection, new_topics.unique) + values_of(broker.connection, new_topics.duplicate)
    assert not any(b'"https://news.example/3"' in value for value in [*verdicts, *passed])
    kinds = {line["url"]: line["verdict"] for line in map(json.loads, verdicts)}
    assert (kinds["https://news.example/45"], kinds["https://news.example/5"]) == ("unique", "duplicate")
    assert json.loads(capfd.readouterr().err)["taken_down"] == 2


def test_pages_that_are_no_longer_kept(
    broker: Broker, log: Topics, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They are left out, counted, and the first one is named."""
    gone = PageMessage("elsewhere", 0, 7, b'{"url": "https://news.example/old", "text": "old"}')
    answer = prepare_record(SpaceOptions(), gone)
    assert not isinstance(answer, BadRecord)
    record = PageRecord(Source("elsewhere", 0, 7), answer, SPACE)
    append(broker.connection, log.fingerprints, [log_message(log.fingerprints, record)])
    output = tmp_path / "verdicts.jsonl"
    arguments = ["--bootstrap", broker.bootstrap, "--prefix", log.prefix, "--from", "pages", "-o", str(output)]
    assert run(["replay", *arguments]) == 3
    assert "elsewhere, partition 0, offset 7" in capfd.readouterr().err
    assert output.read_bytes().splitlines() == expected(broker.connection, log)[:-1]


def test_pages_that_was_created_again_is_not_read(
    broker: Broker, topics: Topics, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its offsets mean other pages than those in the log, whose fingerprints can still be replayed."""
    policy = Policy(rule_for(), Action.FLAG, SPACE)
    append_policy(broker.connection, topics, PolicyRecord(policy, initial=True, log="the-log", pages="another"))
    arguments = ["replay", "--bootstrap", broker.bootstrap, "--prefix", topics.prefix]
    assert run([*arguments, "--from", "pages"]) == 1
    assert "was deleted and created again" in capfd.readouterr().err
    assert run([*arguments, "--from", "log"]) == 0


LOST, COPY, GONE = map(sequence_at, (5, 9, 6))
"""Sequences in `log_of_losses`: a page that was never passed on, its copy, a page that `pages` does not have."""


@pytest.fixture
def log_of_losses(broker: Broker, topics: Topics) -> Topics:
    """A log with void policies, a message that is no record, and records about pages that were lost."""
    values = [json.dumps(page(number, article(number % 3))).encode() for number in range(4)]
    offsets = append(broker.connection, topics.pages, [Message(topics.pages, value, partition=1) for value in values])
    messages = [PageMessage(topics.pages, 1, offset, value) for offset, value in zip(offsets, values, strict=True)]
    messages.append(PageMessage("elsewhere", 0, 7, json.dumps(page(9, article(9))).encode()))
    lost, second, third, copy, gone = [
        PageRecord(Source(at.topic, at.partition, at.offset), prepare_record(SpaceOptions(), at), SPACE)  # type: ignore[arg-type]
        for at in messages
    ]
    flag, drop, other = (
        Policy(rule_for(k=k), Action(action), SPACE) for k, action in ((3, "flag"), (3, "drop"), (0, "drop"))
    )
    pages = next(topic for topic in require_log(broker.connection, topics) if topic.name == topics.pages).topic_id
    records: list[LogRecord | bytes] = [
        PolicyRecord(flag, initial=True, log="the-log", group="old", pages=pages),
        b"no record",
        PolicyRecord(drop, replaces=0),
        PolicyRecord(other, replaces=0),  # void: the one before came first
        PolicyRecord(Policy(rule_for(), Action.DROP, "another space")),  # void
        lost,
        gone,
        ExpiredRecord(Source(topics.pages, 2, 0), 5),
        UnwrittenRecord((LOST, GONE), "they were deleted"),
        copy,
        second,
        CorrectionRecord("https://news.example/2", "https://news.example/1", True, "looked"),
        third,
        UnwrittenRecord((GONE,), "again"),
    ]
    log = topics.fingerprints
    by = ((BY, b"ann"),)
    append(
        broker.connection,
        log,
        [
            Message(log, record, partition=0)
            if isinstance(record, bytes)
            else log_message(log, record, by if isinstance(record, CorrectionRecord) else ())
            for record in records
        ],
    )
    return topics


@pytest.mark.parametrize("from_pages", [False, True])
def test_losses_are_replayed_into_topics(
    broker: Broker, log_of_losses: Topics, new_topics: Topics, from_pages: bool
) -> None:
    """Records name the sequences of the new log; what is not there is not named, and nothing is written for it."""
    arguments = ["replay", "--bootstrap", broker.bootstrap, "--prefix", log_of_losses.prefix]
    arguments += ["--from", "pages", "--space", "tf"] if from_pages else []
    assert run([*arguments, "--to-prefix", new_topics.prefix]) == (3 if from_pages else 0)
    log = records_of(broker.connection, new_topics)
    places = {record.prepared.page.id: sequence for sequence, record in log if isinstance(record, PageRecord)}
    unwritten = [record.sequences for _, record in log if isinstance(record, UnwrittenRecord)]
    lost = places["p0"]
    assert unwritten == ([(lost,)] if from_pages else [(lost, places["p9"]), (places["p9"],)])
    policies = [record for _, record in log if isinstance(record, PolicyRecord)]
    assert [(record.policy.action, record.replaces) for record in policies] == [
        (Action.FLAG, None),
        (Action.DROP, None),
    ]
    assert [record for _, record in log if isinstance(record, ExpiredRecord)] == [
        ExpiredRecord(Source(log_of_losses.pages, 2, 0), 5)
    ]
    verdicts = values_of(broker.connection, new_topics.verdicts)
    assert verdicts == expected(broker.connection, new_topics)
    kinds = {line["id"]: line["verdict"] for line in map(json.loads, verdicts)}
    assert (kinds["p0"], kinds["p3"]) == ("unique", "unique")
    assert values_of(broker.connection, new_topics.dlq) == []
    (correction,) = corrections_in(broker.connection, new_topics)
    assert correction.by == "ann"
