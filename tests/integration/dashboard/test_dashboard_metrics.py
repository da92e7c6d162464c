"""Prometheus during a crawl: it accepts our rules, and answers all queries of the Grafana dashboard."""

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.kafka.ports import free_ports
from deploy.programs import PROMETHEUS, PROMTOOL, provide
from tests.integration.dashboard.browsing import PATIENCE_S, Demo

pytestmark = pytest.mark.slow

DEPLOY = Path(__file__).parents[3] / "deploy"
CONFIG = DEPLOY / "prometheus" / "prometheus.yml"
RULES = CONFIG.with_name("rules.yml")
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "twinsieve.json"
VARIABLES = {"$__rate_interval": "1m", "$job": ".*"}
NOT_IN_A_CRAWL = (
    "twinsieve_lag_",
    "twinsieve_live",
    "twinsieve_ready",
    "twinsieve_restore",
    "twinsieve_problems",
    "twinsieve_rejected",
)
"""Prefixes of metrics without series in a crawl that has no log and no problems."""


@pytest.fixture(scope="module")
def tools() -> dict[str, Path]:
    """The paths of Prometheus and promtool."""
    server, tool = provide(PROMETHEUS, PROMTOOL)
    return {"prometheus": server, "promtool": tool}


@pytest.mark.parametrize("arguments", [["check", "rules", "rules.yml"], ["test", "rules", "rules_test.yml"],
                                      ["check", "config", "prometheus.yml"]], ids=" ".join)  # fmt: skip
def test_promtool_accepts_rules_and_configuration(tools: dict[str, Path], arguments: list[str]) -> None:
    """Syntax and types are right, and each alert fires when its test expects it."""
    command = [tools["promtool"], *arguments]
    done = subprocess.run(command, cwd=RULES.parent, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


class Prometheus:
    """A server with our configuration, scraping one process every second."""

    def __init__(self, program: Path, folder: Path, target: str) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yml"
        text = CONFIG.read_text()
        for old, new in (("localhost:9100", target), ("_interval: 15s", "_interval: 1s"), ("rules.yml", str(RULES))):
            assert old in text
            text = text.replace(old, new)
        config.write_text(text)
        self._log = folder / "prometheus.log"
        command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder}", "--log.level=warn"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
            )

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer; fail if Prometheus reports an error."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as response:
            answer = json.load(response)
        assert answer["status"] == "success", answer
        return answer["data"]

    def value(self, expression: str) -> float:
        """Return the value of an expression, 0 if there is none or no answer yet."""
        try:
            samples = self.ask("query", query=expression)["result"]
        except OSError:
            return 0.0
        return float(samples[0]["value"][1]) if samples else 0.0

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until `condition` holds; fail if Prometheus ends."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.1)

    def end(self) -> None:
        """Stop the server."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def prometheus(tools: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A server that has scraped a crawl from its start, including a duplicate that was compared again.

    It starts before the crawl, which lasts for several scrapes: after its end, no counter increases any more.
    """
    (port,) = free_ports(1)
    server = Prometheus(tools["prometheus"], tmp_path_factory.mktemp("prometheus"), f"127.0.0.1:{port}")
    try:
        server.wait_for(lambda: server.value("vector(1)"))
        with Demo.running(tmp_path_factory.mktemp("demo"), port, delay_s=0.1):
            server.wait_for(lambda: server.value("job:twinsieve_duplicates:ratio_rate5m") > 0)
            server.wait_for(lambda: server.value('twinsieve_false_drop_ratio{bound="high"}') > 0)
            server.wait_for(lambda: server.value("job_verdict:twinsieve_pages:rate5m") > 0)
            yield server
    finally:
        server.end()


def test_every_panel_of_grafana_has_data(prometheus: Prometheus) -> None:
    """No query is an error, and those on metrics of a crawl are not empty."""
    queries = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    assert len(queries) > 30
    empty = []
    for query in queries:
        expression = query
        for name, value in VARIABLES.items():
            expression = expression.replace(name, value)
        if not prometheus.ask("query", query=expression)["result"]:
            empty.append(query)
    assert [query for query in empty if not any(name in query for name in NOT_IN_A_CRAWL)] == []


def test_every_rule_is_evaluated(prometheus: Prometheus) -> None:
    """Prometheus reports each as healthy, and all series that the alerts use exist."""
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    written = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {rule.get("record", rule.get("alert")) for rule in written}
    prometheus.wait_for(
        lambda: all(rule["health"] == "ok" for group in prometheus.ask("rules")["groups"] for rule in group["rules"])
    )
    empty = []
    for rule in written:
        prometheus.ask("query", query=rule["expr"])
        series = set(re.findall(r"\b[a-z_]*:?(?:twinsieve|process)_[\w:]+", rule["expr"]))
        if any(not prometheus.ask("query", query=name)["result"] for name in series):
            empty.append((rule.get("alert", rule.get("record")), sorted(series)))
    assert [
        (name, series) for name, series in empty if not any(metric in str(series) for metric in NOT_IN_A_CRAWL)
    ] == []


def test_no_alert_fires_for_a_crawl_without_problems(prometheus: Prometheus) -> None:
    """The only target is up."""
    (target,) = prometheus.ask("targets", state="active")["activeTargets"]
    assert target["health"] == "up", target
    assert [alert for alert in prometheus.ask("alerts")["alerts"] if alert["state"] == "firing"] == []
