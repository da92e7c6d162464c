"""The Grafana dashboard and the Prometheus rules: every metric that they name exists."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.probes import Health
from dedup_service.runtime.events import BatchEvent, ProblemEvent
from dedup_service.runtime.kafka.status import Backlog
from tests.interfaces.http.fake_status import FakeStatus, both_steps, waiting
from tests.interfaces.http.test_metrics import full_metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "twinsieve.json"
RULES = DEPLOY / "prometheus" / "rules.yml"
RUNBOOK = DEPLOY.parent / "docs" / "service.md"
OF_PROMETHEUS = {"ALERTS", "up"}


@pytest.fixture(scope="module")
def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard."""
    return json.loads(DASHBOARD.read_text())["panels"]


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    """The recording and alerting rules."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def series_of_the_code() -> set[str]:
    """Return the names of all samples that a process can expose."""
    told = FakeStatus(both_steps(backlog=Backlog(partitions=(waiting("decide", 0, 1),), measured_at=0.0)))
    feed, _ = full_metrics(told)
    metrics = Metrics(told, Health(told), feed)
    metrics.batch(BatchEvent(step="s", records=1, seconds={"p": 1.0}, sequence=1, entries=1))
    metrics.problem(ProblemEvent("s", "transaction_lost", "text"))
    return {sample.name for family in metrics.registry.collect() for sample in family.samples}


def named(expression: str) -> set[str]:
    """Return the series in an expression: words with `_` or `:` except functions, labels and modifiers."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}", "{}", bare)
    bare = re.sub(r"\b(by|ignoring|on|without)\s*\([^)]*\)", "", bare)
    return {word for word in re.findall(r"[a-zA-Z_:][\w:]*(?!\w|\s*\()", bare) if "_" in word or ":" in word}


def test_the_dashboard_names_only_existing_metrics(panels: list[dict[str, Any]]) -> None:
    """Every query of every panel uses metrics of the code."""
    used = set().union(*(named(target["expr"]) for panel in panels for target in panel["targets"]))
    assert len(used) > 20
    assert used - {"$__rate_interval", "__rate_interval"} <= series_of_the_code()


def test_the_rules_name_only_existing_metrics(rules: list[dict[str, Any]]) -> None:
    """Every rule uses metrics of the code, or series that another rule records."""
    recorded = {rule["record"] for rule in rules if "record" in rule}
    used = set().union(*(named(rule["expr"]) for rule in rules))
    assert used >= {"twinsieve_false_drop_ratio", "twinsieve_ready", "process_resident_memory_bytes"} | recorded
    assert used <= series_of_the_code() | recorded | OF_PROMETHEUS


def test_alerts_are_complete(rules: list[dict[str, Any]]) -> None:
    """Each has a unique name, a severity, a summary and a description."""
    alerts = [rule for rule in rules if "alert" in rule]
    assert len({alert["alert"] for alert in alerts}) == len(alerts)
    for alert in alerts:
        assert alert["labels"]["severity"] in {"warning", "critical"}, alert["alert"]
        assert alert["annotations"].keys() == {"summary", "description"}, alert["alert"]


def test_the_runbook_has_a_line_for_each_alert(rules: list[dict[str, Any]]) -> None:
    """And none for an alert that does not exist."""
    text = RUNBOOK.read_text().split("### When an alert fires")[1].split("\n## ")[0]
    assert set(re.findall(r"`(Twinsieve\w+)`", text)) == {rule["alert"] for rule in rules if "alert" in rule}


def test_figures_of_the_whole_service_are_not_summed_over_processes(
    panels: list[dict[str, Any]], rules: list[dict[str, Any]]
) -> None:
    """Each process reports all partitions: a sum over them takes the largest value of each partition first."""
    expressions = [target["expr"] for panel in panels for target in panel["targets"]] + [rule["expr"] for rule in rules]
    whole = r"(?:lag_records|oldest_waiting_page_seconds|stalled_seconds|deleted_records)"
    used = [expression for expression in expressions if re.search(rf"twinsieve_{whole}\b", expression)]
    assert len(used) > 5
    for expression in used:
        assert not re.search(rf"(?:sum|count)[^(]*(?:\([^)]*\) )?\(twinsieve_{whole}", expression), expression


def test_the_provisioning_fits_the_dashboard() -> None:
    """It names the folder of the dashboard and a data source of the type that its variable needs."""
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "twinsieve.yaml").read_text())["providers"]
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    assert source["type"] == next(variable["query"] for variable in variables if variable["type"] == "datasource")
    assert provider["options"]["path"].endswith(DASHBOARD.stem)
