"""Crowds of one fingerprint or text: verdicts do not depend on how pages were cut into batches."""

import random
from dataclasses import replace

import pytest

from dedup_service.core.page import Fingerprint, PreparedPage
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import VerdictKind
from tests.core.decision.crowded import Run, page_at, page_of


def of_crowd(number: int) -> PreparedPage:
    """A page of two fingerprints, found by nothing else."""
    page = page_at(number)
    return replace(page, fingerprint=Fingerprint(number % 2, number % 2), keys=b"", reason=None)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("window", [1, 5, 50])
def test_removals_inside_a_batch_make_room_at_once(seed: int, window: int) -> None:
    """Expiry and updates inside of a batch let later entries of a crowd become candidates, as one by one."""
    chosen = random.Random(seed)
    singly, batched = (Run(rule_for(), IndexLayout(slots=2, window=window)) for _ in range(2))
    for _ in range(12):
        pages = [of_crowd(chosen.getrandbits(chosen.choice([5, 32]))) for _ in range(chosen.randrange(1, 40))]
        assert singly.decide(pages) == batched.decide(pages, batch=True)
        bound = Keep(max_pages=chosen.choice([None, 10, 30]))
        singly.decider.keep = batched.decider.keep = bound


def of_text(number: int, text: int) -> PreparedPage:
    """A page found by its text alone, as one that is too short."""
    page = page_of(f"http://site/{number}", [])
    return replace(page, fingerprint=Fingerprint(), body_hash=text, text_hash=text, reason="too short")


def test_an_equal_text_is_found_behind_those_that_expire_inside_a_batch() -> None:
    """Pages were updated to one text, and a batch lets more of them expire than are candidates, as one by one."""
    singly, batched = (Run(rule_for(), IndexLayout(slots=2, window=20)) for _ in range(2))
    others = [of_text(number, number) for number in range(1000, 1040)]
    late = [*others[20:35], of_text(2000, 7)]
    for run in (singly, batched):
        run.decide([of_text(number, number + 10) for number in range(200)], batch=True)
        run.decide([of_text(number, 7) for number in range(200)], batch=True)
        run.decide(others[:20], batch=True)
        run.decider.keep = Keep(max_pages=30)
    decisions = singly.decide(late)
    assert batched.decide(late, batch=True) == decisions
    assert (decisions[-1].verdict.kind, decisions[-1].original) == (VerdictKind.DUPLICATE, 200 + 9 * 15 + 8 + 1)
