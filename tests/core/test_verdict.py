"""What is read from reasons and counts of verdicts."""

import pytest

from dedup_service.core.verdict import Guard, guard_counter, guard_in, guard_reason, with_present_names


@pytest.mark.parametrize("guard", Guard)
def test_a_guard_is_read_back_from_its_reason(guard: Guard) -> None:
    """Every guard, by the reason that it writes."""
    assert guard_in(guard_reason(guard, "12 of 10 pages")) is guard


def test_the_surge_guard_is_known_by_the_name_before() -> None:
    """Journals and logs keep the reasons and counts that they were written with."""
    assert guard_in("guard jump: 90% of the last 1000 pages are strange copies") is Guard.SURGE
    assert with_present_names({"unique": 3, "guard_jump": 2}) == {"unique": 3, guard_counter(Guard.SURGE): 2}
    assert with_present_names({"guard_jump": 2, "guard_surge": 5}) == {"guard_surge": 7}


def test_other_counts_stay_as_they_are() -> None:
    """Nothing is added to counts without the surge guard."""
    counts = {"unique": 3, "guard_titles": 1}
    assert with_present_names(counts) == counts


@pytest.mark.parametrize("reason", [None, "same text", "guard", "guard wall: ..."])
def test_other_reasons_name_no_guard(reason: str | None) -> None:
    """Reasons of rows, and names that no guard has."""
    assert guard_in(reason) is None
