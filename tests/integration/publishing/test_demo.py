"""`twinsieve demo --bootstrap`: the verdicts of crawl, broker and service agree with the truth."""

import json
from pathlib import Path

import pytest

from tests.crawler.running import json_lines, run
from tests.integration.conftest import Broker
from twinsieve_crawler.demo.site import build_site

pytestmark = pytest.mark.slow


def test_the_verdicts_of_a_service_agree_with_the_truth(tmp_path: Path, broker: Broker) -> None:
    """Every page has one verdict, no copy is missed, no other page is called one; --keep stores the verdicts."""
    kept = tmp_path / "kept"
    done = run("demo", "--bootstrap", broker.bootstrap, "--json", "--keep", kept, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["agrees"]
    assert {row["path"] for row in report["rows"]} == set(build_site())
    verdicts = json_lines((kept / "verdicts.jsonl").read_text("utf-8"))
    assert len({(verdict["partition"], verdict["offset"]) for verdict in verdicts}) == len(verdicts)
    assert len(report["rows"]) == len(verdicts)
