"""`--outputs verdicts`: the same verdicts, once, and pages are read only where the log does not say enough."""

import json
import random
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.consumer.fetcher import Fetcher

from dedup_service.runtime.kafka.client.connect import ConsumerRecord, connect
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.service import Service, ServiceSettings
from dedup_service.runtime.kafka.state.step_offsets import DECIDE, FINGERPRINT
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit
from dedup_service.runtime.kafka.topics import Layout, OutputMode, Topics, create
from tests.chaos.checking import check
from tests.chaos.reading import read_all
from tests.crawls.stream import stream
from tests.integration.conftest import Broker
from tests.integration.kafka.reading import until
from tests.integration.kafka.test_service import PAGES, Progress, everything_decided, publish, running, settings

pytestmark = [pytest.mark.slow, pytest.mark.broker]

LARGE = 200_000
TINY = 64 << 10
NEVER = RejectionLimit(share=1)
WRITTEN = ("verdicts", "dlq", "unique", "duplicate")


class Fetched:
    """Bytes of records of `pages` that members of a group have fetched; a monitor is none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, topics: Topics) -> None:
        self.size_bytes = 0
        handle = Fetcher._handle_fetch_response

        def counting(fetcher: Any, *arguments: Any) -> Any:
            if fetcher._subscriptions.subscription:
                self.size_bytes += sum(
                    len(partition.records or b"")
                    for topic in arguments[-1].responses
                    if topic.topic == topics.pages
                    for partition in topic.partitions
                )
            return handle(fetcher, *arguments)

        monkeypatch.setattr(Fetcher, "_handle_fetch_response", counting)


def large_page(number: int, text: str) -> bytes:
    """A page of 200 KB, nearly all of it in a key that is not ours."""
    noise = random.Random(number).randbytes(LARGE // 2).hex()
    return json.dumps({"url": f"https://a.example/{number}", "text": text, "raw": noise}).encode()


def text_of(number: int) -> str:
    """A text that no other number has."""
    return " ".join(f"word{number}x{position}" for position in range(60))


def in_transaction(broker: Broker, topics: Topics, values: list[bytes], partition: int, *, committed: bool) -> None:
    """Publish pages in a transaction, whose marker takes an offset."""
    configs = {"transactional_id": f"{topics.prefix}publisher", "max_request_size": 1 << 22}
    with closing(connect(KafkaProducer, broker.connection, **configs)) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for value in values:
            producer.send(topics.pages, value, partition=partition).get(30)
        producer.commit_transaction() if committed else producer.abort_transaction()


def only(chosen: ServiceSettings, step: str, progress: Progress) -> AbstractContextManager[Service]:
    """Run a service with one step."""
    return running(replace(chosen, steps=frozenset({step})), progress)


def what_is_written(broker: Broker, topics: Topics) -> dict[str, list[ConsumerRecord]]:
    """Return the records of each output."""
    names = {name: getattr(topics, name) for name in WRITTEN}
    found = read_all(broker.bootstrap, names.values())
    return {name: found[topic] for name, topic in names.items()}


def forget_what_was_written(broker: Broker, topics: Topics) -> None:
    """Delete outputs and offsets of the deciding step, so that another service writes them from the beginning."""
    gone = [topics.verdicts, topics.dlq, topics.offsets]
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        group = f"{topics.prefix}g.decide"
        until(lambda: client.delete_groups([group])[group] == "OK", "an empty group")
        client.delete_topics(gone)
        until(lambda: not set(gone) & set(client.list_topics()), "no topics")
    create(broker.connection, topics, Layout(partitions=4))


def in_order(records: list[ConsumerRecord]) -> dict[tuple[int, bytes], list[tuple[Any, ...]]]:
    """Return key, value and headers by partition of the output and of `pages`, where their order is defined."""
    found: dict[tuple[int, bytes], list[tuple[Any, ...]]] = {}
    for record in records:
        headers = dict(record.headers)
        source = headers["twinsieve.partition"] if "twinsieve.partition" in headers else headers["ce_id"].split(b"/")[1]
        found.setdefault((record.partition, source), []).append((record.key, record.value, record.headers))
    return found


def test_verdicts_and_dead_letters_are_those_of_the_ordinary_mode_and_contents_are_not_fetched(
    broker: Broker, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large pages, copies, rejected and aborted records, and markers; then the same log is decided again."""
    texts = [text_of(number if number % 3 else number // 2) for number in range(80)]
    values = [large_page(number, text) for number, text in enumerate(texts)]
    append(broker.connection, topics.pages, [Message(topics.pages, value, partition=0) for value in values[:20]])
    append(broker.connection, topics.pages, [Message(topics.pages, b"no page", partition=0)] * 2)
    in_transaction(broker, topics, values[20:40], 0, committed=True)
    append(broker.connection, topics.pages, [Message(topics.pages, value, partition=0) for value in values[40:50]])
    in_transaction(broker, topics, [large_page(1000, "aborted")], 1, committed=False)
    append(broker.connection, topics.pages, [Message(topics.pages, value, partition=1) for value in values[50:]])
    in_transaction(broker, topics, [b"{}"], 1, committed=True)
    chosen = settings(broker, topics, tmp_path / "fingerprint", rejection_limit=NEVER)
    with only(chosen, FINGERPRINT, first := Progress()):
        first.wait_for(lambda: first.prepared == 83)
    alone = replace(chosen, state=tmp_path / "verdicts", outputs=OutputMode.VERDICTS)
    fetched = Fetched(monkeypatch, topics)
    with only(alone, DECIDE, second := Progress()):
        second.wait_for(lambda: second.done == 83)
    here, few = what_is_written(broker, topics), fetched.size_bytes
    assert (here["unique"], here["duplicate"], second.problems) == ([], [], [])
    forget_what_was_written(broker, topics)
    with only(replace(chosen, state=tmp_path / "pages"), DECIDE, third := Progress()):
        third.wait_for(lambda: third.done == 83)
    there = what_is_written(broker, topics)
    assert in_order(here["verdicts"]) == in_order(there["verdicts"])
    assert in_order(here["dlq"]) == in_order(there["dlq"])
    assert len(here["verdicts"]) == len(there["unique"]) + len(there["duplicate"]) == 80
    assert len(here["dlq"]) == 3
    assert fetched.size_bytes - few > 80 * LARGE
    assert few < TINY + 1 * LARGE + 4096  # what was aborted has to be read to be known as such


@pytest.mark.long
def test_a_restart_in_the_other_mode_writes_what_it_says_from_there_on(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    """Each page has its verdict once, and only those of the ordinary mode are passed on."""
    sent = list(stream(16, PAGES))
    third = PAGES // 3
    for number, outputs in enumerate((OutputMode.PAGES, OutputMode.VERDICTS, OutputMode.PAGES)):
        publish(broker, topics, sent[number * third : (number + 1) * third])
        chosen = settings(broker, topics, tmp_path / "state", outputs=outputs)
        with running(chosen, progress := Progress()):
            progress.wait_for(everything_decided(broker, topics))
    complaints = check(broker.bootstrap, topics, sent).complaints
    assert complaints
    assert all(complaint.startswith(("missing in unique", "missing in duplicate")) for complaint in complaints)
    written = what_is_written(broker, topics)
    assert len(written["verdicts"]) + len(written["dlq"]) == PAGES
    assert 0 < len(written["unique"]) + len(written["duplicate"]) < len(written["verdicts"])
