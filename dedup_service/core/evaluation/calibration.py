"""A profile's rule made tighter or looser by one number, so that a threshold can be chosen for the whole table.

How: an offset is added to the Jaccard bound of each row; every other bound, the names and what makes a candidate stay.
A row that asks for the same text is left alone: there is nothing to loosen in it. Bounds stay between MIN and MAX.

Invariant: what a tighter rule of the family calls a match, a looser one does too, so each pair has one tightest offset.

Thresholds chosen from labelled pairs: what each value of a threshold finds, and the one that finds most.

A channel is anything that gives a pair one number and calls it a duplicate on one side of a threshold: the distance of
words or of bodies, the estimated Jaccard similarity, or how far the whole rule can be tightened before it lets go
(`core.evaluation.calibration`). Its curve counts, for each threshold from the tightest to the loosest, the pairs
that are flagged.

Invariants: counts never fall along a curve; the last point's flags and what is beyond make all pairs; the choice
flags, on the pairs given, with at least the precision asked for. Pairs labelled as between the two are counted and
never scored.
Source of the intervals: Wilson, JASA 22, 1927.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evaluation.scoring import Share
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.rule import MatchRule

__all__ = [
    "OFFSETS",
    "Calibration",
    "Channel",
    "Curve",
    "Point",
    "choose",
    "curve_of",
    "flags_needed",
    "tightened",
    "tightest_offset",
]

OFFSETS = tuple(round(step / 100, 2) for step in range(40, -41, -1))
"""From the tightest to the loosest, .01 apart: half of what the sketch's estimate errs by."""

MIN, MAX = 0.02, 0.99
SAME_TEXT = 0.99
"""A row with this Jaccard bound or a higher one asks for the same text."""


def tightened(rule: MatchRule, offset: float) -> MatchRule:
    """Return `rule` with `offset` (-1 to 1) added to the Jaccard bounds of its rows; below 0 it is loosened.

    ConfigurationError for a rule without a row that can be moved.
    """
    if all(row.jaccard >= SAME_TEXT for row in rule.verified):
        raise ConfigurationError(
            "a rule of distance alone, or of equal texts, has no table to tighten: name a profile with rows [[match]]"
        )
    return replace(rule, verified=tuple(_moved(row, offset) for row in rule.verified))


def tightest_offset(flagged: Callable[[float], bool], offsets: tuple[float, ...] = OFFSETS) -> float | None:
    """Return the tightest of `offsets` (tightest first) at which `flagged` says yes, None where it never does.

    flagged: yes at an offset means yes at every looser one, so about seven questions answer for 81.
    """
    low, high = 0, len(offsets)
    while low < high:
        middle = (low + high) // 2
        if flagged(offsets[middle]):
            high = middle
        else:
            low = middle + 1
    return offsets[low] if low < len(offsets) else None


def _moved(row: MatchRow, offset: float) -> MatchRow:
    if row.jaccard >= SAME_TEXT:
        return row
    return replace(row, jaccard=round(min(MAX, max(MIN, row.jaccard + offset)), 4))


@dataclass(frozen=True, slots=True)
class Channel:
    """A number of each pair and the thresholds to try.

    thresholds: the tightest first. at_least: pairs at or above a threshold are flagged; else those at or below it.
    home: of equally good thresholds the one nearest to it is chosen; None: the middle one.
    """

    name: str
    thresholds: tuple[float, ...]
    at_least: bool = False
    home: float | None = None

    def __post_init__(self) -> None:
        steps = [after - before for before, after in zip(self.thresholds, self.thresholds[1:], strict=False)]
        if not self.thresholds or any(step >= 0 if self.at_least else step <= 0 for step in steps):
            raise ConfigurationError(f"thresholds of {self.name} go from the tightest to the loosest, each once")

    def first_flagged(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the place of the tightest threshold that flags each value, int64[n]; one past the last: none does.

        values: float64[n]; nan is a pair that the channel cannot compare, which no threshold flags.
        """
        sign = -1.0 if self.at_least else 1.0
        places = np.searchsorted(sign * np.array(self.thresholds), sign * values, side="left")
        return np.where(np.isnan(values), len(self.thresholds), places).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Point:
    """What one threshold does: duplicates and others that it flags, duplicates that it misses, and grey flagged."""

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


@dataclass(frozen=True, slots=True)
class Curve:
    """A channel's points, the tightest threshold first, and pairs by the threshold that flags them first.

    duplicates, others, grey: int64[t + 1], the last place for pairs that no threshold flags.
    """

    channel: Channel
    points: tuple[Point, ...]
    duplicates: tuple[int, ...]
    others: tuple[int, ...]
    grey: tuple[int, ...]


def curve_of(channel: Channel, values: Sequence[float | None], labels: Sequence[bool | None]) -> Curve:
    """Return the curve of n pairs.

    values: of each pair; None where the channel cannot compare it. labels: whether it is a duplicate; None for grey.
    ConfigurationError where duplicates or others are lacking: there is nothing to choose by.
    """
    known = set(labels)
    if not {True, False} <= known:
        lacking = "duplicates" if True not in known else "pairs that are none"
        raise ConfigurationError(
            f"{len(labels)} pairs, but no {lacking} among them: thresholds are chosen between both"
        )
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
    """Return the point with the highest recall among those that reach `precision` (0 to 1), None where none does.

    surely: the lower end of the precision's interval has to reach it, not the value alone.
    Of several with that recall one with the highest precision, and of these the nearest to the channel's home, or the
    middle one, which is farthest from what it has to tell apart. What flags nothing reaches no precision.
    """

    def reached(point: Point) -> bool:
        return (point.precision.interval[0] if confident else point.precision.value) >= precision

    good = [point for point in curve.points if point.right and reached(point)]
    if not good:
        return None
    best = max((point.right, -point.wrong) for point in good)
    equals = [point for point in good if (point.right, -point.wrong) == best]
    home = curve.channel.home
    return equals[len(equals) // 2] if home is None else min(equals, key=lambda point: abs(point.threshold - home))


def flags_needed(precision: float) -> int:
    """Return how many flags, all right, it takes until the interval of their precision begins at `precision`.

    Wilson's interval at n of n begins at n/(n + z²).

    >>> flags_needed(0.99)
    381
    """
    if not 0.0 < precision < 1.0:
        raise ConfigurationError(f"a precision to show lies between 0 and 1, got {precision}")
    return math.ceil(1.959964**2 * precision / (1.0 - precision))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of all channels and the precision that is asked of each choice; surely: see `choose`."""

    precision: float
    curves: tuple[Curve, ...]
    confident: bool = False

    def chosen(self, name: str) -> Point | None:
        """Return the choice on the channel of that name, None where no threshold reaches the precision."""
        return choose(self.curve(name), self.precision, confident=self.confident)

    def curve(self, name: str) -> Curve:
        """Return the curve of the channel of that name."""
        return next(curve for curve in self.curves if curve.channel.name == name)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Pairs: duplicates, others, grey."""
        curve = self.curves[0]
        return sum(curve.duplicates), sum(curve.others), sum(curve.grey)
