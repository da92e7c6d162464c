"""The most frequent items, compared with an exact count."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.top_k import Top, TopK


@given(st.lists(st.integers(0, 30), max_size=300), st.integers(1, 12))
def test_counts_are_within_their_error(items: list[int], capacity: int) -> None:
    """No count is too low or more than `max_error` too high; an item without a count occurred at most `over` times."""
    frequent: TopK[int] = TopK(capacity)
    for item in items:
        frequent.add(item)
    exact = Counter(items)
    found = frequent.top(capacity)
    assert len(frequent) == len(found) == min(capacity, len(exact))
    assert sum(top.count for top in found) == len(items)
    for top in found:
        assert top.count - top.max_error <= exact[top.item] <= top.count
    counted = {top.item for top in found}
    assert all(count <= frequent.over for item, count in exact.items() if item not in counted)
    assert frequent.over <= len(items) / capacity


@given(st.lists(st.integers(0, 9), max_size=200))
def test_counts_are_exact_below_the_capacity(items: list[int]) -> None:
    """No item is replaced."""
    frequent: TopK[int] = TopK(10)
    for item in items:
        frequent.add(item)
    assert {top.item: top.count for top in frequent.top(10)} == Counter(items)
    assert all(top.max_error == 0 for top in frequent.top(10))


def test_the_most_frequent_come_first() -> None:
    """No more than the limit are returned."""
    frequent: TopK[str] = TopK(5)
    for item in "aabbbc":
        frequent.add(item)
    assert frequent.top(2) == [Top("b", 3, 0), Top("a", 2, 0)]
