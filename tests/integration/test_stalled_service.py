"""A service that stalls says so: metrics, readiness and alerts are true while nothing is done, and recover with it.

The worker processes, which extract HTML, are stopped (SIGSTOP), so no page enters the log and no verdict is given,
while the threads of the steps run on and see nothing wrong.
"""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from deploy.programs import PROMETHEUS, provide
from tests.integration.conftest import PARTITIONS, Broker
from tests.integration.scraping import RULES, Prometheus
from tests.integration.serving import Serving
from tests.interfaces.cli.running import article, page

pytestmark = pytest.mark.slow

STALL_S = 4
"""`stall_s` of the test, and the bound of the copied alert; the defaults are 90 s and 120 s."""


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *descendants(child)]
    return found


@pytest.fixture
def stopped() -> Iterator[Callable[[int], Callable[[], None]]]:
    """Stop the descendants of a process; return what lets them continue, which happens after the test at the latest."""
    halted: list[int] = []

    def resume() -> None:
        while halted:
            with suppress(ProcessLookupError):
                os.kill(halted.pop(), signal.SIGCONT)

    def stop(pid: int) -> Callable[[], None]:
        halted.extend(descendants(pid))
        assert halted
        for child in halted:
            os.kill(child, signal.SIGSTOP)
        return resume

    yield stop
    resume()


def values(serving: Serving, name: str) -> dict[str, float]:
    """Return the samples of a metric, by their labels."""
    lines = re.findall(rf"^twinsieve_{name}(\{{.*\}})? (\S+)$", serving.get("/metrics")[1], re.MULTILINE)
    return {labels: float(number) for labels, number in lines}


def decided(serving: Serving) -> float:
    """Return the number of pages with a verdict."""
    return sum(values(serving, "pages_total").values())


def impatient_rules(folder: Path) -> Path:
    """Return a copy of our rules in which a stall of some seconds fires at once; nothing else of it differs."""
    rules = yaml.safe_load(RULES.read_text())
    (stalled,) = [
        rule for group in rules["groups"] for rule in group["rules"] if rule.get("alert") == "TwinsieveStalled"
    ]
    assert "> 120" in stalled["expr"]
    stalled |= {"expr": stalled["expr"].replace("> 120", f"> {STALL_S}"), "for": "1s"}
    copy = folder / "impatient.yml"
    copy.write_text(yaml.safe_dump(rules))
    return copy


