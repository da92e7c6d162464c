"""The card of the score: what profiles may say of it, what is refused, and what it adds to a pair."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.card import BUILT_IN, LARGEST, MAX_KNOTS, QUANTITIES, Card, Ramps
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.rules.profiles import PROFILES, parse_profile, profile_text, rule_text
from dedup_service.core.rules.rule import MatchRule
from tests.core.evidence.any_evidence import evidence_pairs

FINITE = st.floats(-LARGEST, LARGEST)
KNOTS = st.lists(st.floats(-1, 3000), min_size=2, max_size=MAX_KNOTS, unique=True).map(sorted)
RAMPS = KNOTS.flatmap(
    lambda knots: st.builds(Ramps, st.just(tuple(knots)), st.tuples(*[st.floats(0, 20)] * (len(knots) - 1)))
)
CARDS = st.builds(Card, FINITE, st.tuples(*[RAMPS] * len(QUANTITIES)))
BALANCED = profile_text(PROFILES["balanced"])


def added(ramps: Ramps, value: float) -> float:
    """Return what a quantity of this value adds, without its sign."""
    ends = zip(pairwise(ramps.knots), ramps.points, strict=True)
    return sum(points * min(1.0, max(0.0, (value - low) / (high - low))) for (low, high), points in ends)


@given(evidence_pairs(), CARDS)
def test_points_are_those_of_the_card(pair: tuple[bytes, bytes], card: Card) -> None:
    """Each quantity has its ramps and its direction; with the bias they add up to the score."""
    found = Similarity(*map(Evidence, pair), card=card)
    named = zip(QUANTITIES.items(), card.ramps, found.points, strict=True)
    for (name, sign), ramps, (shown, value, points) in named:
        assert shown == name
        assert points == pytest.approx(sign * added(ramps, value))
    assert found.score == pytest.approx(card.bias + sum(points for *_, points in found.points))


@given(CARDS, st.sampled_from(list(QUANTITIES)), st.lists(st.floats(-10, 4000), min_size=2, max_size=9))
def test_every_card_is_monotone(card: Card, name: str, values: list[float]) -> None:
    """What profiles can say of a quantity never changes its direction."""
    ramps = card.ramps[list(QUANTITIES).index(name)]
    points = [added(ramps, value) for value in sorted(values)]
    assert all(more >= less - 1e-9 for less, more in pairwise(points))
    assert all(
        points * sign >= 0
        for (_, _, all_points), sign in zip(card.signed, QUANTITIES.values(), strict=True)
        for points in all_points
    )


@given(CARDS)
def test_a_card_survives_a_profile_and_the_log(card: Card) -> None:
    """Without any loss of precision."""
    rule = MatchRule(keys=True, verified=PROFILES["precise"].verified, card=card)
    assert parse_profile(profile_text(rule)).card == card
    assert MatchRule.from_dict(rule.to_dict()) == rule


def test_factors_of_1_are_the_built_in_card() -> None:
    """So is a table that says nothing: the rule is the same, to the byte of its record."""
    factors = "".join(f'"{name}" = {{factor = 1}}\n' for name in QUANTITIES)
    for text in (f"[card]\n{factors}", "[card]\n", ""):
        rule = parse_profile(BALANCED + text)
        assert rule == PROFILES["balanced"]
        assert repr(rule.to_dict()) == repr(PROFILES["balanced"].to_dict())


def test_a_card_changes_what_it_names() -> None:
    """Other quantities have the points that they had; the rule is shown once as one with a card of its own."""
    rule = parse_profile(
        BALANCED + '[card]\nbias = 1\n"facts swapped" = {factor = 2}\n"facts missing".knots = [0, 1]\n'
        '"facts missing".points = [3]\n'
    )
    place = list(QUANTITIES).index
    assert rule.card.bias == 1.0
    assert rule.card.ramps[place("facts swapped")].points == (0.0, 0.764, 1.626, 0.63, 3.838)
    assert rule.card.ramps[place("facts missing")] == Ramps((0.0, 1.0), (3.0,))
    changed = {place("facts swapped"), place("facts missing")}
    assert [rule.card.ramps[at] == BUILT_IN.ramps[at] for at in range(9)] == [at not in changed for at in range(9)]
    assert rule_text(rule) == f"own: balanced, {rule.card}"
    assert str(rule.card).startswith("card of its own (")
    assert str(rule.card) != str(parse_profile(BALANCED + "[card]\nbias = 1.5\n").card)
    assert rule_text(PROFILES["balanced"]) == "balanced"


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("bias = nan", "bias of a card must be at most 1e\\+06 in size, got nan"),
        ("bias = true", "bias of a card must be numbers"),
        ("luck = {factor = 2}", "a card has bias, held of the longer page.*got 'luck'"),
        ('"facts swapped" = 2', "'facts swapped' of a card has knots and points, or a factor, got 2"),
        ('"facts swapped" = {factor = 2, points = [1]}', "has knots and points, or a factor"),
        ('"facts swapped" = {factor = -0.5}', "factor of 'facts swapped' must be from 0, got -0.5: .* not be monotone"),
        ('"facts swapped" = {factor = nan}', "factor of 'facts swapped' must be from 0, got nan"),
        ('"facts swapped" = {factor = "2"}', "factor of 'facts swapped' must be numbers"),
        ('"facts swapped" = {knots = [0, 1], points = [-1]}', "points of 'facts swapped' must be 0 or more, got -1.0"),
        ('"facts swapped" = {knots = [0, 1], points = [nan]}', "points of 'facts swapped' must be at most"),
        ('"facts swapped" = {knots = [0, inf], points = [1]}', "a knot of 'facts swapped' must be at most"),
        ('"facts swapped" = {knots = [1, 0], points = [1]}', "knots of 'facts swapped' must ascend"),
        ('"facts swapped" = {knots = [0, 0], points = [1]}', "knots of 'facts swapped' must ascend"),
        ('"facts swapped" = {knots = [0, 1], points = [1, 2]}', "got 2 knots and 2 points"),
        ('"facts swapped" = {knots = [0], points = []}', "needs 2 to 32 knots"),
        ('"facts swapped" = {knots = 1, points = [1]}', "knots of 'facts swapped' must be numbers, got 1"),
        (f'"facts swapped" = {{knots = [0, {10**400}], points = [1]}}', "a knot of 'facts swapped' must be at most"),
    ],
)
def test_a_wrong_card_is_refused(card: str, message: str) -> None:
    """The message names the quantity and what is wrong with it."""
    with pytest.raises(ConfigurationError, match=message):
        parse_profile(f"{BALANCED}[card]\n{card}\n")


def test_a_card_that_nothing_asks_for_is_refused() -> None:
    """No row of the rule bounds the score."""
    text = "[candidates]\nkeys = true\n[[match]]\nname = 'alike'\njaccard = 0.5\n"
    assert parse_profile(f"{text}[card]\n").card == BUILT_IN
    with pytest.raises(ConfigurationError, match="give a row a bound `score`"):
        parse_profile(f"{text}[card]\nbias = 1\n")


def test_a_card_of_too_few_quantities_is_refused() -> None:
    """As code may make one."""
    with pytest.raises(ConfigurationError, match="9 quantities, got 8"):
        Card(0.0, BUILT_IN.ramps[:8])


def test_a_rule_keeps_its_card_when_another_one_ships() -> None:
    """A state and a log have the card of their rule; a rule that does not ask for the score has none to keep."""
    values = PROFILES["balanced"].to_dict()
    values["card"]["bias"] = -3.0
    assert MatchRule.from_dict(values).card == replace(BUILT_IN, bias=-3.0)
    assert "card" not in PROFILES["simhash"].to_dict()
    assert replace(PROFILES["simhash"], card=replace(BUILT_IN, bias=-3.0)) == PROFILES["simhash"]
