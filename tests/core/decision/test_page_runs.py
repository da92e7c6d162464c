"""Pages that are decided in one loop get the decisions, and leave the state, of pages decided one by one."""

from collections import Counter
from dataclasses import replace

import pytest

from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.decider import Decider, Decision
from dedup_service.core.decision.page_runs import STOPPED, FoundMatch, PageRun, RunRequest
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from tests.core.decision.generated import Crawl

GUARDED = replace(PROFILES["broad"], guards=Guards(max_pages=3, max_hosts=2, max_titles=1, surge_percent=2))
PAGES = 450


class CountedRuns(LocalCandidates):
    """Candidates that count what runs found. counts: pages, matches and near misses, ends, expirations."""

    counts: Counter[str]

    def run_on(self, request: RunRequest) -> PageRun:
        """Decide the next pages."""
        run = super().run_on(request)
        self.counts.update(pages=run.pages, expired=len(run.expired), stopped=run.ended == STOPPED)
        for _, found in run.outcomes():
            self.counts["matches" if isinstance(found, FoundMatch) else "near misses"] += 1
        return run


class Names:
    """Names of pages."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url)."""
        return f"page {sequence}", f"http://page/{sequence}"


@pytest.mark.parametrize(
    ("keep", "window"),
    [
        (KEEP_ALL, 4_096),
        (KEEP_ALL, 5),
        (Keep(max_pages=60), 40),
        (Keep(max_pages=90, max_age_minutes=2), 40),
        (Keep(max_age_minutes=2), 40),
    ],
    ids=str,
)
@pytest.mark.parametrize("rule", [PROFILES["balanced"], GUARDED], ids=["balanced", "guarded"])
def test_runs_decide_as_one_by_one(rule: MatchRule, keep: Keep, window: int) -> None:
    """With expiry by count and by age, guards, copies in the window and behind it, and pages that stop a run."""
    layout, counts = IndexLayout(slots=2, window=window), Counter[str]()
    deciders: list[Decider] = []
    for _ in range(2):
        candidates = CountedRuns(rule, layout=layout)
        candidates.counts = counts
        deciders.append(Decider(rule, "space", Names(), candidates=candidates, keep=keep))
    singly, together = deciders
    numbered = list(enumerate([page for pages, _ in Crawl(window, PAGES).batches(most=120) for page in pages], 1))
    for first in range(0, len(numbered), 75):
        batch = numbered[first : first + 75]
        for decider in deciders:
            decider.expiry.advance(first, 1_000 + first // 75)
        expected: list[Decision] = [singly.decide(*page) for page in batch]
        assert list(together.decide_all(batch)) == expected
        assert together.state() == singly.state()
        assert together.expiry.expired == singly.expiry.expired
    assert list(together.rows().entries()) == list(singly.rows().entries())
    assert min(counts["pages"], 4 * counts["matches"]) > (100 if window > 5 else 40)
    assert (counts["expired"] > 20) == (keep != KEEP_ALL)
