"""However the pages of a crawl come to be decided, their verdicts are those of brute force over the log."""

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from dedup_service.core.evidence.card import Card
from dedup_service.core.log_records import Policy
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from tests.oracle.crawl import WrittenLog, written_log
from tests.oracle.ways import SHARDS, WAYS, Said, embedded_takes, expected, without_sequence

BALANCED = PROFILES["balanced"]
GUARDED = replace(PROFILES["broad"], guards=Guards(max_pages=9, max_hosts=3, max_titles=2, surge_percent=2))
OWN_CARD = replace(
    BALANCED,
    card=Card.from_dict({"bias": -1.5, "held of the shorter page": {"factor": 2}, "facts swapped": {"factor": 3}}),
)
ALIKE = MatchRule(keys=True, verified=(MatchRow(name="alike", jaccard=0.25),))
"""Pages match that share few keys: which ones a full cell turns away, and when, decides many verdicts."""

CASES = {
    "crowded": (ALIKE, IndexLayout(slots=1, window=7), 800, 7),
    "alike": (ALIKE, IndexLayout(slots=8, window=64), 800, 60),
    "window of one": (BALANCED, IndexLayout(slots=8, window=1), 800, 1),
    "guarded": (GUARDED, IndexLayout(slots=2, window=64), 1_200, 64),
    "long window": (BALANCED, IndexLayout(slots=8, window=4_096), 1_500, 120),
    "own card": (OWN_CARD, IndexLayout(slots=2, window=64), 400, 60),
    "by distance": (rule_for("body"), IndexLayout(slots=4, window=64), 800, 60),
}
"""Name → rule, layout, pages of the crawl, and pages of a message, at most those of the window."""

LONG = ("window of one", "long window")
PAIRS = [
    pytest.param(case, way, marks=[pytest.mark.long] * (case in LONG))
    for case in CASES
    for way in WAYS
    if SHARDS.get(way, 1) <= CASES[case][1].slots
]


@cache
def log_of(case: str) -> WrittenLog:
    """Return the log of a case."""
    rule, layout, pages, most = CASES[case]
    rules = [rule, rule, BALANCED, GUARDED] if case in ("alike", "long window") else []
    return written_log(layout.window, pages, Policy(rule, Action.FLAG, "space", layout), most=most, rules=rules)


@cache
def right(case: str, way: str) -> Said:
    """Return what brute force says of the log of a case."""
    if way == "embedded":
        return expected(log_of(case).messages, embedded_takes)
    return log_of(case).said()


@pytest.mark.parametrize(("case", "way"), PAIRS)
def test_verdicts_are_those_of_brute_force(case: str, way: str, tmp_path: Path) -> None:
    """Visits, claims, updates, retractions, corrections, expiry, policies, host text, crowds, and repeated records."""
    found, answers = WAYS[way](log_of(case).messages, tmp_path), right(case, way)
    if way == "embedded":
        assert without_sequence(found) == without_sequence(answers)
    else:
        assert found == answers


@pytest.mark.parametrize("case", CASES)
def test_the_crawls_have_all_kinds_of_verdicts(case: str) -> None:
    """Otherwise the comparison would say little."""
    kinds = Counter(answer.verdict for answer in log_of(case).oracle.answers.values())
    assert min(kinds[kind] for kind in ("unique", "duplicate", "unchanged", "updated", "undecided")) > 5
    values = [answer.value or b"" for answer in log_of(case).oracle.answers.values()]
    assert case != "guarded" or sum(b'"reason":"guard' in value for value in values) > 20
