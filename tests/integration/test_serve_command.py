"""`twinsieve serve` as an operator sees it: probes, metrics, log lines, signals, exit codes."""

import json
import re
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Topics
from tests.chaos.reading import read_all
from tests.hangs import HANG_S
from tests.integration.conftest import PARTITIONS, Broker
from tests.integration.serving import Serving
from tests.interfaces.cli.running import article, page

pytestmark = pytest.mark.slow


def pages_decided(serving: Serving) -> int:
    """Return the number of pages with a verdict, from the metrics."""
    counts = re.findall(r'^twinsieve_pages_total\{verdict="\w+"\} (\S+)$', serving.get("/metrics")[1], re.MULTILINE)
    return int(sum(map(float, counts)))


def test_from_start_to_stop(broker: Broker, topics: Topics, serve: Callable[..., Serving]) -> None:
    """It becomes ready; SIGTERM writes the pages in flight; a new start continues from there."""
    values = [json.dumps(page(number, article(number % 20))).encode() for number in range(40)]
    append(broker.connection, topics.pages, [Message(topics.pages, value) for value in [*values, b"rubbish"]])
    first = serve()
    first.wait_for(lambda: first.get("/readyz")[0] == 200)
    assert first.get("/livez") == (200, "live\n")
    first.wait_for(lambda: pages_decided(first) == 40)
    first.wait_for(lambda: 'twinsieve_rejected_records_total{step="decide"} 1.0' in first.get("/metrics")[1])
    assert first.end(signal.SIGTERM) == 143
    events = [line["event"] for line in first.lines]
    assert events[0] == "starting"
    assert "stopping; a second signal ends the process at once" in events
    assert events[-1] == "stopped"
    second = serve()
    second.wait_for(lambda: any(line["event"] == "restored" for line in second.lines))
    append(broker.connection, topics.pages, [Message(topics.pages, json.dumps(page(99)).encode())])
    second.wait_for(lambda: pages_decided(second) == 1)
    assert second.end(signal.SIGINT) == 130


def test_metrics_are_those_of_what_was_written(broker: Broker, topics: Topics, serve: Callable[..., Serving]) -> None:
    """A service on a broker counts what a reader of its topics counts: verdicts, dead letters, records of the log."""
    values = [json.dumps(page(number, article(number % 12))).encode() for number in range(30)]
    values += [json.dumps(page(number)).encode() for number in (0, 3)]  # visits of known addresses
    values += [json.dumps(page(40, "too short")).encode(), b"rubbish", b"{}"]
    append(broker.connection, topics.pages, [Message(topics.pages, value) for value in values])
    serving = serve()
    serving.wait_for(lambda: samples(serving).get('twinsieve_records_total{step="decide"}') == len(values))
    written = read_all(broker.bootstrap, [topics.verdicts, topics.dlq, topics.fingerprints])
    verdicts = Counter(json.loads(record.value or b"{}")["verdict"] for record in written[topics.verdicts])
    assert len(verdicts) >= 3
    found = samples(serving)
    counted = {kind: found[f'twinsieve_pages_total{{verdict="{kind}"}}'] for kind in verdicts}
    assert counted == dict(verdicts)
    assert len(written[topics.dlq]) == 2
    assert {found[f'twinsieve_rejected_records_total{{step="{step}"}}'] for step in ("fingerprint", "decide")} == {2}
    assert found['twinsieve_records_total{step="fingerprint"}'] == len(values)
    assert found["twinsieve_entries"] == verdicts["unique"] + verdicts["undecided"]
    assert found['twinsieve_log_sequence{step="decide"}'] >= len(values)
    serving.wait_for(lambda: set(lags(serving)) == {0})  # measured within seconds, for each partition and step
    assert len(lags(serving)) == 2 * PARTITIONS
    assert serving.end(signal.SIGTERM) == 143


def lags(serving: Serving) -> list[float]:
    """Return the lag of each step in each partition."""
    return [count for name, count in samples(serving).items() if name.startswith("twinsieve_lag_records")]


def samples(serving: Serving) -> dict[str, float]:
    """Return the samples of `/metrics`, by name and labels."""
    lines = (line for line in serving.get("/metrics")[1].splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_missing_topics(broker: Broker, serve: Callable[..., Serving]) -> None:
    """They are not created by accident: the service says which command creates them."""
    nowhere = serve("--prefix", "nowhere.")
    assert nowhere.process.wait(HANG_S) in {1, 2}
    assert "nowhere." in nowhere.log.read_text().splitlines()[-1]
    assert "topics create" in nowhere.log.read_text().splitlines()[-1]


def test_live_stats_of_a_service(broker: Broker, topics: Topics, serve: Callable[..., Serving]) -> None:
    """They count every page of the log; duplicates are compared again by the texts that `pages` still has."""
    values = [json.dumps(page(number, article(number % 20))).encode() for number in range(40)]
    append(broker.connection, topics.pages, [Message(topics.pages, value) for value in values])
    serving = serve()

    def stats() -> dict[str, Any]:
        return json.loads(serving.get("/api/stats?history=none")[1] or "{}")  # type: ignore[no-any-return]

    serving.wait_for(lambda: stats().get("summary", {}).get("pages") == 40)
    serving.wait_for(lambda: stats()["false_drops"]["checked"] > 0)
    values = stats()
    assert (values["summary"]["mode"], values["summary"]["scope"]) == ("serve", "log")
    assert values["summary"]["verdicts"]["duplicate"] == 20
    assert values["false_drops"]["wrong"] == 0
    assert values["summary"]["pool"]["processes"] == 1
    rows = json.loads(serving.get("/api/duplicates?limit=200")[1])["rows"]
    assert len(rows) == 20
    assert all(row["of_sequence"] < row["sequence"] for row in rows)
    assert serving.end(signal.SIGTERM) == 143
    again = serve()
    again.wait_for(lambda: '"before":{' in again.get("/api/stats?history=none")[1])
    summary = json.loads(again.get("/api/stats?history=none")[1])["summary"]
    assert (summary["pages"], summary["before"]["duplicate"], summary["before"]["unique"]) == (0, 20, 20)
