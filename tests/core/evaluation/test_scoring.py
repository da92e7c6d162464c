"""Scores of verdicts against the truth."""

import math

import pytest

from dedup_service.core.evaluation.scoring import LabelledPair, TruthRow, half_of, score_pairs, score_stream
from dedup_service.core.evaluation.share import Share

TRUTH = [
    TruthRow("a", "a", False, ("original",)),
    TruthRow("a2", "a", True, ("S1",)),
    TruthRow("a3", "a", True, ("S3",)),
    TruthRow("b", "b", False, ("unrelated",)),
    TruthRow("c", "c", False, ("unrelated",)),
    TruthRow("c2", "c", True, ("S1",)),
    TruthRow("c3", "c", None, ("S5",)),
]


def test_a_flag_is_right_inside_its_group() -> None:
    """A flag that names another group is wrong and misses the copy; one on an original is a false drop."""
    found = score_stream(TRUTH, {"a2": "a", "a3": "b", "b": "a", "c3": "c"})
    assert (found.right, found.wrong, found.missed) == (1, 2, 2)
    assert (found.precision, found.recall, found.f1) == (1 / 3, 1 / 3, 1 / 3)
    assert found.recall_by == {"S1": Share(1, 2), "S3": Share(0, 1)}
    assert found.drops_by == {"original": Share(0, 1), "unrelated": Share(1, 2)}
    assert found.others_by == {"S5": Share(1, 1)}


def test_a_copy_of_a_copy_is_right() -> None:
    """A flag may name any page of the group except the page itself."""
    assert score_stream(TRUTH, {"a3": "a2"}).right == 1
    assert score_stream(TRUTH, {"a3": "a3"}).wrong == 1


def test_the_halves_make_the_whole() -> None:
    """Each group is in one of the halves."""
    named = {"a2": "a", "a3": "a", "b": "a"}
    whole, halves = score_stream(TRUTH, named), [score_stream(TRUTH, named, half=half) for half in (0, 1)]
    assert whole.right == sum(half.right for half in halves)
    assert whole.wrong == sum(half.wrong for half in halves)
    assert {half_of(row.group) for row in TRUTH} <= {0, 1}


def test_pairs_are_scored_by_their_label() -> None:
    """Grey pairs are shown and not scored; a pair without a verdict counts as not flagged."""
    pairs = [
        LabelledPair("a", "b", duplicate=True, component="a", strata=("kind x",)),
        LabelledPair("a", "c", duplicate=False, component="a", strata=("kind x",)),
        LabelledPair("d", "e", duplicate=None, component="d", strata=("kind y",)),
        LabelledPair("f", "g", duplicate=True, component="f"),
    ]
    found = score_pairs(pairs, {("a", "b"): True, ("a", "c"): True, ("d", "e"): True})
    assert (found.right, found.wrong, found.missed) == (1, 1, 1)
    assert found.others_by == {"kind y": Share(1, 1)}


def test_intervals_contain_the_value_and_narrow_with_more_data() -> None:
    """The bootstrap is over groups; the same seed gives the same intervals."""

    def interval(groups: int) -> tuple[float, float, float]:
        rows = [TruthRow(f"{n}", f"g{n}", n % 2 == 0) for n in range(groups)]
        named = {f"{n}": f"{n}x" for n in range(0, groups, 10)}
        truth = [*rows, *(TruthRow(f"{n}x", f"g{n}", positive=False) for n in range(groups))]
        found = score_stream(truth, named)
        (_, _), (low, high), _ = found.intervals()
        assert low <= found.recall <= high
        assert found.intervals() == found.intervals()
        return low, found.recall, high

    few, many = interval(100), interval(2000)
    assert many[2] - many[0] < few[2] - few[0]


def test_scores_of_nothing_are_nan() -> None:
    """A 0 would look like a score."""
    nothing = score_stream([], {})
    assert all(math.isnan(value) for value in (nothing.precision, nothing.recall, nothing.f1))
    assert all(math.isnan(low) for low, _ in nothing.intervals())


@pytest.mark.parametrize(("share", "low", "high"), [(Share(0, 10), 0.0, 0.2775), (Share(5, 10), 0.2366, 0.7634)])
def test_the_interval_of_a_share_is_wilsons(share: Share, low: float, high: float) -> None:
    """The expected values of Wilson's formula were calculated by hand."""
    assert share.interval == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
