"""Calibration: thresholds chosen from labelled pairs, for one quantity or for a whole rule table.

Curves: a channel is anything that gives a pair one number and calls it a duplicate on one side of a
threshold, such as the distance of words or of bodies, or the estimated Jaccard similarity. Its curve counts,
for each threshold from the tightest to the loosest, the pairs that are flagged. `choose` returns the point
with the highest recall at a precision.

Rule family: a profile's rule is made tighter or looser by one number, which makes the whole table a channel,
too: how far it can be tightened before it no longer matches a pair. The number is added to one bound of each row: to
`score` if any row has one, else to `jaccard`; other bounds, names and candidates stay. A row without that bound is
not changed. Moved bounds stay within LIMITS.

Invariants: counts never fall along a curve; the last point's flags and what is beyond it are all pairs; the
choice has at least the precision asked for on the given pairs. Grey pairs are counted and never scored. What
a tighter rule of the family calls a match, a looser one does too, so each pair has one tightest offset.
Source of the intervals: Wilson, JASA 22, 1927.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evaluation.share import Share
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.rule import MatchRule

STEPS, STEP = 40, {"score": 0.1, "jaccard": 0.01}
"""How many steps a bound is tightened and loosened, and how far each is: half the error of the sketch's estimate."""

LIMITS = {"score": (-math.inf, math.inf), "jaccard": (0.02, 0.99)}
"""The range of a moved bound."""


def moved_bound(rule: MatchRule) -> str:
    """Return which bound of its rows is moved; ConfigurationError for a rule without rows."""
    if not rule.verified:
        raise ConfigurationError("a rule of distance alone has no table to tighten: name a profile with rows [[match]]")
    return "jaccard" if all(row.score is None for row in rule.verified) else "score"


def offsets_of(rule: MatchRule) -> tuple[float, ...]:
    """Return the offsets of the family of `rule`, from the tightest to the loosest; raises as `moved_bound`."""
    step = STEP[moved_bound(rule)]
    return tuple(round(step * count, 2) for count in range(STEPS, -STEPS - 1, -1))


def tightened(rule: MatchRule, offset: float) -> MatchRule:
    """Return `rule` with `offset` added to the moved bound of its rows; below 0 loosens it. Raises as `moved_bound`."""
    bound = moved_bound(rule)
    lowest, highest = LIMITS[bound]

    def moved(row: MatchRow) -> MatchRow:
        value = getattr(row, bound)
        return row if value is None else replace(row, **{bound: round(min(highest, max(lowest, value + offset)), 4)})

    return replace(rule, verified=tuple(map(moved, rule.verified)))


def tightest_offset(flagged: Callable[[float], bool], offsets: tuple[float, ...]) -> float | None:
    """Return the tightest of `offsets` (tightest first) at which `flagged` is true, None if it never is.

    flagged: true at an offset implies true at every looser one, so about seven calls suffice for 81 offsets.
    """
    place = bisect_left(offsets, True, key=flagged)
    return offsets[place] if place < len(offsets) else None


