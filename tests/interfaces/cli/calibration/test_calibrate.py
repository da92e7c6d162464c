"""`twinsieve calibrate`: thresholds that reach the precision, and a profile that reproduces the figures."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dedup_service.core.rules.profiles import parse_profile
from tests.interfaces.cli.edited import crawl
from tests.interfaces.cli.running import Cli, page, write_lines

Crawl = tuple[Path, Path]
PLOTS = {"precision_recall.png", "precision_recall.svg", "distances.png", "distances.svg"}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    """Pages and labelled pairs."""
    return crawl(tmp_path_factory.mktemp("crawl"))


def report(folder: Path) -> dict[str, Any]:
    """Return the report of a calibration."""
    values: dict[str, Any] = json.loads((folder / "calibration.json").read_text())
    return values


@pytest.mark.parametrize("precision", ["0.9", "0.6"])
def test_the_profile_gives_the_same_figures_to_evaluate(cli: Cli, known: Crawl, tmp_path: Path, precision: str) -> None:
    """The chosen rule reaches the precision on these pairs, as `evaluate` counts it."""
    ran = cli("calibrate", *known, "--precision", precision, "-o", tmp_path, "--no-plots")
    assert ran.code == 0
    chosen = report(tmp_path)["channels"]["rule"]["chosen"]
    found = json.loads(cli("evaluate", *known, "--profile", tmp_path / "profile.toml", "--json").out)
    assert (found["right"], found["wrong"], found["missed"]) == (chosen["right"], chosen["wrong"], chosen["missed"])
    assert found["precision"] == chosen["precision"] >= float(precision)
    assert found["not_scored"]["kind edited"] == {"flagged": chosen["grey"], "of": report(tmp_path)["pairs"]["grey"]}


def test_every_rule_that_is_shown_can_be_used(cli: Cli, known: Crawl, tmp_path: Path) -> None:
    """The profile as it is comes first, the one that is written is marked; `evaluate` gives each its counts."""
    ran = cli("calibrate", *known, "--precision", "0.9", "--profile", "broad", "-o", tmp_path / "c", "--no-plots")
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in ran.out.splitlines() if "│" in line]
    rows = [row for row in shown if row[0] != "threshold, left out"]
    assert [row[0].partition(":")[0] for row in rows] == ["broad, as it is", "→ score +0.8", "words", "body"]
    for name, row in zip(["broad", tmp_path / "c" / "profile.toml", rows[2][0], rows[3][0]], rows, strict=True):
        found = json.loads(cli("evaluate", *known, "--profile", name, "--json").out)
        assert f"{found['right']}/{found['right'] + found['wrong']}" == row[2]


def test_evaluate_reproduces_every_point_of_the_rule_s_curve(cli: Cli, known: Crawl, tmp_path: Path) -> None:
    """Tightened and loosened rules, written as profiles, are scored one by one."""
    cli("calibrate", *known, "-o", tmp_path, "--precision", "0.5", "--no-plots")
    base = tomllib.loads((tmp_path / "profile.toml").read_text())
    assert parse_profile((tmp_path / "profile.toml").read_text()).keys
    points = {point["threshold"]: point for point in report(tmp_path)["channels"]["rule"]["curve"]}
    chosen = report(tmp_path)["channels"]["rule"]["chosen"]["threshold"]
    for offset in (3.0, 1.2, 0.0, -1.5):
        rows = [row | {"score": round(row["score"] + offset - chosen, 4)} for row in base["match"]]
        lines = ["[candidates]", "words = 3", "keys = true"]
        for row in rows:
            lines += ["[[match]]", *(f"{name} = {json.dumps(value)}" for name, value in row.items())]
        profile = tmp_path / f"{offset}.toml"
        profile.write_text("\n".join(lines))
        found = json.loads(cli("evaluate", *known, "--profile", profile, "--json").out)
        point = points[offset]
        assert (found["right"], found["wrong"]) == (point["right"], point["wrong"])


def test_the_folder_holds_report_profile_and_plots(cli: Cli, known: Crawl, tmp_path: Path) -> None:
    """The output names the thresholds, the number of pairs behind them, and the next command."""
    ran = cli("calibrate", *known, "--half", "0", "--precision", "0.8", "-o", tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert ran.code == 0
    assert {path.name for path in folder.iterdir()} == {"calibration.json", "profile.toml", *PLOTS}
    counts = report(folder)["pairs"]
    assert f"on {counts['duplicates']} duplicates and {counts['others']} others ({counts['grey']} grey" in ran.out
    assert "flags only show" in ran.out
    assert f"--half 1 --profile {folder}" in ran.out
    histogram = report(folder)["channels"]["words"]["histogram"]
    assert sum(histogram["duplicates"]) == counts["duplicates"]


def test_an_unreachable_precision_leaves_no_profile(cli: Cli, known: Crawl, tmp_path: Path) -> None:
    """The profile of an earlier run is removed; stderr names the nearest rule, and the report is written."""
    assert cli("calibrate", *known, "--precision", "0.5", "-o", tmp_path, "--no-plots").code == 0
    ran = cli("calibrate", *known, "--precision", "0.99", "--confident", "-o", tmp_path, "--no-plots")
    assert ran.code == 1
    assert "no rule of this family confidently reaches a precision of 0.99" in ran.err
    assert "label more pairs" in ran.err
    assert {path.name for path in tmp_path.iterdir()} == {"calibration.json"}
    assert report(tmp_path)["channels"]["rule"]["chosen"] is None


def test_pairs_of_missing_pages_are_left_out(cli: Cli, known: Crawl, tmp_path: Path) -> None:
    """They are counted, the first one is named, and the exit code is 3."""
    pages, pairs = known
    more = tmp_path / "more.jsonl"
    more.write_bytes(pairs.read_bytes() + b'{"a": "p0", "b": "nobody", "label": "dup"}\n')
    ran = cli("calibrate", pages, more, "--precision", "0.5", "-o", tmp_path, "--no-plots")
    assert ran.code == 3
    assert "1 pairs of" in ran.err
    assert "'nobody'" in ran.err
    assert report(tmp_path)["left_out"] == 1


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([{"id": "p0", "duplicate_of": None}], [], "calibrate takes pairs"),
        ([{"a": "p0", "b": "p1", "label": "dup"}], [], "no pairs that are not duplicates among them"),
        ([{"a": "p0", "b": "p1", "label": "dup"}], ["--profile", "simhash"], "no table to tighten"),
        ([{"a": "p0", "b": "p1", "label": "dup"}], ["--profile", "unknown"], "there is no profile 'unknown'"),
        ([{"a": "p0", "b": "p1", "label": "dup"}], ["--precision", "1"], "0<x<1"),
        ([], [], "is empty"),
    ],
)
def test_unusable_input_is_refused(
    cli: Cli, tmp_path: Path, lines: list[object], options: list[str], message: str
) -> None:
    """The command ends with exit code 2 and one line that says why."""
    pages = write_lines(tmp_path / "pages.jsonl", [page(0), page(1)])
    pairs = write_lines(tmp_path / "pairs.jsonl", lines)
    ran = cli("calibrate", pages, pairs, "-o", tmp_path / "out", "--no-plots", *options)
    assert ran.code == 2
    assert message in ran.err


def test_an_output_folder_that_is_a_file_is_refused(cli: Cli, known: Crawl, tmp_path: Path) -> None:
    """The error comes before any page is read."""
    taken = write_lines(tmp_path / "taken", [])
    assert cli("calibrate", *known, "-o", taken, "--no-plots").code == 2
    assert cli("calibrate", *known, "-o", taken / "below", "--no-plots").code == 2


def test_plots_without_matplotlib_say_what_to_install(
    cli: Cli, known: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command fails before any work; with --no-plots it needs no matplotlib."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "dedup_service.interfaces.cli.calibration.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = cli("calibrate", *known, "-o", tmp_path / "out")
    assert ran.code == 2
    assert "pip install 'twinsieve[plots]'" in ran.err
    assert not (tmp_path / "out").exists()
    assert cli("calibrate", *known, "--precision", "0.5", "-o", tmp_path / "out", "--no-plots").code == 0
