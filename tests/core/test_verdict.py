"""What is read from reasons and counts of verdicts."""

import pytest

from dedup_service.core.verdict import (
    Guard,
    Verdict,
    VerdictKind,
    claim_refused_in,
    guard_in,
    guard_reason,
    refused_claim_reason,
    visit_by_claim_reason,
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


@pytest.mark.parametrize("reason", [None, "same text", "guard", "guard wall: ..."])
def test_other_reasons_name_no_guard(reason: str | None) -> None:
    """Reasons of rows, and names that no guard has."""
    assert guard_in(reason) is None
