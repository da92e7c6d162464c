"""`twinsieve why`, `correct` and `corrections` on a real state folder."""

import json
import sqlite3
from pathlib import Path

import pytest

from dedup_service.interfaces.cli.support.explain_tables import BAR
from tests.interfaces.cli.running import Cli, article, page, write_lines

TEXT = ". ".join(article(seed, 12) for seed in range(20))
CHINESE = (
    "中新网4月29日电，这座跨江大桥于上午正式通车，全长3200米，总投资约12亿元。市长出席了通车仪式并讲话。他说，大桥的建成将大大缩短两岸的通行时间。"
    * 3
)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def state(cli: Cli, tmp_path: Path) -> Path:
    """A state folder: a page, a copy, an unrelated page, a Chinese page and its copy with a hostile title."""
    values = [
        page(0, TEXT),
        page(1, TEXT + " In 2024."),
        page(2),
        page(3, CHINESE),
        page(4, CHINESE.replace("上午", "下午", 1), title="通车\x1b[31m\u202e"),
    ]
    assert cli("filter", write_lines(tmp_path / "pages.jsonl", values), "--state", tmp_path / "state", "-q").code == 0
    return tmp_path / "state"


def test_a_duplicate_is_explained_side_by_side(cli: Cli, state: Path) -> None:
    """Verdict, marked differences, channels, rows and words; nothing that affects the terminal."""
    ran = cli("why", "https://news.example/4?utm_source=x", "--state", state)
    assert ran.code == 0
    for text in (
        "duplicate of https://news.example/3 (sequence 4)",
        "⟦下⟧",
        "⟦上⟧",
        "nearly the same text",
        "decides",
        "大桥",
    ):
        assert text in ran.out
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out


SCORED = """
[candidates]
keys = true

[[match]]
name = "enough points"
jaccard = 0.1
score = {bound}
"""


