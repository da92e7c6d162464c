"""Rules: conditions, radii, records."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import DistanceBound, MatchRule

BOUNDS = st.builds(DistanceBound, words=st.integers(0, 7), body=st.integers(0, 64))


@given(st.lists(BOUNDS, min_size=1, max_size=3), st.none() | st.builds(Combined, st.integers(1, 1000)))
def test_a_rule_survives_the_log(conditions: list[DistanceBound], combined: Combined | None) -> None:
    """What `to_dict` writes, `from_dict` reads back."""
    rule = MatchRule(tuple(conditions), combined)
    assert MatchRule.from_dict(rule.to_dict()) == rule


@pytest.mark.parametrize(
    ("jaccard", "reach"),
    [(Fraction(0), 2), (Fraction(1, 4), 3), (Fraction(7, 10), 4), (Fraction(1), 5)],
)
def test_wang2019_reaches_the_distance_of_its_formula(jaccard: Fraction, reach: int) -> None:
    """With μ = .9 it accepts H ≤ 2 always, 3 from J ≥ .25, 4 from J ≥ .7, 5 at J = 1, compared exactly."""
    combined = Combined()
    similar = [h for h in range(8) if combined.similarity(h, jaccard) >= combined.threshold]
    assert similar[-1] == reach
    assert combined.radius == 5


def test_without_metadata_the_similarity_is_k_3() -> None:
    """1 / (H + 1) ≥ 1/4 is H ≤ 3."""
    combined = Combined()
    assert [combined.similarity(h, None) >= combined.threshold for h in range(5)] == [True] * 4 + [False]


def test_the_radius_of_a_smaller_mu_is_limited_by_the_index() -> None:
    """μ = .8 would reach H = 15; the index searches up to 7."""
    assert Combined(800).radius == 7


def test_k_replaces_every_radius() -> None:
    """A radius leaves no other radius in the rule."""
    rule = rule_for("both", k=3)
    assert {near.body for near in rule.conditions} == {3}
    assert {near.words for near in rule.conditions} <= {None, 3}


def test_the_smaller_bound_is_the_radius() -> None:
    """A condition on both channels uses the index of the channel with the smaller bound."""
    rule = MatchRule((DistanceBound(words=6, body=16), DistanceBound(body=4)))
    assert (rule.radius("words"), rule.radius("body")) == (6, 4)
    assert rule_for("words").radius("body") is None


@pytest.mark.parametrize("bounds", [{}, {"words": 8}, {"body": -1}, {"words": 3, "body": 65}])
def test_bounds_that_no_index_can_search_are_refused(bounds: dict[str, int]) -> None:
    """The message says how far the index searches."""
    with pytest.raises(ConfigurationError, match="up to 7 bits"):
        DistanceBound(**bounds)


def test_invalid_rules_are_refused() -> None:
    """An empty rule, an unknown channel and a μ outside (0, 1] are configuration errors."""
    with pytest.raises(ConfigurationError, match="matches nothing"):
        MatchRule()
    with pytest.raises(ConfigurationError, match="words, body, both, got 'title'"):
        rule_for("title")
    with pytest.raises(ConfigurationError, match="μ must be"):
        rule_for(mu=1.5)


def test_a_rule_from_before_guards_has_none() -> None:
    """A log that is read again gives the same verdicts, whatever guards were added since."""
    old = rule_for().to_dict()
    del old["guards"]
    assert MatchRule.from_dict(old).guards == NO_GUARDS
    assert "guards" not in MatchRule.from_dict(old).to_dict()
    assert MatchRule.from_dict(old | {"guards": {"max_hosts": 7}}).guards == Guards(
        max_pages=0, max_hosts=7, max_titles=0, surge_percent=0
    )
