"""`twinsieve pairs`: each pair as if b followed a in an empty index."""

from pathlib import Path

import pytest

from tests.interfaces.cli.running import Cli, article, page, write_lines


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Two articles, copies of the first at another URL and at its own, and a page without text."""
    first = page(1)
    copies = [
        page(3, article(1), title="Story 1"),
        first | {"id": "again"},
        first | {"id": "later", "text": article(5)},
    ]
    return write_lines(tmp_path / "pages.jsonl", [first, page(2), *copies, page(4, "", title="")])


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ("p1", "p2", "unique"),
        ("p1", "p3", "duplicate"),
        ("p3", "p1", "duplicate"),
        ("p1", "again", "unchanged"),
        ("p1", "later", "updated"),
        ("p1", "p4", "undecided"),
        ("p1", "p1", "unchanged"),
    ],
)
def test_the_verdict_is_on_b_after_a(cli: Cli, pages: Path, tmp_path: Path, a: str, b: str, verdict: str) -> None:
    """All five verdicts occur between two pages as they do in a stream."""
    (line,) = cli("pairs", pages, write_lines(tmp_path / "pairs.jsonl", [{"a": a, "b": b}])).lines
    assert (line["a"], line["b"], line["verdict"]) == (a, b, verdict)


def test_distances_and_score_are_given_for_every_verdict(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """Unrelated pages have distances too, and a lower score; a page without text has neither."""
    pairs = [{"a": "p1", "b": "p3"}, {"a": "p1", "b": "p2"}, {"a": "p1", "b": "p4"}]
    near, far, none = cli("pairs", pages, write_lines(tmp_path / "pairs.jsonl", pairs)).lines
    assert near["distance"] == {"words": 0, "body": 0}
    assert min(far["distance"].values()) > 7
    assert 0 <= far["score"] < near["score"] <= 1
    assert (none["distance"], none["score"]) == ({"words": None, "body": None}, None)


def test_a_reason_names_the_other_page(cli: Cli, tmp_path: Path) -> None:
    """By its id, in every pair."""
    long = page(2, "\n".join(article(number) for number in (1, 5, 6, 7)))
    pages = write_lines(tmp_path / "pages.jsonl", [page(1), long])
    pairs = [{"a": "p1", "b": "p2"}, {"a": "p2", "b": "p1"}]
    lines = cli("pairs", pages, write_lines(tmp_path / "pairs.jsonl", pairs)).lines
    assert [line["reason"] for line in lines] == ["contains p1", "is contained in p2"]


def test_no_pair_changes_what_is_said_of_the_next(cli: Cli, tmp_path: Path) -> None:
    """Ten pages of one host share a long frame: two of them are as similar after the other pairs as alone."""
    frame = "\n".join(article(number) for number in (90, 91, 92, 93))
    known = [page(number, f"{article(number)}\n{frame}") for number in range(10)]
    pages = write_lines(tmp_path / "pages.jsonl", known)
    pairs = [{"a": f"p{number}", "b": f"p{number + 1}"} for number in range(9)]
    last = write_lines(tmp_path / "last.jsonl", pairs[-1:])
    assert (
        cli("pairs", pages, write_lines(tmp_path / "pairs.jsonl", pairs)).lines[-1:] == cli("pairs", pages, last).lines
    )


def test_columns_have_other_names(cli: Cli, tmp_path: Path) -> None:
    """As in `filter`; PAIRS has its own."""
    pages = [{"name": one["id"], "url": one["url"], "body": one["text"]} for one in (page(1), page(2))]
    pairs = write_lines(tmp_path / "pairs.jsonl", [{"a": "p1", "b": "p2"}])
    ran = cli("pairs", write_lines(tmp_path / "pages.jsonl", pages), pairs, "--columns", "id=name,text=body")
    assert [line["verdict"] for line in ran.lines] == ["unique"]


def test_pairs_of_unknown_pages_are_reported_and_counted(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """The other pairs are compared; the exit code is 3."""
    pairs = write_lines(
        tmp_path / "pairs.jsonl", [{"a": "p1", "b": "p9"}, b"hello", {"a": "p1"}, {"a": "p1", "b": "p2"}]
    )
    ran = cli("pairs", pages, pairs)
    assert ran.code == 3
    assert [line["b"] for line in ran.lines] == ["p2"]
    assert "line 1: PAGES has no page with id 'p9'" in ran.err


def test_each_page_with_the_nearest_other_one(cli: Cli, tmp_path: Path) -> None:
    """In input order, with a score below the threshold as well; no state is needed."""
    changed = " ".join(word if n % 4 else "altogether" for n, word in enumerate(article(1).split()))
    pages = [page(1), page(2), page(3, changed), page(4, article(2))]
    ran = cli("pairs", write_lines(tmp_path / "pages.jsonl", pages), "--nearest")
    assert [(line["a"], line["b"]) for line in ran.lines] == [("p3", "p1"), ("p4", "p2"), ("p1", "p3"), ("p2", "p4")]
    assert [line["verdict"] for line in ran.lines] == ["unique", "duplicate", "unique", "duplicate"]
    assert 0 < ran.lines[0]["score"] < ran.lines[1]["score"]


@pytest.mark.parametrize("arguments", [[], ["pairs.jsonl", "--nearest"]])
def test_pairs_are_given_or_found(cli: Cli, pages: Path, arguments: list[str]) -> None:
    """One of the two."""
    ran = cli("pairs", pages, *arguments)
    assert ran.code == 2
    assert "give one of PAIRS and --nearest" in ran.err
