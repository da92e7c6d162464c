"""`twinsieve demo`: a whole crawl, compared with the truth."""

import json
from pathlib import Path

import pytest

from tests.crawler.running import run
from twinsieve_crawler.demo.site import build_site

pytestmark = pytest.mark.slow


def test_every_copy_is_found_and_nothing_else_is_dropped(tmp_path: Path) -> None:
    """All pages are visited; copies are duplicates; series, lists and articles on the same event are kept."""
    done = run("demo", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {row["path"] for row in report["rows"]} == set(build_site())
    assert report["outcomes"]["false drop"] == 0
    assert report["outcomes"]["missed copy"] == 0
    assert {"unique", "duplicate", "unchanged", "updated", "undecided"} == set(report["verdicts"])


def test_it_prints_a_table_and_keeps_its_results(tmp_path: Path) -> None:
    """--keep has state, pages and verdicts; a second run into the same folder is refused."""
    done = run("demo", "--keep", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Verdict and truth of each page" in done.stdout
    assert {"state", "pages.jsonl", "verdicts.jsonl"} <= {path.name for path in (tmp_path / "kept").iterdir()}
    again = run("demo", "--keep", "kept", cwd=tmp_path)
    assert (again.returncode, "kept" in again.stderr) == (2, True)
