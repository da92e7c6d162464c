"""Explanations of pairs, compared with the verdicts of the decider."""

import pytest

from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.explain.pair import SAME_TEXT, explain_pair
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import CHANNEL_RULES, PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import VerdictKind
from tests.core.explain.pages import entry, pairs, prepared

RULES = {**PROFILES, **CHANNEL_RULES, "mu": rule_for(mu=0.9), "wide": rule_for(k=7)}


class Names:
    """Names pages by their sequence."""

    def name(self, sequence: int) -> tuple[str, str]:
        return str(sequence), str(sequence)


def verdict_on(rule: MatchRule, first: PreparedPage, second: PreparedPage) -> tuple[VerdictKind, str | None]:
    """The verdict on the second page after the first."""
    decider = Decider(rule, "space", Names())
    decider.decide(1, first)
    verdict = decider.decide(2, second).verdict
    return verdict.kind, verdict.reason


@pytest.mark.parametrize("name", RULES)
def test_a_pair_matches_iff_the_decider_says_so(name: str) -> None:
    """The row is the same, or words say why there is none; under every rule some pairs match and some do not."""
    rule, seen = RULES[name], set()
    for first, second in pairs():
        if first.page.url == second.page.url:
            continue
        view = explain_pair(rule, entry(2, second), entry(1, first))
        kind, reason = verdict_on(rule, first, second)
        assert view.matches == (kind is VerdictKind.DUPLICATE), (first.page.url, second.page.url)
        assert view.row == (reason if view.matches else None)
        assert (view.why_not is None) == view.matches
        seen.add(view.matches)
    assert seen == {True, False}


def test_the_row_that_decides_is_the_first_that_holds() -> None:
    """It is also the nearest row. An equal text decides before any row."""
    for first, second in pairs():
        view = explain_pair(PROFILES["balanced"], entry(2, second), entry(1, first))
        if first.text_hash == second.text_hash:
            assert view.row == SAME_TEXT
        elif view.matches:
            assert view.row == next(row.name for row in view.rows if row.holds)
            assert view.nearest is not None
            assert view.nearest.name == view.row


def test_shared_keys_are_those_of_both() -> None:
    """Unrelated pages share none, and no index finds the pair."""
    rule = PROFILES["balanced"]
    same = explain_pair(rule, entry(2, prepared(1, 0.02)), entry(1, prepared(1, 0.0)))
    assert same.keys == (64, 64)
    assert 0 < len(same.shared_keys) <= 64
    assert same.found_by[-1].endswith("keys") or same.found_by[-1].endswith("key")
    unrelated = explain_pair(rule, entry(2, prepared(1, 0.0)), entry(1, prepared(2, 1.0)))
    assert unrelated.shared_keys == ()
    assert unrelated.found_by == ()
    assert unrelated.why_not is not None
    assert unrelated.why_not.startswith("no index brings the two together: words differs in")


def test_a_page_that_left_the_window_is_found_by_the_keys_of_its_path() -> None:
    """It has no other keys any more: those of the cells that it is in, which a copy shares."""
    kept = entry(1, prepared(1, 0.0))
    decider = Decider(PROFILES["balanced"], "space", Names(), layout=IndexLayout(window=1))
    decider.enter([kept, *(entry(at, prepared(at, 0.0)) for at in range(2, 5))])
    decider.state()  # settles what is due
    settled = decider.entry(1)
    assert settled is not None
    assert settled.settled
    view = explain_pair(PROFILES["balanced"], entry(2, prepared(1, 0.02)), settled)
    assert view.keys == (64, 8)
    assert view.shared_keys
    assert set(view.shared_keys) <= set(explain_pair(PROFILES["balanced"], kept, kept).shared_keys)


def test_a_correction_is_reported_beside_the_rule() -> None:
    """The pages may be in either order; the correction does not change the result of the rule."""
    one, other = entry(2, prepared(1, 0.02)), entry(1, prepared(1, 0.0))
    urls = prepared(1, 0.02).page.url, prepared(1, 0.0).page.url
    for duplicate in (True, False):
        for url, original in (urls, urls[::-1]):
            overrides = Overrides([CorrectionRecord(url, original, duplicate, "")])
            view = explain_pair(PROFILES["balanced"], one, other, overrides=overrides)
            assert view.override is duplicate
            assert view.matches
    assert explain_pair(PROFILES["balanced"], one, other, overrides=Overrides()).override is None
