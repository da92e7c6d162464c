"""The most frequent things, against a count of all."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.top_k import Top, TopK


@given(st.lists(st.integers(0, 30), max_size=300), st.integers(1, 12))
def test_counts_are_off_by_no_more_than_they_say(things: list[int], capacity: int) -> None:
    """Never too low, at most `at_most_over` too high; what is not counted came at most `over` times."""
    frequent: TopK[int] = TopK(capacity)
    for thing in things:
        frequent.add(thing)
    exact = Counter(things)
    found = frequent.top(capacity)
    assert len(frequent) == len(found) == min(capacity, len(exact))
    assert sum(top.count for top in found) == len(things)
    for top in found:
        assert top.count - top.at_most_over <= exact[top.thing] <= top.count
    counted = {top.thing for top in found}
    assert all(count <= frequent.over for thing, count in exact.items() if thing not in counted)
    assert frequent.over <= len(things) / capacity


@given(st.lists(st.integers(0, 9), max_size=200))
def test_what_fits_is_exact(things: list[int]) -> None:
    """As long as nothing has to give way."""
    frequent: TopK[int] = TopK(10)
    for thing in things:
        frequent.add(thing)
    assert {top.thing: top.count for top in frequent.top(10)} == Counter(things)
    assert all(top.at_most_over == 0 for top in frequent.top(10))


def test_the_most_frequent_come_first() -> None:
    """And no more of them than asked for."""
    frequent: TopK[str] = TopK(5)
    for thing in "aabbbc":
        frequent.add(thing)
    assert frequent.top(2) == [Top("b", 3, 0), Top("a", 2, 0)]


def test_a_thing_that_comes_often_is_found_among_many_that_do_not() -> None:
    """One in twenty, among thousands that come once."""
    frequent: TopK[int] = TopK(100)
    for at in range(20_000):
        frequent.add(-1 if at % 20 == 0 else at)
    assert frequent.top(1)[0].thing == -1
