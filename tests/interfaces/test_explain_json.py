"""Explanations as JSON: bounded and safe, whatever the pages contain."""

import json
import unicodedata
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Page
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.explain_json import MAX_LETTERS, explanation_to_dict
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.explain.explainer import Explainer
from dedup_service.runtime.explain.journal_pages import live_pages
from dedup_service.runtime.resources import build_fingerprinter
from tests.interfaces.cli.running import article

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\u0000\ud800\n" + "x" * 1_000_000
TEXT = ". ".join(article(seed, 12) for seed in range(20))


def page(number: int, text: str, title: str = "") -> Page:
    """Return a page with this text and title."""
    url = f"https://a.example/{number}"
    return Page(url=url, canonical_url=url, id=f"p{number}", title=title, text=text)


def values_of(one: Page, other: Page, rule: MatchRule | None = None, **more: Any) -> dict[str, Any]:
    """Return the explanation of the second page after the first, encoded and decoded."""
    given = {1: one, 2: other}
    with NearDuplicateFilter.open(None, rule=rule) as dedup:
        dedup.check_many([one, other])
        explainer = Explainer(live_pages(dedup), build_fingerprinter, lambda known: given.get(known.sequence))
        found = explainer.explain(2, compare_with=1, **more)
        encoded = msgspec.json.encode(explanation_to_dict(found))
    return json.loads(encoded)  # type: ignore[no-any-return]


def strings(value: Any) -> Iterator[str]:
    """Yield all strings in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


@pytest.mark.parametrize("text", [HOSTILE + TEXT, "a." * 500_000, "中" * 1_000_000, "1 " * 300_000])
def test_hostile_pages_are_truncated_and_cleaned(text: str) -> None:
    """No control or reordering characters, and a bounded size for a megabyte of title and text."""
    values = values_of(page(1, text, HOSTILE), page(2, text[1:] + " more 5", HOSTILE + "2"), neighbours=2)
    assert len(json.dumps(values)) < 4_000_000
    assert all(len(string) <= MAX_LETTERS + 1 for string in strings(values))
    for string in strings(values):
        assert not [c for c in string if unicodedata.category(c) in {"Cc", "Cs"} or c == "\u202e"]
    assert values["match"]["cut"]


def test_passages_joined_are_the_texts() -> None:
    """Only line breaks differ; differences are marked, and numbers of only one side are listed."""
    other = TEXT.replace("bridge", "viaduct", 1) + "\nIn 2024."
    match = values_of(page(1, TEXT), page(2, other))["match"]
    joined = [
        "".join(piece["text"] for passage in match["passages"] for piece in passage[side]) for side in ("one", "other")
    ]
    assert joined == [other.replace("\n", " "), TEXT]
    ours = [piece for passage in match["passages"] for piece in passage["one"]]
    marked = "".join(piece["text"] for piece in ours if not piece["alike"])
    assert "viaduct" in marked
    assert match["numbers"] == {"one": ["2024"], "other": []}
    assert not match["cut"]


def test_every_bound_has_its_value() -> None:
    """One row decides, and all of its bounds hold; a distance is the number of its bits."""
    match = values_of(page(1, TEXT), page(2, TEXT + " And more."))["match"]
    deciding = [row for row in match["rows"] if row["decides"]]
    assert [row["name"] for row in deciding] == [match["row"]]
    assert all(bound["holds"] for bound in deciding[0]["bounds"])
    for row in match["rows"]:
        assert row["holds"] == all(bound["holds"] for bound in row["bounds"])
    for channel in match["channels"]:
        assert channel["distance"] == len(channel["bits"]) == sum(block["differing"] for block in channel["blocks"])
        assert (int(channel["one"], 16) ^ int(channel["other"], 16)).bit_count() == channel["distance"]


def test_a_rule_with_a_score_shows_its_points() -> None:
    """They add up to the sum that the bound is compared with; a rule that asks for no score has none."""
    row = MatchRow(name="enough points", jaccard=0.1, score=1.0)
    one, other = page(1, TEXT), page(2, TEXT.replace("bridge", "viaduct") + " And 5 more.")
    match = values_of(one, other, MatchRule(keys=True, verified=(row,)))["match"]
    score = match["score"]
    points = [quantity["points"] for quantity in score["quantities"]]
    assert len(points) == 9
    assert sum(points, score["intercept"]) == pytest.approx(score["sum"], abs=0.001)
    assert 0.5 < score["probability"] < 1
    assert (score["row"], score["bound"], score["holds"]) == ("enough points", 1.0, True)
    (bound,) = [bound for bound in match["rows"][0]["bounds"] if bound["quantity"] == "score"]
    assert bound["value"] == score["sum"] == match["likeness"]["score"]
    plain = MatchRule(keys=True, verified=(MatchRow(name="alike", jaccard=0.1),))
    assert values_of(one, other, plain)["match"]["score"] is None


def test_pages_without_text() -> None:
    """Infinite and unknown values are null, because JSON has no infinity."""
    match = values_of(page(1, ""), page(2, TEXT))["match"]
    assert match["likeness"]["words_distance"] is None
    assert match["likeness"]["length_ratio"] is None
    assert match["channels"][0]["blocks"] == []
    assert not match["matches"]


def test_the_reason_of_a_correction_is_cleaned() -> None:
    """The reason is untrusted text: truncated, and without control characters."""
    with NearDuplicateFilter.open(None) as dedup:
        dedup.check_many([page(1, TEXT), page(2, TEXT)])
        dedup.correct(CorrectionRecord("https://a.example/2", "https://a.example/1", False, "\x1b[2J" + "y" * 999))
        found = Explainer(live_pages(dedup), build_fingerprinter).explain(2)
    (correction,) = explanation_to_dict(found)["corrections"]
    assert correction["reason"].startswith("[2Jyy")
    assert len(correction["reason"]) <= 200
    assert (correction["at"], correction["by"], correction["sequence"]) == (None, None, 3)
