"""`twinsieve filter`: verdict lines, kept pages, state, and the same command again."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.profiles import profile_text, rule_for
from dedup_service.runtime.embedded.state_info import state_info
from tests.interfaces.cli.running import Cli, Ran, article, page, write_lines

KEYS = ["id", "url", "verdict", "duplicate_of", "duplicate_of_url", "distance", "score", "reason", "sequence", "space"]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Two articles, a repost of the first with another headline, the second again, and a short text."""
    second = page(2)
    repost = page(3, article(1), title="Another headline")
    return write_lines(tmp_path / "pages.jsonl", [page(1), second, repost, second | {"id": "again"}, page(4, "brief")])


def test_verdict_lines_come_in_input_order_with_the_documented_keys(cli: Cli, pages: Path) -> None:
    """Each page has one line, with exactly the documented keys."""
    ran = cli("filter", pages)
    assert ran.code == 0
    assert [list(line) for line in ran.lines] == [KEYS] * 5
    assert [line["id"] for line in ran.lines] == ["p1", "p2", "p3", "again", "p4"]
    assert [line["verdict"] for line in ran.lines] == ["unique", "unique", "duplicate", "unchanged", "undecided"]
    assert [line["sequence"] for line in ran.lines] == [1, 2, 3, 4, 5]


def with_an_edit(pages: Path) -> Path:
    """A file of the same pages, but the copy has a word more."""
    values = [json.loads(line) for line in pages.read_text("utf-8").splitlines()]
    values[2]["text"] += " again"
    return write_lines(pages.with_name("edited.jsonl"), values)


def test_a_duplicate_names_its_original_and_the_distance(cli: Cli, pages: Path) -> None:
    """The line of a duplicate has the original, the distances and the row of the rule."""
    line = cli("filter", pages).lines[2]
    assert (line["duplicate_of"], line["duplicate_of_url"]) == ("p1", "https://news.example/1")
    assert line["distance"]["body"] == 0
    assert 0 < line["score"] <= 1
    assert line["reason"] == "same text"
    line = cli("filter", with_an_edit(pages), "--profile", "body").lines[2]
    assert line["reason"] == "body ≤ 7"


