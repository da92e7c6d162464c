"""`twinsieve groups` on a service's log."""

import json
from pathlib import Path

import pytest

from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.topics import Topics
from tests.integration.conftest import Broker
from tests.integration.test_replay import logged, published

pytestmark = pytest.mark.slow


def test_groups_of_a_log_are_those_of_its_verdicts(
    broker: Broker, topics: Topics, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each verdict of a replay is a member, at its place in `pages`; the group is that of the page that it names."""
    logged(broker, topics, published(broker, topics))
    where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix)
    assert run(["replay", *where, "-o", str(tmp_path / "verdicts.jsonl"), "-q"]) == 0
    assert run(["groups", *where, "--min-size", "0"]) == 0
    shown = capfd.readouterr()
    groups = [json.loads(line) for line in shown.out.splitlines()]
    members = {member["sequence"]: (group, member) for group in groups for member in group["members"]}
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    verdicts = [verdict for verdict in verdicts if "verdict" in verdict]
    assert members.keys() == {verdict["sequence"] for verdict in verdicts}
    for verdict in verdicts:
        group, member = members[verdict["sequence"]]
        assert {name: member[name] for name in ("verdict", "score", "reason", "distance")} == {
            name: verdict[name] for name in ("verdict", "score", "reason", "distance")
        }
        assert member["source"]["topic"] == topics.pages
        assert member["at"] is not None
        first = group["members"][0]
        assert verdict["duplicate_of"] in {None, first["id"]}
    counts = json.loads(shown.err.splitlines()[-1])
    assert (counts["members"], counts["rejected"], counts["repeated"]) == (len(verdicts), 1, 1)
    removed = [member["url"] for _, member in members.values() if member["removed"]]
    assert removed == ["[erased]"]
