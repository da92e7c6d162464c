"""The choice of pairs to label."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evaluation.active_sampling import CandidatePair, PairGroups, informative_pairs, margin
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.verdict import Distance
from tests.core.evaluation.test_rule_family import TABLES, evidence
from tests.interfaces.cli.edited import SENTENCES, edited, story


def candidates(count: int, hosts: int, seed: int = 1) -> tuple[list[CandidatePair], PairGroups]:
    """Pairs among twice as many pages, on both sides of the rule, and the groups of matching pairs."""
    source = random.Random(seed)
    pairs, groups = [], PairGroups()
    for _ in range(count):
        a, b = sorted(source.sample(range(2 * count), 2))
        names = sorted(f"{source.randrange(hosts)}.example" for _ in range(2))
        pairs.append(CandidatePair(a, b, source.uniform(-1, 1), (names[0], names[1])))
        if pairs[-1].margin >= 0:
            groups.join(a, b)
    return pairs, groups


@given(st.integers(0, 20), st.integers(0, SENTENCES), st.sampled_from(TABLES))
def test_a_margin_is_not_negative_exactly_if_the_rule_holds(seed: int, changed: int, name: str) -> None:
    """This holds whichever row of the table decides."""
    rule = PROFILES[name]
    similarity = Similarity(evidence(story(seed)), evidence(edited(seed, changed)))
    holds = any(row.holds(similarity) for row in rule.verified)
    assert (margin(rule, similarity) >= 0) == holds


@pytest.mark.parametrize(
    ("words", "body", "expected"), [(3, 60, 0), (7, 40, -4 / 64), (9, 4, 1 / 64), (None, None, -1), (None, 6, -1 / 64)]
)
def test_without_a_table_the_margin_is_distance(words: int | None, body: int | None, expected: float) -> None:
    """The margin of the condition that is nearest to holding, in shares of 64 bits."""
    rule = MatchRule((DistanceBound(words=3), DistanceBound(body=5)))
    similarity = Similarity(evidence([]), evidence([]), Distance(words=words, body=body))
    assert margin(rule, similarity) == expected


@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 80), st.integers(0, 3))
def test_no_page_or_group_is_shown_twice(count: int, hosts: int, max_pairs: int, seed: int) -> None:
    """At most `max_pairs` pairs are chosen."""
    pairs, groups = candidates(count, hosts)
    chosen = informative_pairs(pairs, groups, max_pairs, seed)
    shown = [{groups.group_of(pair.a), groups.group_of(pair.b)} for pair in chosen]
    assert sum(map(len, shown)) == len(set().union(*shown))
    assert len(chosen) <= max_pairs
    assert set(chosen) <= set(pairs)


@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 3), st.booleans())
def test_a_longer_choice_begins_with_the_shorter(count: int, hosts: int, seed: int, at_random: bool) -> None:
    """The same seed continues the same choice."""
    pairs, groups = candidates(count, hosts)
    everything = informative_pairs(pairs, groups, len(pairs), seed, at_random=at_random)
    for max_pairs in (1, 3, 10):
        assert informative_pairs(pairs, groups, max_pairs, seed, at_random=at_random) == everything[:max_pairs]


def test_the_smallest_margins_come_first_from_both_sides_in_turn() -> None:
    """This is the order if hosts and groups do not matter."""
    margins = [0.3, -0.1, 0.1, -0.4, 0.2, -0.2]
    pairs = [CandidatePair(2 * at, 2 * at + 1, value, ("a", f"{at}")) for at, value in enumerate(margins)]
    chosen = informative_pairs(pairs, PairGroups(), 6, 0)
    assert [pair.margin for pair in chosen] == [0.1, -0.1, 0.2, -0.2, 0.3, -0.4]


def test_pairs_of_hosts_take_turns() -> None:
    """A second pair of the same hosts comes after the first pair of all others, on each side."""
    near = [CandidatePair(2 * at, 2 * at + 1, -0.01 * at, ("a", "b")) for at in range(1, 4)]
    far = CandidatePair(10, 11, -0.5, ("a", "c"))
    assert informative_pairs([*near, far], PairGroups(), 3, 0) == [near[0], far, near[1]]


def test_equal_margins_are_ordered_by_the_seed() -> None:
    """One seed always gives the same order, another seed another order."""
    pairs = [CandidatePair(2 * at, 2 * at + 1, -0.1, ("a", f"{at}")) for at in range(20)]
    one, again, other = (informative_pairs(pairs, PairGroups(), 20, seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert set(one) == set(other)


def test_a_random_choice_ignores_margins() -> None:
    """Far pairs come as early as near ones."""
    pairs = [CandidatePair(2 * at, 2 * at + 1, -at / 1000, ("a", f"{at}")) for at in range(1, 1000)]
    chosen = informative_pairs(pairs, PairGroups(), 200, 3, at_random=True)
    assert 0.4 < sum(-pair.margin for pair in chosen) / 200 < 0.6


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=30))
def test_groups_are_the_pages_that_pairs_connect(joined: list[tuple[int, int]]) -> None:
    """Each is named by its smallest page, as when names spread until nothing changes."""
    groups, names = PairGroups(), list(range(16))
    for one, other in joined:
        groups.join(one, other)
    for _ in names:
        for one, other in joined:
            names[one] = names[other] = min(names[one], names[other])
    assert [groups.group_of(page) for page in range(16)] == names
