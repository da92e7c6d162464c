"""The step `canonical` of a service, with a real broker."""

import json
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.state.canonical_state import written_position
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka.readiness import wait_until
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from tests.integration.serving import Serving
from tests.integration.test_replay import logged, published

pytestmark = pytest.mark.slow


def messages_of(broker: Broker, topic: str) -> list[ConsumerRecord]:
    """All committed messages of a topic with one partition."""
    with closing(LogConsumer(broker.connection, topic)) as reader:
        return [message for batch in reader.read_to_end() for message in batch]


def table_of(messages: list[ConsumerRecord]) -> dict[int, Any]:
    """What a reader of a compacted topic has in the end; no message repeats the one before of its key."""
    table: dict[int, Any] = {}
    for message in messages:
        group, value = int(message.key), None if message.value is None else json.loads(message.value)["canonical"]
        assert table.get(group) != value
        table[group] = value
    return {group: value for group, value in table.items() if value is not None}


def test_the_topic_says_what_groups_does(
    broker: Broker, topics: Topics, serve: Callable[..., Serving], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """After the log, a change of the policy, a retraction while the process was killed, and with two processes."""
    logged(broker, topics, published(broker, topics))
    where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix)
    policies: list[set[str]] = []

    def expected() -> dict[int, Any]:
        """What `groups` says, by the policy of the log."""
        capfd.readouterr()
        assert run(["groups", *where, "--min-size", "0"]) == 0
        groups = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        policies.append({group["policy"] for group in groups})
        return {
            group["group"]: group["canonical"]
            for group in groups
            if group["canonical"] is not None
            and (len({m["url"] for m in group["members"]}) > 1 or group["canonical"]["sequence"] != group["group"])
        }

    def wait_for_the_end(serving: Serving) -> list[ConsumerRecord]:
        """Wait until the table is what is expected; return the messages that make it."""
        table = expected()
        serving.wait_for(lambda: table_of(messages_of(broker, topics.canonical)) == table)
        return messages_of(broker, topics.canonical)

    first = serve("--steps", "canonical")
    assert len(table_of(wait_for_the_end(first))) >= 19
    first.wait_for(lambda: first.get("/readyz") == (200, "ready\n"))
    assert run(["policy", "set", *where, "--canonical", "hosts:other.example"]) == 0
    assert run(["policy", "set", *where, "--canonical", "longest"]) == 0
    before = wait_for_the_end(first)
    assert policies[-1] == {"longest"}
    assert first.end(signal.SIGKILL) == -signal.SIGKILL

    url, another = [value["url"] for value in table_of(before).values()][:2]
    assert run(["retract", *where, url]) == 0
    second = serve("--steps", "canonical")
    after = wait_for_the_end(second)
    assert [message.offset for message in after[: len(before)]] == [message.offset for message in before]
    assert url not in {value["url"] for value in table_of(after).values()}
    assert written_position(broker.connection, topics).offset > 0

    third = serve("--steps", "canonical", "--state", tmp_path / "another")
    third.wait_for(lambda: third.get("/readyz") == (200, "ready\n"))
    assert run(["retract", *where, another]) == 0
    expect, both = expected(), (second, third)
    assert wait_until(lambda: table_of(messages_of(broker, topics.canonical)) == expect, timeout_s=HANG_S)
    assert {serving.end(signal.SIGTERM) for serving in both} <= {143, 1}  # one may have found what it did not write
    assert table_of(messages_of(broker, topics.canonical)) == expect
