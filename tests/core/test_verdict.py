"""What is read from reasons and counts of verdicts."""

import pytest

from dedup_service.core.verdict import (
    Guard,
    Verdict,
    VerdictKind,
    claim_refused_in,
    guard_counter,
    guard_in,
    guard_reason,
    refused_claim_reason,
    visit_by_claim_reason,
    with_present_names,
)


@pytest.mark.parametrize("guard", Guard)
def test_a_guard_is_read_back_from_its_reason(guard: Guard) -> None:
    """Every guard, by the reason that it writes."""
    assert guard_in(guard_reason(guard, "12 of 10 pages")) is guard


@pytest.mark.parametrize("reason", [None, "same text", "contains p1", guard_reason(Guard.HOSTS, "12 hosts")])
def test_a_refused_claim_is_read_back_beside_any_reason(reason: str | None) -> None:
    """The reason without it is still in front, and names the same guard."""
    refused = refused_claim_reason(reason)
    assert (claim_refused_in(refused), claim_refused_in(reason)) == (True, False)
    assert refused.startswith(reason or "")
    assert guard_in(refused) is guard_in(reason)


def test_a_visit_by_claim_is_read_back_from_its_reason() -> None:
    """A visit of the page's own address is none."""
    for reason, by_claim in ((visit_by_claim_reason("same body"), True), ("same URL, same body", False), (None, False)):
        verdict = Verdict(sequence=1, id="u", url="u", kind=VerdictKind.UNCHANGED, space="s", reason=reason)
        assert (verdict.by_claim, verdict.claim_refused) == (by_claim, False)


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
