"""`twinsieve calibrate` with more labels: a card that fits them, if it finds more of what is left out."""

import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dedup_service.core.evidence.card import BUILT_IN, QUANTITIES
from dedup_service.core.rules.profiles import PROFILES, parse_profile, rule_text
from tests.interfaces.cli.edited import SENTENCES, story
from tests.interfaces.cli.running import Cli, page, write_lines

VERSIONS, STORIES = 16, 9


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions of stories: some sentences of each are others, and every second one has other figures."""
    return write_lines(tmp_path_factory.mktemp("pages") / "pages.jsonl", [made(at) for at in range(STORIES * VERSIONS)])


def changed_in(number: int) -> set[int]:
    """Return which sentences of a version are not those of its story."""
    return set(random.Random(number).sample(range(SENTENCES), number % VERSIONS % 8))


def made(number: int) -> dict[str, object]:
    """Return a version of a story, on a host of its own: what pages of one host repeat would not count."""
    ours, others = story(number // VERSIONS), story(number + 1000)
    texts = [others[at] if at in changed_in(number) else ours[at] for at in range(SENTENCES)]
    figures = (f" {at * 7 + 100 * (number % 2)} men came." for at in range(SENTENCES))
    text = "".join(f"{text}{figure} " for text, figure in zip(texts, figures, strict=True))
    return page(number, text, url=f"https://host{number}.example/")


def labels(folder: Path, count: int) -> Path:
    """Write labels of random pairs: versions are duplicates whatever their figures, if few sentences differ."""
    rows = []
    for first in range(0, STORIES * VERSIONS, VERSIONS):
        for one, other in combinations(range(first, first + VERSIONS), 2):
            differing = len(changed_in(one) | changed_in(other))
            rows.append({"a": f"p{one}", "b": f"p{other}", "label": "dup" if differing <= 6 else "not"})
    return write_lines(folder / "labels.jsonl", random.Random(1).sample(rows, count))


def report(folder: Path) -> dict[str, Any]:
    """Return the report of a calibration."""
    values: dict[str, Any] = json.loads((folder / "calibration.json").read_text())
    return values


@pytest.mark.parametrize(("count", "way"), [(60, None), (199, None), (200, "factors"), (1000, "points")])
def test_more_labels_fit_more_of_the_card(cli: Cli, pages: Path, tmp_path: Path, count: int, way: str | None) -> None:
    """The figures left out are beside the profile as it is; the profile that is written gives its counts."""
    pairs = labels(tmp_path, count)
    ran = cli("calibrate", pages, pairs, "--precision", "0.85", "-o", tmp_path / "c", "--no-plots")
    assert ran.code == 0
    found = report(tmp_path / "c")["cross_validated"]
    assert (found["source"], found["folds"]) == ("pair of hosts", 10)
    assert list(found["found"]) == ["threshold", *([way] if way else [])]
    assert all(name in " ".join(ran.out.split()) for name in ("balanced, as it is", "threshold, left out"))
    rule = parse_profile((tmp_path / "c" / "profile.toml").read_text())
    assert (rule.card != BUILT_IN) == (way is not None)
    if way is not None:
        assert f"{way}, left out" in " ".join(ran.out.split())
        assert found["found"][way]["recall"] > found["found"]["threshold"]["recall"]
        assert rule_text(rule).startswith("own: balanced, ")
        assert rule_text(rule).endswith(str(rule.card))
        assert report(tmp_path / "c")["fitted"] == way
        figures = list(QUANTITIES).index("numbers swapped")
        assert sum(rule.card.ramps[figures].points) < sum(BUILT_IN.ramps[figures].points)
    chosen = report(tmp_path / "c")["channels"]["rule"]["chosen"]
    scored = json.loads(cli("evaluate", pages, pairs, "--profile", tmp_path / "c" / "profile.toml", "--json").out)
    assert (scored["right"], scored["wrong"]) == (chosen["right"], chosen["wrong"])


def test_the_same_labels_give_the_same_profile(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """To the byte."""
    pairs = labels(tmp_path, 220)
    for name in ("one", "other"):
        cli("calibrate", pages, pairs, "--precision", "0.85", "-o", tmp_path / name, "--no-plots")
    one, other = ((tmp_path / name / "profile.toml").read_bytes() for name in ("one", "other"))
    assert one == other
    assert b"[card]" in one


def test_rows_without_a_score_have_no_card(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """Their bound on the Jaccard similarity is moved, however many labels there are."""
    profile = tmp_path / "own.toml"
    profile.write_text("[candidates]\nkeys = true\n[[match]]\nname = 'alike'\njaccard = 0.4\n")
    pairs = labels(tmp_path, 220)
    cli("calibrate", pages, pairs, "--precision", "0.85", "--profile", profile, "-o", tmp_path / "c", "--no-plots")
    assert list(report(tmp_path / "c")["cross_validated"]["found"]) == ["threshold"]
    assert PROFILES["balanced"].card == parse_profile((tmp_path / "c" / "profile.toml").read_text()).card
