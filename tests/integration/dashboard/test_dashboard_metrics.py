"""Prometheus during a crawl: it accepts our rules, and answers all queries of the Grafana dashboard."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.kafka.ports import free_ports
from deploy.programs import PROMETHEUS, PROMTOOL, provide
from tests.hangs import HANG_S
from tests.integration.dashboard.browsing import Demo
from tests.integration.scraping import RULES, Prometheus

pytestmark = pytest.mark.long

DASHBOARD = Path(__file__).parents[3] / "deploy" / "grafana" / "dashboards" / "twinsieve.json"
VARIABLES = {"$__rate_interval": "1m", "$job": ".*"}
NOT_IN_A_CRAWL = (
    "twinsieve_lag_",
    "twinsieve_live",
    "twinsieve_ready",
    "twinsieve_restore",
    "twinsieve_problems",
    "twinsieve_rejected",
    "twinsieve_stalled",
    "twinsieve_oldest_waiting",
    "twinsieve_deleted",
    "twinsieve_monitor",
    "twinsieve_waiting_outcomes",
    "twinsieve_buffered",
    "twinsieve_assigned",
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
    done = subprocess.run(command, cwd=RULES.parent, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


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
