"""`twinsieve evaluate`: verdicts against known answers."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.running import Cli, article, page, write_lines


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A page, a copy of it, another page, and a longer page without a copy."""
    return write_lines(tmp_path / "pages.jsonl", [page(1), page(2, article(1)), page(3), page(4, article(4, 300))])


def test_pages_are_scored_by_the_verdicts_of_filter(cli: Cli, crawl: Path, tmp_path: Path) -> None:
    """The copy is found; the third page, which the truth calls a copy, is a miss in its stratum."""
    truth = [
        {"id": "p1", "duplicate_of": None, "operator": "original"},
        {"id": "p2", "duplicate_of": "p1", "operator": "exact", "strength": "S1"},
        {"id": "p3", "duplicate_of": "p2", "operator": "typo", "strength": "S1"},
        {"id": "p4", "duplicate_of": None, "operator": "original"},
    ]
    ran = cli("evaluate", crawl, write_lines(tmp_path / "truth.jsonl", truth), "--json")
    found = json.loads(ran.out)
    assert ran.code == 0
    assert (found["right"], found["wrong"], found["missed"]) == (1, 0, 1)
    assert found["recall_by"]["operator exact"] == {"flagged": 1, "of": 1}
    assert found["false_drops_by"] == {"original": {"flagged": 0, "of": 2}}
    shown = cli("evaluate", crawl, tmp_path / "truth.jsonl").out
    assert "1 of 2 copies" in shown
    assert "strength S1" in shown


def test_pairs_are_scored_by_the_verdicts_of_pairs(cli: Cli, crawl: Path, tmp_path: Path) -> None:
    """Pairs with other labels than `dup` and `not` are not scored, and shown separately."""
    pairs = [
        {"a": "p1", "b": "p2", "label": "dup", "kind": "copy"},
        {"a": "p1", "b": "p3", "label": "not", "kind": "other"},
        {"a": "p3", "b": "p4", "label": "grey", "kind": "other"},
    ]
    found = json.loads(cli("evaluate", crawl, write_lines(tmp_path / "pairs.jsonl", pairs), "--json").out)
    assert (found["precision"], found["recall"], found["f1"]) == (1.0, 1.0, 1.0)
    assert found["not_scored"] == {"kind other": {"flagged": 0, "of": 1}}


@pytest.mark.parametrize(
    "truth",
    [
        [{"id": "p1", "duplicate_of": None}, {"id": "gone", "duplicate_of": "p1"}],
        [{"a": "p1", "b": "p2", "label": "dup"}, {"a": "p1", "b": "gone", "label": "dup"}],
    ],
)
def test_truth_about_missing_pages_is_reported(cli: Cli, crawl: Path, tmp_path: Path, truth: list) -> None:
    """Missing pages count as not flagged, and a line on stderr has their number."""
    ran = cli("evaluate", crawl, write_lines(tmp_path / "truth.jsonl", truth), "--json")
    assert "1 of 2 lines of" in ran.err
    found = json.loads(ran.out)
    assert (found["absent"], found["missed"]) == (1, 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "is empty"),
        ('{"id": "p1"}\n{"a": "p1", "b": "p2"}', "line 2: needs an id"),
        ('{"a": "p1", "b": "p2"}', "line 1: needs a, b and label"),
        ('{"id": "p1"}\nnothing', "line 2"),
    ],
)
def test_an_unreadable_truth_file_is_refused(cli: Cli, crawl: Path, tmp_path: Path, lines: str, message: str) -> None:
    """The message names file and line, and no page is decided."""
    truth = tmp_path / "truth.jsonl"
    truth.write_text(lines, encoding="utf-8")
    ran = cli("evaluate", crawl, truth)
    assert ran.code == 2
    assert message in ran.err
