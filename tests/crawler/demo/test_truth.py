"""Verdicts compared with the truth about a page."""

import pytest

from twinsieve_crawler.demo.truth import Agreement, Relation, Truth, judge

ORIGINAL = Truth("story", Relation.ORIGINAL, "")
COPY = Truth("story", Relation.COPY, "")
HALF = Truth("story", Relation.PARTLY, "")
OTHER = Truth("other", Relation.OWN, "")


@pytest.mark.parametrize(
    ("truth", "verdict", "target", "family_kept", "outcome"),
    [
        (COPY, "duplicate", ORIGINAL, True, Agreement.RIGHT),
        (ORIGINAL, "duplicate", COPY, True, Agreement.RIGHT),
        (COPY, "unique", None, False, Agreement.RIGHT),
        (COPY, "unique", None, True, Agreement.MISSED),
        (COPY, "undecided", None, True, Agreement.MISSED),
        (ORIGINAL, "unchanged", COPY, True, Agreement.RIGHT),
        (COPY, "duplicate", OTHER, True, Agreement.FALSE_DROP),
        (OTHER, "duplicate", ORIGINAL, False, Agreement.FALSE_DROP),
        (OTHER, "duplicate", None, False, Agreement.FALSE_DROP),
        (OTHER, "unique", None, False, Agreement.RIGHT),
        (HALF, "duplicate", ORIGINAL, True, Agreement.EITHER),
        (ORIGINAL, "duplicate", HALF, False, Agreement.EITHER),
        (HALF, "unique", None, True, Agreement.EITHER),
        (HALF, "duplicate", OTHER, True, Agreement.FALSE_DROP),
    ],
)
def test_a_verdict_is_compared_with_the_truth(
    truth: Truth, verdict: str, target: Truth | None, family_kept: bool, outcome: Agreement
) -> None:
    """The first page of a family is kept; for half of a story either verdict is acceptable."""
    assert judge(truth, verdict, target, family_kept) is outcome
