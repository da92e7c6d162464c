"""The table with its values, compared with the rule's own answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.entries import distance_between
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.rule_table import nearest_row, rows_of
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.match_row import QUANTITIES, MatchRow
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from tests.core.explain.pages import pairs

SHARES = st.none() | st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0])
ROWS = st.builds(
    MatchRow,
    name=st.just("a row"),
    min_letters=st.sampled_from([0, 100, 1000]),
    jaccard=st.sampled_from([0.01, 0.3, 0.6, 0.9, 1.0]),
    containment=SHARES,
    title=SHARES,
    figures=SHARES,
    length_ratio=st.none() | st.sampled_from([1.0, 1.1, 3.0]),
    metadata=SHARES,
    combined=SHARES,
    score=st.none() | st.sampled_from([-2.0, 0.0, 3.0]),
    series=st.none() | st.sampled_from([0, 1]),
    words_distance=st.none() | st.integers(0, 64),
    body_distance=st.none() | st.integers(0, 64),
)


def similarity(one: PreparedPage, other: PreparedPage) -> Similarity:
    """The similarity of two pages, as the matcher computes it."""
    distance = distance_between(other.fingerprint, one.fingerprint)
    return Similarity(Evidence(other.evidence), Evidence(one.evidence), distance)


@given(st.lists(ROWS, min_size=1, max_size=5), st.deferred(lambda: st.sampled_from(pairs())))
def test_a_row_holds_iff_the_rule_says_so(rows: list[MatchRow], pair: tuple[PreparedPage, PreparedPage]) -> None:
    """This holds for any bounds and for pages without fingerprints; only the bounds of the row are listed."""
    alike = similarity(*pair)
    views = rows_of(MatchRule(keys=True, verified=tuple(rows)), alike)
    assert [view.holds for view in views] == [row.holds(alike) for row in rows]
    for row, view in zip(rows, views, strict=True):
        bounds = [
            name for name in QUANTITIES if getattr(row, name) is not None and (name != "min_letters" or row.min_letters)
        ]
        assert [bound.quantity for bound in view.bounds] == bounds
        assert bool(view.failed) != view.holds


@pytest.mark.parametrize("name", ["balanced", "precise", "broad"])
def test_every_row_of_every_profile(name: str) -> None:
    """The same as `MatchRow.holds`, from equal to unrelated pages; some rows hold and some do not."""
    rule = PROFILES[name]
    seen = set()
    for pair in pairs():
        alike = similarity(*pair)
        holds = [view.holds for view in rows_of(rule, alike)]
        assert holds == [row.holds(alike) for row in rule.verified]
        seen.update(holds)
    assert seen == {True, False}


@given(st.deferred(lambda: st.sampled_from(pairs())))
def test_the_nearest_row(pair: tuple[PreparedPage, PreparedPage]) -> None:
    """It is the first row that holds; without one, no other row fails fewer bounds."""
    rows = rows_of(PROFILES["balanced"], similarity(*pair))
    nearest = nearest_row(rows)
    assert nearest is not None
    holding = [row for row in rows if row.holds]
    if holding:
        assert nearest == holding[0]
    else:
        assert len(nearest.failed) == min(len(row.failed) for row in rows)


def test_a_rule_without_a_table_has_its_conditions() -> None:
    """A rule may bound the distance in one channel or both, or the combined similarity."""
    alike = similarity(*pairs()[0])
    both = rows_of(rule_for("both"), alike)
    assert [row.name for row in both] == ["body ≤ 7", "body ≤ 16 and words ≤ 6"]
    assert all(row.holds for row in both)
    (combined,) = rows_of(rule_for(mu=0.9), alike)
    assert [bound.quantity for bound in combined.bounds] == ["words_distance", "combined"]
    assert combined.holds
    assert nearest_row(()) is None