@pytest.mark.parametrize(("bound", "outcome"), [(-0.25, "reached"), (50, "missed")])
def test_the_score_is_shown_by_quantity(cli: Cli, tmp_path: Path, bound: float, outcome: str) -> None:
    """A line for each with its points and a bar, whose side and length are theirs; then sum and threshold."""
    profile = tmp_path / "profile.toml"
    profile.write_text(SCORED.format(bound=bound))
    edited = ". ".join(article(seed, 12) for seed in range(2, 22)) + " In 2024."
    pages = write_lines(tmp_path / "scored.jsonl", [page(0, TEXT), page(1, edited)])
    assert cli("filter", pages, "--state", tmp_path / "scored", "--profile", profile, "-q").code == 0
    asked = ("why", "p1", "--of", "p0", "--state", tmp_path / "scored")
    score = cli(*asked, "--json").lines[0]["match"]["score"]
    shown = cli(*asked).out.partition("the score")[2].partition("words of the largest weight")[0]
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines() if "│" in line]
    assert [row[0] for row in cells] == [
        *(quantity["name"] for quantity in score["quantities"]), "every pair", "sum", "threshold"
    ]  # fmt: skip
    bars = [line.split("│")[4] for line in shown.splitlines() if "│" in line]
    lengths = [len(bar.strip()) for bar in bars[:9]]
    assert lengths == sorted(lengths, reverse=True)
    for quantity, row, bar in zip(score["quantities"], cells, bars, strict=False):
        points = quantity["points"]
        assert row[2] == f"{points:+.2f}"
        left, right = bar[1 : 1 + BAR // 2].strip(), bar[1 + BAR // 2 :].strip()
        assert bool(left) <= (points < 0)
        assert bool(right) <= (points > 0)
    assert cells[-2][2:] == [f"{score['sum']:+.2f}", f"probability {score['probability']:.2f}"]
    assert cells[-1][2:] == [f"{bound:+.2f}", f"{outcome}: enough points"]


def test_a_rule_without_a_score_shows_none(cli: Cli, tmp_path: Path) -> None:
    """Distance alone decides, and nothing is said of points."""
    pages = write_lines(tmp_path / "plain.jsonl", [page(0, TEXT), page(1, TEXT + " In 2024.")])
    assert cli("filter", pages, "--state", tmp_path / "plain", "--profile", "simhash", "-q").code == 0
    shown = cli("why", "p1", "--of", "p0", "--state", tmp_path / "plain").out
    assert "the rule, row by row" in shown
    assert "the score" not in shown


def test_letters_are_as_bounds_count_them_and_keys_are_a_number(cli: Cli, state: Path) -> None:
    """The letters of an alphabet are about half as many; all keys are in the JSON."""
    shown, values = cli("why", "p1", "--state", state).out, cli("why", "p1", "--state", state, "--json").lines[0]
    page, keys = values["page"], values["match"]["keys"]
    assert abs(page["letters_counted"] - page["letters"] * 8 / 15) < 2
    assert f"{page['letters_counted']:,} letters as they are counted ({page['letters']:,} in the text)" in shown
    assert f"{len(keys['shared'])} of {keys['one']} and {keys['other']} shared" in shown
    assert keys["shared"]
    assert keys["shared"][0] not in shown


def test_an_unchanged_page_has_its_first_verdict_too(cli: Cli, state: Path, tmp_path: Path) -> None:
    """That of the visit with the same text; the JSON of other pages has none."""
    again = write_lines(tmp_path / "again.jsonl", [page(0, TEXT)])
    assert cli("filter", again, "--state", state, "-q").lines[0]["verdict"] == "unchanged"
    shown = [" ".join(line.split()) for line in cli("why", "p0", "--state", state).out.splitlines()]
    first = shown.index("at first unique")
    assert shown[first - 1 : first + 2] == ["reason same URL, same body", "at first unique", "its reason none"]
    firsts = [cli("why", name, "--state", state, "--json").lines[0]["first_verdict"] for name in ("#6", "#2", "#1")]
    assert [first and first["kind"] for first in firsts] == ["unique", None, None]


def test_a_jobdir_is_the_state_in_it(cli: Cli, state: Path, tmp_path: Path) -> None:
    """For all that read or change a state that exists."""
    job = tmp_path / "job"
    job.mkdir()
    state.rename(job / "twinsieve")
    for command in (["why", "p1", "--state", job], ["policy", "show", "--state", job], ["state", "info", job]):
        assert cli(*command).code == 0
    assert cli("state", "info", tmp_path).code == 1


def test_a_kept_page_is_explained_by_its_neighbours(cli: Cli, state: Path) -> None:
    """Each neighbour has the bounds that it failed; --json gives the JSON of the dashboard."""
    ran = cli("why", "p2", "--state", state)
    assert "nearest kept pages" in ran.out
    values = cli("why", "#3", "--state", state, "--json").lines[0]
    assert (values["page"]["id"], values["decided_by"], values["match"]) == ("p2", "nothing", None)
    assert [pair["why_not"] is None for pair in values["neighbours"]] == [False, False]
    beside = cli("why", "#3", "--of", "https://news.example/0", "--neighbours", 0, "--state", state, "--json").lines[0]
    assert (beside["match"]["other"]["id"], beside["neighbours"]) == ("p0", [])


def test_texts_can_be_given_again(cli: Cli, state: Path, tmp_path: Path) -> None:
    """If the state has no texts, --page takes them from the input."""
    with sqlite3.connect(state / "journal.sqlite") as connection:
        connection.execute("DELETE FROM text")
    connection.close()
    without = cli("why", "#2", "--state", state, "--json").lines[0]
    assert without["match"]["passages"] is None
    assert len(without["notes"]) == 2
    again = cli("why", "#2", "--state", state, "--json", "--page", tmp_path / "pages.jsonl").lines[0]
    assert again["notes"] == []
    assert again["match"]["numbers"] == {"one": ["2024"], "other": []}


def test_an_unknown_page(cli: Cli, state: Path, tmp_path: Path) -> None:
    """The command ends with code 3 and one line; with 1 if the folder has no state, with 2 if no log is named."""
    ran = cli("why", "https://news.example/99", "--state", state)
    assert (ran.code, ran.out) == (3, "")
    assert "https://news.example/99 is not in the log" in ran.err
    assert cli("why", "#" + 5000 * "9", "--state", state).code == 3
    assert cli("why", "p1", "--state", tmp_path).code == 1
    assert cli("why", "p1").code == 2


def test_corrections_are_made_listed_and_exported(cli: Cli, state: Path, tmp_path: Path) -> None:
    """Listed in their order, with author and force; `evaluate` reads the exported pairs and pages."""
    correct = ("correct", "https://news.example/1", "--state", state, "--by", "me")
    assert cli(*correct, "--not-duplicate-of", "https://news.example/0", "--reason", "two").out.startswith(
        "sequence 6:"
    )
    assert cli(*correct, "--duplicate-of", "https://news.example/2").code == 0
    assert cli(*correct, "--duplicate-of", "https://news.example/2", "--reason", "again").code == 0
    listed = cli("corrections", "--state", state)
    assert [line.split(",")[0] for line in listed.out.splitlines()] == ["sequence 6", "sequence 7", "sequence 8"]
    assert " by me: https://news.example/1 is not a duplicate of https://news.example/0 (two)" in listed.out
    assert [row["in_force"] for row in cli("corrections", "--state", state, "--json").lines] == [True, False, True]
    pairs, pages = tmp_path / "pairs.jsonl", tmp_path / "of.jsonl"
    assert cli("corrections", "--state", state, "--export", pairs, "--pages", pages).code == 0
    exported = [json.loads(line) for line in pairs.read_text().splitlines()]
    assert [(pair["a"], pair["b"], pair["label"]) for pair in exported] == [("p0", "p1", "not"), ("p2", "p1", "dup")]
    texts = {row["id"]: row["text"] for row in map(json.loads, pages.read_text().splitlines())}
    assert texts == {"p0": TEXT, "p1": TEXT + " In 2024.", "p2": article(2)}
    assert cli("evaluate", pages, pairs, "--json").code == 0


def test_a_correction_applies_to_the_next_run(cli: Cli, state: Path, tmp_path: Path) -> None:
    """A further visit of the page is decided again; then it is known."""
    ran = cli("correct", "https://news.example/1", "--not-duplicate-of", "https://news.example/0", "--state", state)
    assert ran.code == 0
    again = write_lines(tmp_path / "again.jsonl", [page(1, TEXT + " In 2024."), page(1, TEXT + " In 2024.", lang="en")])
    verdicts = cli("filter", again, "--state", state, "-q").lines
    assert [verdict["verdict"] for verdict in verdicts] == ["unique", "unchanged"]


def test_pairs_without_texts_are_not_exported_with_pages(cli: Cli, state: Path, tmp_path: Path) -> None:
    """With --pages they are left out and counted; without, they are exported."""
    correct = ("correct", "https://news.example/1", "--not-duplicate-of", "https://news.example/0", "--state", state)
    assert cli(*correct).code == 0
    assert cli("retract", "https://news.example/0", "--state", state, "--keep-record").code == 0
    pairs, pages = tmp_path / "pairs.jsonl", tmp_path / "of.jsonl"
    ran = cli("corrections", "--state", state, "--export", pairs, "--pages", pages)
    assert (ran.code, pairs.read_text(), pages.read_text()) == (3, "", "")
    assert "1 pairs were left out" in ran.err
    assert cli("corrections", "--state", state, "--export", pairs).code == 0
    assert len(pairs.read_text().splitlines()) == 1
    assert cli("corrections", "--state", state, "--pages", pages).code == 2
