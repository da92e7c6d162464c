"""`twinsieve demo`: a whole crawl, with the truth beside every verdict."""

import json
from pathlib import Path

import pytest

from crawler.demo.site import build_site
from tests.crawler.running import run

pytestmark = pytest.mark.slow


def test_every_copy_is_found_and_nothing_else_is_dropped(tmp_path: Path) -> None:
    """All pages are visited; copies are duplicates of their own story; series, lists and same events are kept."""
    done = run("demo", "--json", "--processes", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {row["path"] for row in report["rows"]} == set(build_site())
    assert report["outcomes"]["false drop"] == 0
    assert report["outcomes"]["missed copy"] == 0
    assert {"unique", "duplicate", "unchanged", "updated", "undecided"} == set(report["verdicts"])


def test_it_ends_with_a_table_and_leaves_what_was_asked_for(tmp_path: Path) -> None:
    """State, kept pages and verdicts stay in --keep; a second run does not mix with them."""
    done = run("demo", "--keep", "kept", "--processes", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Verdict and truth of each page" in done.stdout
    assert {"state", "pages.jsonl", "verdicts.jsonl"} <= {path.name for path in (tmp_path / "kept").iterdir()}
    again = run("demo", "--keep", "kept", cwd=tmp_path)
    assert (again.returncode, "kept" in again.stderr) == (2, True)
