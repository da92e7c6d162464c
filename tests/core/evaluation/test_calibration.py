"""Thresholds from labelled pairs, compared with separate counts for each threshold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evaluation.calibration import Calibration, Channel, Curve, Point, choose, curve_of, flags_needed
from dedup_service.core.evaluation.share import Share

BITS = Channel("bits", tuple(float(bits) for bits in range(9)))
SHARES = Channel("shares", tuple(step / 10 for step in range(10, -1, -1)), at_least=True)

LABEL = st.sampled_from([True, False, None])
VALUE = st.none() | st.integers(-2, 12).map(float) | st.integers(-3, 14).map(lambda tenths: tenths / 10)
PAIRS = st.lists(st.tuples(VALUE, LABEL), min_size=1, max_size=40).map(lambda rows: [*rows, (0.5, True), (0.4, False)])
Pairs = list[tuple[float | None, bool | None]]


def flagged(channel: Channel, threshold: float, value: float | None) -> bool:
    """Whether a threshold flags a value."""
    if value is None:
        return False
    return value >= threshold if channel.at_least else value <= threshold


@given(PAIRS, st.sampled_from([BITS, SHARES]))
def test_a_curve_counts_every_threshold(pairs: Pairs, channel: Channel) -> None:
    """Right, wrong, missed and grey at each threshold equal those of a loop over all pairs."""
    values, labels = zip(*pairs, strict=True)
    for point in curve_of(channel, values, labels).points:
        flags = [(label, flagged(channel, point.threshold, value)) for value, label in pairs]
        assert (point.right, point.wrong) == (flags.count((True, True)), flags.count((False, True)))
        assert (point.missed, point.grey) == (flags.count((True, False)), flags.count((None, True)))


@given(PAIRS, st.sampled_from([BITS, SHARES]))
def test_a_histogram_has_every_pair_once(pairs: Pairs, channel: Channel) -> None:
    """Pairs that no threshold flags are in the last place."""
    values, labels = zip(*pairs, strict=True)
    curve = curve_of(channel, values, labels)
    assert (sum(curve.duplicates), sum(curve.others), sum(curve.grey)) == tuple(map(labels.count, (True, False, None)))
    beyond = [label for value, label in pairs if not any(flagged(channel, at, value) for at in channel.thresholds)]
    assert (curve.duplicates[-1], curve.others[-1]) == (beyond.count(True), beyond.count(False))


@given(PAIRS, st.sampled_from([BITS, SHARES]), st.floats(0.05, 0.99))
def test_the_choice_reaches_the_precision_and_no_other_finds_more(
    pairs: Pairs, channel: Channel, precision: float
) -> None:
    """Both are counted from the pairs; the choice is None only if no threshold reaches the precision."""
    chosen = choose(curve_of(channel, *zip(*pairs, strict=True)), precision)

    def scores(threshold: float) -> tuple[float, int]:
        labels = [label for value, label in pairs if flagged(channel, threshold, value)]
        right, wrong = labels.count(True), labels.count(False)
        return (right / (right + wrong) if right else 0.0), right

    reached = [scores(threshold)[1] for threshold in channel.thresholds if scores(threshold)[0] >= precision]
    if chosen is None:
        assert not reached
    else:
        assert scores(chosen.threshold) == (chosen.precision.value, max(reached))
        assert chosen.precision.value >= precision


def curve_with(*points: Point, home: float | None = None) -> Curve:
    """A curve of these points."""
    return Curve(Channel("points", tuple(point.threshold for point in points), home=home), points, (), (), ())


def test_a_confident_choice_uses_the_interval() -> None:
    """Nine right flags of nine are a precision of 1, but show only .70."""
    few, many = Point(1.0, right=9, wrong=0, missed=91, grey=0), Point(2.0, right=96, wrong=4, missed=4, grey=0)
    assert choose(curve_with(few, many), 0.9) == many
    assert choose(curve_with(few, many), 0.99) == few
    assert few.precision.interval[0] < many.precision.interval[0] == pytest.approx(0.9016, abs=1e-4)
    assert choose(curve_with(few, many), 0.91, confident=True) is None
    assert choose(curve_with(few, many), 0.9, confident=True) == many


@pytest.mark.parametrize(("home", "chosen"), [(None, 3.0), (0.0, 2.0), (3.9, 4.0), (9.0, 4.0)])
def test_of_equals_the_middle_one_or_the_nearest_to_home_is_chosen(home: float | None, chosen: float) -> None:
    """A looser threshold that finds nothing more only costs precision."""
    points = [Point(1.0, 7, 0, 3, 0), *(Point(at, 8, 1, 2, 0) for at in (2.0, 3.0, 4.0)), Point(5.0, 8, 2, 2, 0)]
    found = choose(curve_with(*points, home=home), 0.5)
    assert found is not None
    assert found.threshold == chosen


@given(st.floats(0.5, 0.999))
def test_flags_needed_show_a_precision_and_one_less_does_not(precision: float) -> None:
    """The interval of the share decides."""
    needed = flags_needed(precision)
    assert Share(needed, needed).interval[0] >= precision - 1e-9
    assert needed == 1 or Share(needed - 1, needed - 1).interval[0] < precision


@pytest.mark.parametrize(
    ("labels", "lacking"), [([True, None], "pairs that are not duplicates"), ([False, None], "duplicates")]
)
def test_one_kind_of_pair_is_refused(labels: list[bool | None], lacking: str) -> None:
    """The message says which kind is missing."""
    with pytest.raises(ConfigurationError, match=lacking):
        curve_of(BITS, [1.0, 2.0], labels)


@pytest.mark.parametrize("thresholds", [(), (2.0, 1.0), (1.0, 1.0)])
def test_thresholds_go_from_tight_to_loose(thresholds: tuple[float, ...]) -> None:
    """Otherwise a curve would count pairs twice."""
    with pytest.raises(ConfigurationError, match="from the tightest"):
        Channel("odd", thresholds)


def test_a_pair_that_cannot_be_compared_is_never_flagged() -> None:
    """Even a threshold that flags everything else does not flag it."""
    curve = curve_of(BITS, [None, 0.0, math.inf], [True, True, False])
    assert curve.points[-1] == Point(8.0, right=1, wrong=0, missed=1, grey=0)


def test_a_calibration_names_its_channels() -> None:
    """Each channel has a choice, and all have the same pairs."""
    bits = curve_of(BITS, [1.0, 3.0, None], [True, False, None])
    shares = curve_of(SHARES, [0.2, 0.8, None], [True, False, None])
    found = Calibration(0.9, (bits, shares))
    assert found.counts == (1, 1, 1)
    assert found.chosen("bits") == Point(2.0, 1, 0, 0, 0)
    assert found.chosen("shares") is None
