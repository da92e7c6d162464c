"""`twinsieve filter --dry-run`: what another profile would change on a state, and nothing is written."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.running import Cli, article, page, write_lines


@pytest.fixture
def state(cli: Cli, tmp_path: Path) -> Path:
    """The state of a run over a page, its copy, one that differs in a few words, and another one."""
    changed = " ".join(word if n % 12 else "altogether" for n, word in enumerate(article(1).split()))
    pages = [page(1), page(2, article(1)), page(3, changed), page(4)]
    source = write_lines(tmp_path / "pages.jsonl", pages)
    assert cli("filter", source, "--state", tmp_path / "state", "--output", tmp_path / "verdicts.jsonl").code == 0
    return tmp_path / "state"


def test_what_another_profile_would_change(cli: Cli, state: Path) -> None:
    """A line for each page that changes, with what it was; the counts by change with pairs to look at on stderr."""
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    ran = cli("filter", "--state", state, "--profile", "words:0", "--dry-run")
    assert ran.code == 0
    (line,) = ran.lines
    assert (line["id"], line["verdict"], line["duplicate_of_url"]) == ("p3", "unique", None)
    was = line["was"]
    assert (was["verdict"], was["duplicate_of_url"]) == ("duplicate", "https://news.example/1")
    assert was["score"] > 0.5
    assert "nearly the same text" in was["reason"]
    said = " ".join(ran.err.split())
    assert "1 of 4 pages would change under words:0" in said
    assert "duplicate" in said
    assert {path: path.read_bytes() for path in state.rglob("*") if path.is_file()} == before


def test_the_profile_in_force_changes_nothing(cli: Cli, state: Path, tmp_path: Path) -> None:
    """It is the one without --profile; counts are JSON where that is asked for."""
    ran = cli("filter", "--state", state, "--dry-run", "--json", "-o", tmp_path / "changes.jsonl")
    assert json.loads(ran.err) == {
        "pages": 4,
        "changed": 0,
        "not_judged": 0,
        "rule": "balanced",
        "changes": [],
    }
    assert (tmp_path / "changes.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --state"),
        (["--state", "{state}", "pages.jsonl"], "leave FILE out"),
        (["--state", "{state}", "--kept", "kept.jsonl", "--keep", "3"], "leave --kept, --keep out"),
    ],
)
def test_what_a_dry_run_does_not_read_is_refused(cli: Cli, state: Path, arguments: list[str], message: str) -> None:
    """Files would be decided by an ordinary run alone."""
    ran = cli("filter", "--dry-run", *(one.format(state=state) for one in arguments))
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
