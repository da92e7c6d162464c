"""Over thousands of pages, a decider gives the verdicts of brute force, in any batches and from any restore."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from tests.core.decision.beside_oracle import Both
from tests.core.decision.generated import Crawl

SPACE = "space"
BALANCED = PROFILES["balanced"]
GUARDED = replace(PROFILES["broad"], guards=Guards(max_pages=9, max_hosts=3, max_titles=2, surge_percent=2))
ALIKE = MatchRule(keys=True, verified=(MatchRow(name="alike", jaccard=0.25),))
"""Pages match that share few keys: which ones a full cell turns away, and when, decides many verdicts."""

CASES = [
    (ALIKE, IndexLayout(slots=1, window=7), 2_000),
    (ALIKE, IndexLayout(slots=8, window=64), 2_000),
    (BALANCED, IndexLayout(slots=8, window=1), 2_000),
    (GUARDED, IndexLayout(slots=2, window=7), 2_000),
    (GUARDED, IndexLayout(slots=8, window=64), 2_000),
    (BALANCED, IndexLayout(slots=8, window=4_096), 4_800),
    (PROFILES["simhash"], IndexLayout(slots=8, window=64), 2_000),
]


@pytest.mark.parametrize(
    ("rule", "layout", "pages"),
    CASES,
    ids=lambda case: f"window-{case.window}" if isinstance(case, IndexLayout) else "",
)
def test_decider_and_brute_force_agree(rule: MatchRule, layout: IndexLayout, pages: int) -> None:
    """Visits, claims, updates, removals, corrections and expiry, in random batches, with restores in between."""
    both, chosen = Both(rule, layout), random.Random(layout.window)
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for batch, changes in Crawl(layout.window, pages).batches(most=120):
        for decision in both.decide(batch, batch=chosen.random() < 0.8):
            kinds[decision.verdict.kind.value] += 1
            reasons[(decision.verdict.reason or "").partition(" ")[0]] += 1
        for change in changes:
            both.change(change)
        if chosen.random() < 0.2:
            live = both.live()
            both.drop(chosen.sample(live, min(len(live), 3)))
        if chosen.random() < 0.1:
            both.restore()
    both.live()
    assert min(kinds[kind] for kind in ("unique", "duplicate", "unchanged", "updated", "undecided")) > 20
    assert rule is not GUARDED or reasons["guard"] > 20
