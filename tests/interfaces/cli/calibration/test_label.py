"""`twinsieve label`: pairs shown to a person, labels stored in a file."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.interfaces.cli.edited import crawl, edited, story
from tests.interfaces.cli.running import Cli, Ran, page, write_lines


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl with edited copies."""
    return crawl(tmp_path_factory.mktemp("crawl"), stories=16)[0]


class Desk:
    """A person at the keyboard, simulated by standard input."""

    def __init__(self, cli: Cli, pages: Path, labels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cli, self._pages, self._monkeypatch = cli, pages, monkeypatch
        self.labels = labels

    def press(self, keys: str, *options: object) -> Ran:
        """Run the command with `keys` on standard input."""
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        return self._cli("label", self._pages, "-o", self.labels, *options)

    @property
    def answers(self) -> list[tuple[str, str, str]]:
        """The labels in the file."""
        lines = [json.loads(line) for line in self.labels.read_bytes().splitlines()]
        return [(line["a"], line["b"], line["label"]) for line in lines]


@pytest.fixture
def desk(cli: Cli, pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk with a new label file."""
    return Desk(cli, pages, tmp_path / "labels.jsonl", monkeypatch)


def test_answers_are_stored_in_the_order_of_the_questions(desk: Desk) -> None:
    """Keys are single characters; white space is skipped, and after an unknown key the pair is shown again."""
    ran = desk.press("d n\nx g\n", "--max-pairs", 5)
    assert ran.code == 0
    assert [label for *_, label in desk.answers] == ["dup", "not", "grey"]
    assert "pair 4 of" in ran.out
    assert "3 pairs are labelled: 1 duplicates, 1 not, 1 grey" in ran.out


def test_pairs_are_of_one_story_and_no_page_appears_twice(desk: Desk) -> None:
    """In this crawl most stories give one pair, on both sides of the rule's thresholds."""
    desk.press("d" * 50)
    numbers = [(int(a[1:]), int(b[1:])) for a, b, _ in desk.answers]
    assert len(numbers) > 8
    assert all(a // 2 == b // 2 for a, b in numbers)
    assert len({page for pair in numbers for page in pair}) == 2 * len(numbers)


def test_the_same_command_continues_where_it_was_left(desk: Desk, tmp_path: Path) -> None:
    """Labelled pairs are not shown again; skipped pairs are. The choice of pairs is deterministic."""
    desk.press("dsn")
    ran = desk.press("g" * 50)
    assert "2 of" in ran.out
    interrupted = desk.answers
    desk.labels = tmp_path / "other.jsonl"
    desk.press("g" * 50)
    assert sorted(pair[:2] for pair in interrupted) == sorted(pair[:2] for pair in desk.answers)
    assert interrupted[0][:2] == desk.answers[0][:2]
    assert interrupted[1][:2] == desk.answers[2][:2]
    assert interrupted[2][:2] == desk.answers[1][:2]


def test_undo_removes_the_last_answer_and_shows_the_pair_again(desk: Desk) -> None:
    """This includes skipped pairs; at the first pair there is nothing to undo."""
    ran = desk.press("uduun" + "su" + "g")
    assert ran.out.count("Nothing to undo") == 2
    labels = [label for *_, label in desk.answers]
    assert labels == ["not", "grey"]


def test_answers_are_pairs_for_evaluate_and_calibrate(desk: Desk, cli: Cli, pages: Path, tmp_path: Path) -> None:
    """Both commands read the file of `label` as it is."""
    desk.press("ddndngdnsdn")
    found = json.loads(cli("evaluate", pages, desk.labels, "--json").out)
    assert found["right"] + found["missed"] == [label for *_, label in desk.answers].count("dup")
    assert cli("calibrate", pages, desk.labels, "--precision", "0.01", "-o", tmp_path, "--no-plots").code in {0, 1}
    report = json.loads((tmp_path / "calibration.json").read_text())
    assert report["pairs"]["grey"] == [label for *_, label in desk.answers].count("grey")


def test_strings_of_a_page_cannot_affect_the_terminal(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escape sequences, reordering characters and markup in titles, URLs and texts are shown as symbols."""
    bad = "\x1b]0;mine\x07 \u202eback [bold]7[/bold]"
    first = page(1, " ".join(story(1)), title=f"Story {bad}")
    second = page(2, " ".join(edited(1, 4)) + f" {bad} in 1998.", title="Story", url="https://b.example/\u202e")
    monkeypatch.setattr(sys, "stdin", io.StringIO("d"))
    pages = write_lines(tmp_path / "pages.jsonl", [first, second])
    shown = cli("label", pages, "-o", tmp_path / "labels").out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "<U+202E>" in shown
    assert "[bold]7[/bold]" in shown
    assert "only here: 0, 7, 1998" in shown
    assert "⟦" in shown


def test_a_crawl_without_candidates_has_no_pairs(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says so, and the exit code is 0."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("d"))
    pages = write_lines(tmp_path / "pages.jsonl", [page(number, " ".join(story(number))) for number in range(3)])
    ran = cli("label", pages, "-o", tmp_path / "labels")
    assert (ran.code, (tmp_path / "labels").read_bytes()) == (0, b"")
    assert "Nothing to label" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "-o", "labels"], "standard input has the answers"),
        (["nowhere.jsonl"], "there is no file or folder"),
        (["pages.jsonl", "-o", "pages.jsonl"], "same file"),
        (["pages.jsonl", "-o", "no/labels"], "cannot write"),
        (["pages.jsonl", "--profile", "mine"], "there is no profile"),
        (["pages.jsonl", "-o", "text"], "line 1: not a label"),
    ],
)
def test_wrong_usage(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    """The command ends with exit code 2 and one line on stderr; existing files are not changed."""
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "pages.jsonl", [page(1)])
    (tmp_path / "text").write_text("a letter\n")
    ran = cli("label", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert (tmp_path / "text").read_text() == "a letter\n"
