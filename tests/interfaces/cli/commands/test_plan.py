"""`twinsieve plan`: numbers as people write them, tables, JSON, and errors that say what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.running import Cli

ROOT = Path(__file__).parents[4]
USUAL = ("plan", "--pages", "1e10", "--rate", "10000", "--copies", ".6")
WIDTH = "116"


def planned(cli: Cli, *arguments: object) -> dict[str, Any]:
    """Run the command with `--json`, and return what it printed."""
    ran = cli("plan", *arguments, "--json")
    assert ran.code == 0, ran.err
    (plan,) = ran.lines
    return plan


def figure(plan: dict[str, Any], part: str, name: str) -> float:
    """Return one figure of a plan."""
    (value,) = (one["value"] for one in plan["figures"] if (one["part"], one["name"]) == (part, name))
    return float(value)


def test_the_tables_give_figures_with_their_constants(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each figure names constants by number; the last table has these with value and source."""
    monkeypatch.setenv("COLUMNS", "200")
    out = cli(*USUAL).out
    rows = [line.split() for line in out.splitlines()]
    assert "32 shards of 32 slots, 2 replicas each; 78 machines in all" in out
    assert "number of shards decided by memory (32.3 GiB of 25.6 GiB): what each of 16 shards would need" in out
    assert ["share", "of", "its", "rate", "50%", "1e"] in rows
    (shard_rate,) = (line for line in out.splitlines() if line.lstrip().startswith("1e "))
    assert "pages a second of a shard" in shard_rate
    assert "20,000 pages/s" in shard_rate
    assert "estimated: 22,000 without a broker" in shard_rate


