"""`twinsieve serve` as an operator meets it: probes, metrics, log lines, signals, exit codes."""

import json
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest

from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Topics
from tests.integration.conftest import Broker
from tests.integration.serving import PATIENCE_S, Serving
from tests.interfaces.cli.running import article, page

pytestmark = pytest.mark.slow


def pages_done(serving: Serving) -> int:
    """Pages that got a verdict, by its metrics."""
    counts = re.findall(r'^twinsieve_pages_total\{verdict="\w+"\} (\S+)$', serving.get("/metrics")[1], re.MULTILINE)
    return int(sum(map(float, counts)))


def test_from_start_to_stop(broker: Broker, topics: Topics, serve: Callable[..., Serving]) -> None:
    """Ready once pages go through it; SIGTERM ends it with what it has in hand written; it goes on where it was."""
    values = [json.dumps(page(number, article(number % 20))).encode() for number in range(40)]
    append(broker.connection, topics.pages, [Message(topics.pages, value) for value in [*values, b"rubbish"]])
    first = serve()
    first.wait_for(lambda: first.get("/readyz")[0] == 200)
    assert first.get("/livez") == (200, "live\n")
    first.wait_for(lambda: pages_done(first) == 40)
    first.wait_for(lambda: 'twinsieve_rejected_records_total{step="decide"} 1.0' in first.get("/metrics")[1])
    assert first.end(signal.SIGTERM) == 143
    events = [line["event"] for line in first.lines]
    assert events[0] == "starting"
    assert "stopping; a second signal ends the process at once" in events
    assert events[-1] == "stopped"
    second = serve()
    second.wait_for(lambda: any(line["event"] == "restored" for line in second.lines))
    append(broker.connection, topics.pages, [Message(topics.pages, json.dumps(page(99)).encode())])
    second.wait_for(lambda: pages_done(second) == 1)
    assert second.end(signal.SIGINT) == 130


def test_another_rule_than_the_log_s(broker: Broker, topics: Topics, serve: Callable[..., Serving]) -> None:
    """The service does not start, and says in one line what to do; with the log's own rule it does."""
    first = serve("--k", "2")
    first.wait_for(lambda: first.get("/readyz")[0] == 200)
    assert first.end(signal.SIGTERM) == 143
    other = serve("--k", "3")
    assert other.process.wait(PATIENCE_S) == 1
    last = other.log.read_text().splitlines()[-1]
    assert last.startswith("twinsieve: ")
    assert "policy set" in last
    assert "Traceback" not in other.log.read_text()
    same = serve()
    same.wait_for(lambda: same.get("/readyz")[0] == 200)


def test_topics_that_are_not_there(broker: Broker, serve: Callable[..., Serving]) -> None:
    """Nothing is made by accident."""
    nowhere = serve("--prefix", "nowhere.")
    assert nowhere.process.wait(PATIENCE_S) in {1, 2}
    assert "nowhere." in nowhere.log.read_text().splitlines()[-1]
    assert "topics create" in nowhere.log.read_text().splitlines()[-1]


def test_the_feed_of_a_service(broker: Broker, topics: Topics, serve: Callable[..., Serving]) -> None:
    """Every page of the log; and a duplicate compared again by the texts that `pages` still has."""
    values = [json.dumps(page(number, article(number % 20))).encode() for number in range(40)]
    append(broker.connection, topics.pages, [Message(topics.pages, value) for value in values])
    serving = serve()

    def figures() -> dict[str, Any]:
        return json.loads(serving.get("/api/stats?history=none")[1] or "{}")  # type: ignore[no-any-return]

    serving.wait_for(lambda: figures().get("summary", {}).get("pages") == 40)
    serving.wait_for(lambda: figures()["false_drops"]["checked"] > 0)
    found = figures()
    assert (found["summary"]["mode"], found["summary"]["scope"]) == ("serve", "log")
    assert found["summary"]["verdicts"]["duplicate"] == 20
    assert found["false_drops"]["wrong"] == 0
    assert found["summary"]["pool"]["processes"] == 1
    rows = json.loads(serving.get("/api/duplicates?limit=200")[1])["rows"]
    assert len(rows) == 20
    assert all(row["of_sequence"] < row["sequence"] for row in rows)
    assert serving.end(signal.SIGTERM) == 143