def test_kept_pages_are_unchanged_lines(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """--kept gets every page but duplicates, byte for byte; all have a verdict."""
    kept = tmp_path / "kept.jsonl"
    ran = cli("filter", pages, "--kept", kept)
    lines = pages.read_bytes().splitlines(keepends=True)
    assert kept.read_bytes() == b"".join(lines[:2] + lines[3:])
    assert len(ran.lines) == 5


def test_the_same_command_again_writes_the_same_output(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """With a state, an identical record gets its earlier verdict."""
    outputs = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for output in outputs:
        assert cli("filter", pages, "--state", tmp_path / "state", "--output", output).code == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_a_record_of_another_file_is_a_further_visit(cli: Cli, tmp_path: Path) -> None:
    """The line of yesterday is unchanged in another file, in this one once it has changed, and further down."""
    today, tomorrow = [page(1), page(2), page(1)], [page(1), page(2, article(20)), page(3)]
    state = ("--state", tmp_path / "state")
    first = write_lines(tmp_path / "today.jsonl", today)
    assert verdicts_of(cli("filter", first, *state)) == ["unique", "unique", "unchanged"]
    assert verdicts_of(cli("filter", first, *state)) == ["unique", "unique", "unchanged"], "as it was"
    second = write_lines(tmp_path / "tomorrow.jsonl", tomorrow)
    assert verdicts_of(cli("filter", second, *state)) == ["unchanged", "updated", "unique"]
    write_lines(first, [*today, page(4)])
    assert verdicts_of(cli("filter", first, *state))[-1] == "unique"
    both = cli("filter", first, second)
    assert verdicts_of(both) == ["unique", "unique", "unchanged", "unique", "unchanged", "updated", "unique"]


def test_standard_input_is_another_one_each_time(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can see whether it is the same, unless the run that read it was interrupted."""
    lines = write_lines(tmp_path / "pages.jsonl", [page(1), page(2)])
    found = []
    for _ in range(2):
        with lines.open("rb") as stream:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
            found.append(verdicts_of(cli("filter", "-", "--state", tmp_path / "state")))
    assert found == [["unique"] * 2, ["unchanged"] * 2]


def test_kept_pages_are_those_with_the_verdicts_that_are_named(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """What is new since the last run, or the duplicates alone; all but duplicates by default."""
    kept = tmp_path / "kept.jsonl"
    lines = pages.read_bytes().splitlines(keepends=True)
    cli("filter", pages, "--kept", kept, "--kept-verdicts", "duplicate, undecided")
    assert kept.read_bytes() == lines[2] + lines[4]
    state = ("--state", tmp_path / "state")
    cli("filter", pages, *state)
    news = write_lines(tmp_path / "news.jsonl", [page(1), page(2, article(20)), page(9)])
    cli("filter", news, *state, "--kept", kept, "--kept-verdicts", "unique,updated")
    assert kept.read_bytes() == b"".join(news.read_bytes().splitlines(keepends=True)[1:])


def verdicts_of(ran: Ran) -> list[str]:
    """Return the verdicts on standard output."""
    return [line["verdict"] for line in ran.lines]


def test_a_limit_on_memory_that_the_program_exceeds_is_wrong_usage(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """One line has the limit and what to do, before anything is made; so has it for what is no size."""
    ran = cli("filter", pages, "--state", tmp_path / "state", "--max-memory", "1M")
    assert ran.code == 2
    assert "before its first page, and may take 1.00 MiB: give more (--max-memory" in ran.err
    assert not (tmp_path / "state").exists()
    assert cli("filter", pages, "--state", tmp_path / "state", "--max-memory", "1T").code == 0
    assert cli("filter", pages, "--max-memory", "much").code == 2


def test_a_state_of_another_space_is_refused_naming_both(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """A folder created with one scheme refuses another."""
    first = cli("filter", pages, "--state", tmp_path / "state").lines[0]["space"]
    ran = cli("filter", pages, "--state", tmp_path / "state", "--space", "tf", "--output", tmp_path / "out")
    assert ran.code == 1
    assert first in ran.err
    assert "tf-" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_profile_is_named_or_read_from_a_file(cli: Cli, tmp_path: Path) -> None:
    """Reasons quote the rows of a user's file; for an unknown name, the message lists the known ones."""
    text = article(1, 400)
    pages = write_lines(tmp_path / "pages.jsonl", [page(1, text), page(2, text.replace("harbour", "port", 9))])
    own = tmp_path / "own.toml"
    own.write_text('[candidates]\nkeys = true\n[[match]]\nname = "half of it"\njaccard = 0.5\n', encoding="utf-8")
    assert cli("filter", pages, "--profile", own).lines[1]["reason"] == "half of it"
    assert cli("filter", pages, "--profile", "simhash").lines[1]["reason"] == "body ≤ 7"
    ran = cli("filter", pages, "--profile", "strict")
    assert ran.code == 2
    assert "balanced, precise, broad, simhash, words, body, both, also with a radius (words:3)" in ran.err


def test_combined_similarity_is_an_option(cli: Cli, pages: Path) -> None:
    """It is a value of --profile, with its weight."""
    line = cli("filter", with_an_edit(pages), "--space", "wang2019", "--profile", "combined:.9").lines[2]
    assert line["verdict"] == "duplicate"
    assert "combined" in line["reason"]


def test_summary_for_machines_is_one_line_on_stderr(cli: Cli, pages: Path) -> None:
    """--json counts every verdict, those that did not occur too."""
    summary = json.loads(cli("filter", pages, "--json").err)
    assert summary["pages"] == 5
    assert summary["verdicts"] == {"unique": 2, "duplicate": 1, "unchanged": 1, "updated": 0, "undecided": 1}
    assert (summary["bad_records"], summary["interrupted"]) == (0, False)


def test_a_run_says_which_guards_spoke(cli: Cli, tmp_path: Path) -> None:
    """JSON lists all guards, the summary those that objected; the state remembers them, too."""
    profile = tmp_path / "guarded.toml"
    profile.write_text(profile_text(replace(rule_for(), guards=Guards(max_hosts=1))))
    copies = [page(number, article(1), url=f"https://host{number}.example/") for number in range(4)]
    path = write_lines(tmp_path / "pages.jsonl", copies)
    ran = cli("filter", path, "--profile", profile, "--state", tmp_path / "state", "--json")
    assert json.loads(ran.err)["guards"] == {"pages": 0, "hosts": 2, "titles": 0, "surge": 0}
    assert [line["verdict"] for line in ran.lines] == ["unique", "duplicate", "undecided", "undecided"]
    assert ran.lines[2]["reason"].startswith("guard hosts: pages of about 2 hosts match ")
    assert "guard hosts" in cli("filter", path, "--profile", profile).err
    assert state_info(tmp_path / "state").guards["hosts"] == 2


def test_verdicts_that_were_given_before_are_counted(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """By another rule than the one in force, a warning says so; by the same one, none does."""
    again = ("filter", pages, "--state", tmp_path / "state")
    first = json.loads(cli(*again, "--json").err)
    assert (first["given_before"], first["by_another_rule"]) == (0, 0)
    same = cli(*again)
    assert "given before" in same.err
    assert "another rule" not in same.err
    assert "5 verdicts are those of an earlier run, by another rule" in cli(*again, "--profile", "precise").err
    other = json.loads(cli(*again, "--profile", "precise", "--json").err)
    assert (other["given_before"], other["by_another_rule"]) == (5, 5)


def test_summary_for_people_is_a_table_that_can_be_silenced(cli: Cli, pages: Path) -> None:
    """The table goes to stderr, so that it never mixes with verdicts; --quiet omits it."""
    assert "duplicate" in cli("filter", pages).err
    assert cli("filter", pages, "--quiet").err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--output", "pages.jsonl"],
        ["--kept", "pages.jsonl"],
        ["--output", "out", "--kept", "./out"],
        ["--kept", "-"],
        ["--profile", "words:8"],
        ["--kept-verdicts", "unique"],
        ["--kept", "kept", "--kept-verdicts", "unique,new"],
        ["--with-input", "--output", "out.csv"],
        ["--output", "no/such/folder/out"],
    ],
)
def test_wrong_usage_changes_nothing(
    cli: Cli, pages: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, and the input is unchanged."""
    monkeypatch.chdir(pages.parent)
    before = pages.read_bytes()
    ran = cli("filter", "pages.jsonl", *arguments)
    assert ran.code == 2
    assert ran.err
    assert pages.read_bytes() == before


def test_a_missing_file_is_wrong_usage(cli: Cli, tmp_path: Path) -> None:
    """The message names the missing file."""
    ran = cli("filter", tmp_path / "gone.jsonl")
    assert ran.code == 2
    assert "gone.jsonl" in ran.err


def test_how_long_the_journal_is_kept_is_of_a_folder(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """`--keep-journal` takes a duration with --state; without a folder it would be ignored, so it is refused."""
    state = tmp_path / "state"
    assert cli("filter", pages, "--state", state, "--keep-journal", "30d").code == 0
    refused = cli("filter", pages, "--keep-journal", "30d")
    assert refused.code == 2
    assert "--keep-journal is for a state folder" in refused.err


def test_bounds_that_the_state_keeps_are_said_at_the_start(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """They were given to an earlier run, and this one does not name any; a quiet run says nothing."""
    command = ("filter", pages, "--state", tmp_path / "state")
    said = "The state keeps 90 pages, as it was told before: --keep changes it"
    assert said not in cli(*command, "--keep", "90").err
    assert said in cli(*command).err.splitlines()
    assert not cli(*command, "--quiet").err