def test_constants_that_nothing_comes_from_are_left_out(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan for texts does not list what HTML costs, nor the other way round."""
    monkeypatch.setenv("COLUMNS", "200")
    text, html = cli(*USUAL).out, cli(*USUAL, "--html").out
    assert ("preparing a letter of text" in text, "preparing a page of HTML" in text) == (True, False)
    assert ("preparing a letter of text" in html, "preparing a page of HTML" in html) == (False, True)


def test_json_has_all_of_it(cli: Cli) -> None:
    """One line, with the choice, figures in base units, topics, and constants with their origin."""
    plan = planned(cli, *USUAL[1:])
    assert (plan["cluster"]["slots"], plan["cluster"]["shards"]) == (32, 32)
    assert [bound["name"] for bound in plan["cluster"]["decided_by"]] == ["memory"]
    assert plan["workload"]["kept"] == 4e9
    assert figure(plan, "shards", "memory of a machine") == pytest.approx(17.5378e9)
    assert {topic["topic"]: topic["out_bytes"] for topic in plan["topics"]}["fingerprints"] == pytest.approx(462e6)
    assert plan["constants"]["shard_rate"]["origin"] == "estimated"
    named = {key for one in plan["figures"] + plan["topics"] for key in one["basis"]}
    assert named <= set(plan["constants"])


@pytest.mark.parametrize(
    ("pages", "rate", "copies"),
    [
        ("1e10", "10000", ".6"),
        ("10000000000", "10_000", "0.6"),
        ("10,000,000,000", "10,000", "60%"),
        ("10G", "10k", "60 %"),
        ("1.0E10", "1e4", "6e-1"),
        ("10B", "10K", "60.0%"),
    ],
)
def test_numbers_are_read_as_people_write_them(cli: Cli, pages: str, rate: str, copies: str) -> None:
    """Exponents, separators, letters for thousands, and per cent are the same numbers."""
    workload = planned(cli, "--pages", pages, "--rate", rate, "--copies", copies)["workload"]
    assert (workload["pages"], workload["rate"], workload["copies"]) == (1e10, 1e4, 0.6)


def test_pages_may_be_a_time(cli: Cli) -> None:
    """90d are the pages that come in 90 days at the rate."""
    workload = planned(cli, "--rate", "1_000", "--pages", "90d")["workload"]
    assert workload["pages"] == 90 * 86_400 * 1_000


@pytest.mark.parametrize(
    ("keep", "kept"), [("1e6", 1e6), ("2_000", 2_000), ("1d", 864_000), ("1d,1000", 1_000), ("all", 1e8)]
)
def test_kept_pages_have_bounds_of_expiry(cli: Cli, keep: str, kept: float) -> None:
    """They are those of other commands, with numbers as for pages."""
    workload = planned(cli, "--pages", "1e8", "--rate", "10", "--keep", keep)["workload"]
    assert workload["kept"] == kept


def test_machines_are_what_they_are_said_to_be(cli: Cli) -> None:
    """Sizes have units; the network is in Gbit/s."""
    options = ("--machine-memory", "64GiB", "--machine-disk", "2T", "--cores", "16", "--network", "25")
    plan = planned(cli, *USUAL[1:], *options)
    assert plan["machine"] == {
        "memory_bytes": 64 << 30,
        "disk_bytes": 2 << 40,
        "cores": 16,
        "network_bytes": 25e9 / 8,
    }
    assert plan["cluster"]["shards"] == 16


def test_a_cluster_may_be_given(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots, shards and replicas are then as they were given."""
    monkeypatch.setenv("COLUMNS", WIDTH)
    arguments = (*USUAL, "--slots", "64", "--shards", "64", "--replicas", "3")
    assert "64 shards of 64 slots, 3 replicas each" in cli(*arguments).out
    assert "number of shards: as given" in cli(*arguments).out
    assert "number of shards: one is enough" in cli("plan", "--pages", "1e6", "--rate", "10").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--pages", "1e10"], "Missing option '--rate'"),
        (["--pages", "many", "--rate", "1"], "write 1e10, 500M, or 90d"),
        (["--pages", "90m", "--rate", "1"], "no number of pages"),
        (["--pages", "0", "--rate", "1"], "no number of pages"),
        (["--pages", "0d", "--rate", "1"], "no number of pages"),
        (["--pages", "1e999", "--rate", "1"], "no number of pages"),
        (["--pages", "1e6", "--rate", "-5"], "no number above 0"),
        (["--pages", "1e6", "--rate", "nan"], "no number above 0"),
        (["--pages", "1e6", "--rate", "5", "--copies", "1.5"], "no share from 0 to 1: write .6 or 60%"),
        (["--pages", "1e6", "--rate", "5", "--copies", "-.1"], "no share from 0 to 1"),
        (["--pages", "1e6", "--rate", "5", "--copies", "120%"], "no share from 0 to 1"),
        (["--pages", "1e6", "--rate", "5", "--copies", "nan"], "no share from 0 to 1"),
        (["--pages", "1e6", "--rate", "5", "--copies", "some"], "no share from 0 to 1"),
        (["--pages", "1e6", "--rate", "5", "--shards", "1.5"], "no whole number above 0"),
        (["--pages", "1e6", "--rate", "5", "--cores", "0"], "no whole number above 0"),
        (["--pages", "1e6", "--rate", "5", "--keep", "90m"], "an age (90d, 12h or 8w)"),
        (["--pages", "1e6", "--rate", "5", "--machine-memory", "32 bananas"], "as in 8G"),
        (["--pages", "1e6", "--rate", "5", "--shards", "128"], "64 slots at most"),
        (["--pages", "1e6", "--rate", "5", "--slots", "8", "--shards", "3"], "give one of 1, 2, 4, 8 shards"),
        (["--pages", "1e6", "--rate", "5", "--slots", "10"], "an index has 1, 2, 4, 8, 16, 32 or 64"),
        (["--pages", "1e6", "--rate", "50k"], "12,000 pages/s, whatever the number of shards"),
        (["--pages", "1e11", "--rate", "5k"], "(machine-memory)"),
    ],
)
def test_wrong_numbers_are_refused(cli: Cli, arguments: list[str], says: str) -> None:
    """The exit code is 2, and the message says what to write."""
    ran = cli("plan", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert says in " ".join(ran.err.replace("│", " ").split())


@pytest.mark.parametrize("letters", ["700", "7000"])
def test_longer_texts_take_more_to_fingerprint(cli: Cli, letters: str) -> None:
    """A letter takes .1 µs beside the .13 ms of a page."""
    plan = planned(cli, "--pages", "1e6", "--rate", "1000", "--text-letters", letters)
    assert figure(plan, "fingerprinters", "cores busy") == pytest.approx(1_000 * (int(letters) * 1e-7 + 1.3e-4))


def test_the_document_shows_what_the_command_prints(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/performance.md has the plan for 10^10 pages, line for line."""
    monkeypatch.setenv("COLUMNS", WIDTH)
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    shown = page.split("## Planning for 10^10 pages")[1].split("```text\n")[1].split("```")[0]
    assert [line.rstrip() for line in cli(*USUAL).out.strip().splitlines()] == shown.strip().splitlines()
    assert json.loads(cli(*USUAL, "--json").out)["workload"]["pages"] == 1e10