@dataclass(frozen=True, slots=True)
class Channel:
    """A quantity of each pair, and the thresholds to try.

    thresholds: the tightest first. at_least: pairs at or above a threshold are flagged; otherwise those at
    or below it.
    home: of equally good thresholds the nearest to it is chosen; None: the middle one.
    largest: no threshold above it is chosen.
    """

    name: str
    thresholds: tuple[float, ...]
    at_least: bool = False
    home: float | None = None
    largest: float = math.inf

    def __post_init__(self) -> None:
        steps = [after - before for before, after in zip(self.thresholds, self.thresholds[1:], strict=False)]
        if not self.thresholds or any(step >= 0 if self.at_least else step <= 0 for step in steps):
            raise ConfigurationError(f"thresholds of {self.name} must go from the tightest to the loosest, each once")

    def first_flagged(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the index of the tightest threshold that flags each value: int64[n]; t if none of t does.

        values: float64[n]; nan for a pair that the channel cannot compare, which no threshold flags.
        """
        sign = -1.0 if self.at_least else 1.0
        places = np.searchsorted(sign * np.array(self.thresholds), sign * values, side="left")
        return np.where(np.isnan(values), len(self.thresholds), places).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Point:
    """The effect of one threshold.

    right, wrong, grey: flagged duplicates, other pairs, grey pairs. missed: duplicates that are not flagged.
    """

    threshold: float
    right: int
    wrong: int
    missed: int
    grey: int

    @property
    def precision(self) -> Share:
        """Share of the flags that are right."""
        return Share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> Share:
        """Share of the duplicates that are flagged."""
        return Share(self.right, self.right + self.missed)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; there are duplicates."""
        return 2 * self.right / (2 * self.right + self.wrong + self.missed)


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of a channel, the tightest first, and the pairs by the first threshold that flags them.

    duplicates, others, grey: t + 1 counts, the last one for pairs that no threshold flags.
    """

    channel: Channel
    points: tuple[Point, ...]
    duplicates: tuple[int, ...]
    others: tuple[int, ...]
    grey: tuple[int, ...]


def curve_of(channel: Channel, values: Sequence[float | None], labels: Sequence[bool | None]) -> Curve:
    """Return the curve of n pairs.

    values: of each pair, None if the channel cannot compare it. labels: whether it is a duplicate, None for
    grey. ConfigurationError if there are no duplicates or no others: a choice needs both.
    """
    known = set(labels)
    if not {True, False} <= known:
        lacking = "duplicates" if True not in known else "pairs that are not duplicates"
        raise ConfigurationError(f"{len(labels)} labelled pairs, but no {lacking} among them; label some of both kinds")
    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    places = channel.first_flagged(numbers)
    size = len(channel.thresholds) + 1

    def counted(label: bool | None) -> npt.NDArray[np.int64]:
        chosen = np.fromiter((known is label for known in labels), dtype=np.bool_, count=len(labels))
        return np.bincount(places[chosen], minlength=size)

    duplicates, others, grey = counted(True), counted(False), counted(None)
    sums = zip(*(np.cumsum(counts).tolist() for counts in (duplicates, others, grey)), strict=True)
    total = int(duplicates.sum())
    points = tuple(
        Point(threshold, right, wrong, total - right, between)
        for threshold, (right, wrong, between) in zip(channel.thresholds, sums, strict=False)
    )
    return Curve(channel, points, *(tuple(counts.tolist()) for counts in (duplicates, others, grey)))


def choose(curve: Curve, precision: float, *, confident: bool = False) -> Point | None:
    """Return the point with the highest recall that reaches `precision` (0 to 1), None if none does.

    confident: the lower end of the precision's interval must reach it, not only the value. Of several points
    with that recall, one with the highest precision is chosen; of these the nearest to the channel's home,
    or the middle one, which is farthest from the pairs to be told apart. A point without flags reaches no
    precision.
    """

    def reached(point: Point) -> bool:
        return (point.precision.interval[0] if confident else point.precision.value) >= precision

    usable = [point for point in curve.points if point.threshold <= curve.channel.largest]
    good = [point for point in usable if point.right and reached(point)]
    if not good:
        return None
    best = max((point.right, -point.wrong) for point in good)
    equals = [point for point in good if (point.right, -point.wrong) == best]
    home = curve.channel.home
    return equals[len(equals) // 2] if home is None else min(equals, key=lambda point: abs(point.threshold - home))


def flags_needed(precision: float) -> int:
    """Return how many flags, all of them right, show a precision: its interval then begins at `precision`.

    Wilson's interval at n of n begins at n/(n + z²).

    >>> flags_needed(0.99)
    381
    """
    if not 0.0 < precision < 1.0:
        raise ConfigurationError(f"precision must be between 0 and 1, got {precision}")
    return math.ceil(1.959964**2 * precision / (1.0 - precision))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of all channels.

    precision: required of each choice. confident: see `choose`. as_it_is: what the profile finds. left_out: what the
    ways to calibrate it, by name, find in sources that they were not fitted and chosen on. sources: what a source is,
    and in how many folds they were left out; one is not enough.
    """

    precision: float
    curves: tuple[Curve, ...]
    confident: bool = False
    as_it_is: Point | None = None
    left_out: Mapping[str, Point] = field(default_factory=dict)
    sources: tuple[str, int] = ("", 0)

    def chosen(self, name: str) -> Point | None:
        """Return the choice on the channel `name`, None if no threshold reaches the precision."""
        return choose(self.curve(name), self.precision, confident=self.confident)

    def curve(self, name: str) -> Curve:
        """Return the curve of the channel `name`."""
        return next(curve for curve in self.curves if curve.channel.name == name)

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of pairs: duplicates, others, grey."""
        curve = self.curves[0]
        return sum(curve.duplicates), sum(curve.others), sum(curve.grey)
