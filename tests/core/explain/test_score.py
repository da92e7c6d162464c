"""The score of a pair in its explanation, compared with the similarity that the rule reads."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.card import Card
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.pair import explain_pair
from dedup_service.core.explain.rule_table import nearest_row, rows_of
from dedup_service.core.explain.score import ScoreView, score_under
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from tests.core.explain.pages import entry, pairs
from tests.core.explain.test_rule_table import similarity

PAIRS = st.deferred(lambda: st.sampled_from(pairs()))
ANY = MatchRow(name="any score", jaccard=0.01, score=-100.0)


def under(alike: Similarity, *rows: MatchRow) -> ScoreView | None:
    """The score of a pair under a table."""
    return score_under(rows_of(MatchRule(keys=True, verified=rows), alike), alike)


@given(PAIRS)
def test_points_add_up_to_the_score(pair: tuple[PreparedPage, PreparedPage]) -> None:
    """With the points of every pair, those of nine quantities are the sum; the largest come first."""
    alike = similarity(*pair)
    score = under(alike, ANY)
    assert score is not None
    sizes = [abs(quantity.points) for quantity in score.quantities]
    assert len({quantity.name for quantity in score.quantities}) == 9
    assert sizes == sorted(sizes, reverse=True)
    assert score.sum == alike.score == pytest.approx(score.intercept + sum(each.points for each in score.quantities))
    assert math.log(score.probability / (1 - score.probability)) == pytest.approx(score.sum)


def test_every_pair_has_the_same_intercept() -> None:
    """It depends on no quantity."""
    scores = [under(similarity(*pair), ANY) for pair in pairs()]
    intercepts = [score.intercept for score in scores if score is not None]
    assert intercepts == pytest.approx([intercepts[0]] * len(pairs()))


def test_no_quantity_has_points_of_minus_zero() -> None:
    """Of equal pages nothing speaks against a match, and a sign would say otherwise."""
    score = under(similarity(*pairs()[0]), ANY)
    assert score is not None
    assert [math.copysign(1, quantity.points) for quantity in score.quantities] == [1] * 9


@given(PAIRS, st.lists(st.none() | st.floats(-8, 8), min_size=1, max_size=4))
def test_the_threshold_is_that_of_the_row_that_decides(
    pair: tuple[PreparedPage, PreparedPage], bounds: list[float | None]
) -> None:
    """Or of the nearest row; a row without a bound on the score gives way to the nearest that has one."""
    alike = similarity(*pair)
    rows = [MatchRow(name=f"row {at}", jaccard=0.3 + at / 10, score=bound) for at, bound in enumerate(bounds)]
    score = under(alike, *rows)
    views = rows_of(MatchRule(keys=True, verified=tuple(rows)), alike)
    bounding = [view for view, row in zip(views, rows, strict=True) if row.score is not None]
    if score is None:
        assert not bounding
        return
    nearest = nearest_row(views)
    assert nearest is not None
    row = next(row for row in rows if row.name == score.row)
    assert (score.bound.bound, score.bound.value) == (row.score, alike.score)
    if nearest in bounding:
        assert score.row == nearest.name
    else:
        expected = nearest_row(bounding)
        assert expected is not None
        assert score.row == expected.name


@pytest.mark.parametrize(("near", "far"), [(0.0, 1.0), (-1.0, 1.0), (-3.0, -0.5)])
def test_the_nearest_row_misses_the_score_by_the_fewest_points(near: float, far: float) -> None:
    """So a threshold of 0, or below it, is like any other."""
    alike = next(similarity(*pair) for pair in pairs() if similarity(*pair).score < -3)
    rows = [MatchRow(name="far", jaccard=0.001, score=far), MatchRow(name="near", jaccard=0.001, score=near)]
    score = under(alike, *rows)
    assert score is not None
    assert score.row == "near"
    nearest = nearest_row(rows_of(MatchRule(keys=True, verified=tuple(rows)), alike))
    assert nearest is not None
    assert nearest.failed[-1].missed_by == pytest.approx(near - alike.score)


def test_a_rule_that_does_not_ask_for_a_score_has_none() -> None:
    """A table without such a bound, and a rule of distance alone."""
    one, other = pairs()[1]
    plain = MatchRule(keys=True, verified=(MatchRow(name="alike", jaccard=0.5),))
    for rule in (plain, rule_for("both"), rule_for(mu=0.9)):
        assert explain_pair(rule, entry(2, other), entry(1, one)).score is None


def test_points_are_by_the_card_of_the_rule() -> None:
    """A rule with a card of its own shows those points, and decides by them."""
    one, other = next(pair for pair in pairs() if 0 < similarity(*pair).score < math.inf)
    rule = rule_for()
    own = replace(rule, card=Card.from_dict({"bias": -20, "held of the longer page": {"factor": 0.5}}))
    shown, before = (explain_pair(each, entry(2, other), entry(1, one)).score for each in (own, rule))
    assert shown is not None
    assert before is not None
    halves, points = (
        next(of.points for of in view.quantities if of.name == "held of the longer page") for view in (shown, before)
    )
    assert halves == pytest.approx(points / 2)
    assert shown.intercept == pytest.approx(-20)
    assert shown.sum < before.sum
