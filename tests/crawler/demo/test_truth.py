"""What a verdict is worth, by what is true."""

import pytest

from crawler.demo.truth import Outcome, Relation, Truth, judge

ORIGINAL = Truth("story", Relation.ORIGINAL, "")
COPY = Truth("story", Relation.COPY, "")
HALF = Truth("story", Relation.PARTLY, "")
OTHER = Truth("other", Relation.OWN, "")


@pytest.mark.parametrize(
    ("truth", "verdict", "target", "family_kept", "outcome"),
    [
        (COPY, "duplicate", ORIGINAL, True, Outcome.RIGHT),
        (ORIGINAL, "duplicate", COPY, True, Outcome.RIGHT),
        (COPY, "unique", None, False, Outcome.RIGHT),
        (COPY, "unique", None, True, Outcome.MISSED),
        (COPY, "undecided", None, True, Outcome.MISSED),
        (ORIGINAL, "unchanged", COPY, True, Outcome.RIGHT),
        (COPY, "duplicate", OTHER, True, Outcome.FALSE_DROP),
        (OTHER, "duplicate", ORIGINAL, False, Outcome.FALSE_DROP),
        (OTHER, "duplicate", None, False, Outcome.FALSE_DROP),
        (OTHER, "unique", None, False, Outcome.RIGHT),
        (HALF, "duplicate", ORIGINAL, True, Outcome.EITHER),
        (ORIGINAL, "duplicate", HALF, False, Outcome.EITHER),
        (HALF, "unique", None, True, Outcome.EITHER),
        (HALF, "duplicate", OTHER, True, Outcome.FALSE_DROP),
    ],
)
def test_a_verdict_is_worth_what_the_truth_makes_it(
    truth: Truth, verdict: str, target: Truth | None, family_kept: bool, outcome: Outcome
) -> None:
    """One page of a family is kept, whichever came first; half a story counts for neither side."""
    assert judge(truth, verdict, target, family_kept) is outcome
