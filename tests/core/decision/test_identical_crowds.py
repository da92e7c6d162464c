"""More entries of one fingerprint than are candidates: verdicts do not depend on how pages were cut into batches."""

import random
from dataclasses import replace

import pytest

from dedup_service.core.page import Fingerprint, PreparedPage
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from tests.core.decision.crowded import Run, page_at


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