@pytest.mark.long
def test_brokers_that_answer_nothing_are_seen(own_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """/readyz says so after three measurements, the dashboard shows no lag and for how long; then both recover."""
    cluster, topics = own_cluster(), Topics("t.")
    connection = Connection(cluster.bootstrap)
    create(connection, topics, Layout(partitions=1))
    state = tmp_path / "state"
    serving = Serving(tmp_path / "log", "--bootstrap", cluster.bootstrap, "--prefix", "t.", "--state", state)

    def summary() -> dict[str, Any]:
        return json.loads(serving.get("/api/stats")[1])["summary"]  # type: ignore[no-any-return]

    try:
        append(connection, topics.pages, [Message(topics.pages, json.dumps(page(1, article(1))).encode())])
        serving.wait_for(lambda: decided(serving) == 1)
        serving.wait_for(lambda: serving.get("/readyz")[0] == 200)
        serving.wait_for(lambda: set(summary()["lag"]) == {"fingerprint", "decide"})
        cluster.pause(0)
        serving.wait_for(lambda: serving.get("/readyz")[0] == 503)
        frozen = summary()
        assert frozen["lag"] == {}
        assert frozen["lag_age_s"] >= 15
        assert "it is not known whether pages wait" in frozen["not_ready"]
        cluster.resume(0)
        serving.wait_for(lambda: serving.get("/readyz")[0] == 200)
        assert summary()["not_ready"] == ""
        assert set(summary()["lag"]) == {"fingerprint", "decide"}
    finally:
        serving.process.kill()
        serving.process.wait()


@pytest.mark.long
def test_a_stalled_service_is_seen(
    broker: Broker,
    topics: Topics,
    serve: Callable[..., Serving],
    stopped: Callable[[int], Callable[[], None]],
    tmp_path: Path,
) -> None:
    """Lag and ages grow, /readyz says which partition and how long, the alert fires; then all recover."""
    numbers = count()

    def publish(pages: int) -> None:
        made = [page(number, "") | {"html": f"<p>{article(number)}</p>"} for number in islice(numbers, pages)]
        bodies = [json.dumps({name: value for name, value in one.items() if name != "text"}).encode() for one in made]
        append(
            broker.connection,
            topics.pages,
            [Message(topics.pages, body, partition=at % PARTITIONS) for at, body in enumerate(bodies)],
        )

    serving = serve(stall_s=STALL_S, page_timeout_s=600)
    publish(40)
    serving.wait_for(lambda: decided(serving) == 40)
    serving.wait_for(lambda: set(values(serving, "lag_records").values()) == {0.0})
    serving.wait_for(lambda: serving.get("/readyz")[0] == 200)
    (program,) = provide(PROMETHEUS)
    prometheus = Prometheus(program, tmp_path, serving.url.removeprefix("http://"), impatient_rules(tmp_path))

    def alert() -> list[dict[str, str]]:
        return [
            one["labels"]
            for one in prometheus.ask("alerts")["alerts"]
            if one["state"] == "firing" and one["labels"]["alertname"] == "TwinsieveStalled"
        ]

    try:
        prometheus.wait_for(lambda: prometheus.value("sum(twinsieve_ready)"))
        assert alert() == []
        resume = stopped(serving.process.pid)
        publish(80)
        serving.wait_for(lambda: sum(values(serving, "lag_records").values()) == 2 * 80)
        first = max(values(serving, "oldest_waiting_page_seconds").values())
        publish(40)
        serving.wait_for(lambda: sum(values(serving, "lag_records").values()) == 2 * 120)
        serving.wait_for(lambda: max(values(serving, "oldest_waiting_page_seconds").values()) > first + STALL_S)
        serving.wait_for(lambda: min(values(serving, "stalled_seconds").values()) > STALL_S)
        serving.wait_for(lambda: serving.get("/readyz")[0] == 503)
        reason = serving.get("/readyz")[1]
        waits = rf"(fingerprint|decide): \d+ records of {topics.pages}-\d wait, and none was done for \d+ s"
        assert re.match(waits, reason), reason
        assert serving.get("/livez") == (200, "live\n")
        assert sum(values(serving, "buffered_pages").values()) == 2 * 120
        assert max(values(serving, "monitor_age_seconds").values()) < 60
        lag = json.loads(serving.get("/api/stats?history=none")[1])["summary"]["lag"]
        assert {step: one["records"] for step, one in lag.items()} == {"fingerprint": 120, "decide": 120}
        prometheus.wait_for(lambda: {one["step"] for one in alert()} == {"fingerprint", "decide"})
        resume()
        serving.wait_for(lambda: decided(serving) == 160)
        serving.wait_for(lambda: serving.get("/readyz") == (200, "ready\n"))
        for gauge in ("lag_records", "oldest_waiting_page_seconds", "stalled_seconds"):
            serving.wait_for(lambda gauge=gauge: set(values(serving, gauge).values()) == {0.0})  # type: ignore[misc]
        prometheus.wait_for(lambda: not alert())
        assert serving.end(signal.SIGTERM) == 143
    finally:
        prometheus.end()


@pytest.mark.long
def test_expired_records_are_counted_one_by_one(broker: Broker, topics: Topics, serve: Callable[..., Serving]) -> None:
    """Retention deletes 300 pages of two partitions while the service is down: the metric says 300."""
    bodies = [json.dumps(page(number, article(number))).encode() for number in range(340)]
    first = serve()
    append(
        broker.connection,
        topics.pages,
        [Message(topics.pages, body, partition=at % 2) for at, body in enumerate(bodies[:20])],
    )
    first.wait_for(lambda: decided(first) == 20)
    assert first.end(signal.SIGTERM) == 143
    append(
        broker.connection,
        topics.pages,
        [Message(topics.pages, body, partition=at % 2) for at, body in enumerate(bodies[20:])],
    )
    delete_below(broker, topics, 160)
    second = serve()
    second.wait_for(lambda: decided(second) == 20)
    assert values(second, "expired_records_total") == {"": 300.0}
    assert _expired(second) == {'{kind="expired",step="fingerprint"}': 300.0}
    second.wait_for(lambda: set(values(second, "lag_records").values()) == {0.0})
    assert set(values(second, "deleted_records").values()) == {0.0}


def _expired(serving: Serving) -> dict[str, float]:
    """Return what was reported as expired, by step; other problems pass, such as a transaction that took too long."""
    return {labels: count for labels, count in values(serving, "problems_total").items() if 'kind="expired"' in labels}


def delete_below(broker: Broker, topics: Topics, offset: int) -> None:
    """Delete the records of partitions 0 and 1 of `pages` below `offset`, as retention does."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.delete_records({TopicPartition(topics.pages, number): offset for number in (0, 1)})
    admin.close()
