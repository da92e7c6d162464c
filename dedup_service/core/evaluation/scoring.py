"""How good verdicts are, against what is known of the pages.

Stream: each page with a truth is a positive (it repeats an earlier page of its group) or a negative. A flag is right
where the page that it names is of the same group; a flag on a negative is a false drop. Pairs: labelled `dup`, `not`,
or something between, which is not scored.

Intervals are 95%: of precision, recall and F1 by bootstrap over groups (or pairs), of a share Wilson's.
Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13; Wilson, JASA 22, 1927.
"""

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["Evaluation", "LabelledPair", "Share", "TruthRow", "half_of", "score_pairs", "score_stream"]

RESAMPLES = 1000
LEFT_OUT = ("S4", "S5")
"""Strengths that are neither copies nor others: a third of the text and more has changed."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TruthRow:
    """What is known of a page.

    group: of pages that tell the same; a flag has to stay in it. positive: the page repeats an earlier one; None: it
    is shown and not scored. strata: names under which it is counted, besides.
    """

    id: str
    group: str
    positive: bool | None
    strata: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """What is known of a pair. duplicate: None where it is between the two. component: the set that pairs join."""

    a: str
    b: str
    duplicate: bool | None
    component: str
    strata: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `of`."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share, 0 to 1; nan of none."""
        return self.hits / self.of if self.of else math.nan

    @property
    def interval(self) -> Interval:
        """Wilson's interval at 95%."""
        if not self.of:
            return 0.0, 1.0
        z, p, n = 1.959964, self.hits / self.of, self.of
        centre, spread = p + z * z / 2 / n, z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
        return max(0.0, (centre - spread) / (1 + z * z / n)), min(1.0, (centre + spread) / (1 + z * z / n))


@dataclass(frozen=True)
class Evaluation:
    """Counts of one run and what follows from them.

    right, wrong, missed: flags on positives that are right, all others, and positives that are not found.
    recall_by, drops_by, others_by: shares by stratum, of positives found, negatives flagged, and of what is not scored.
    """

    right: int
    wrong: int
    missed: int
    recall_by: Mapping[str, Share]
    drops_by: Mapping[str, Share]
    others_by: Mapping[str, Share]
    units: npt.NDArray[np.int64] = field(repr=False, default_factory=lambda: np.zeros((0, 3), np.int64))

    @property
    def precision(self) -> float:
        """Share of flags that are right; nan of none."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else math.nan

    @property
    def recall(self) -> float:
        """Share of positives that are found; nan of none."""
        return self.right / (self.right + self.missed) if self.right + self.missed else math.nan

    @property
    def f1(self) -> float:
        """Their harmonic mean; nan where there is neither flag nor positive."""
        total = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / total if total else math.nan

    def intervals(self, seed: int = 7) -> tuple[Interval, Interval, Interval]:
        """Return those of precision, recall and F1, from RESAMPLES resamples of the groups; nan where the value is."""
        units = self.units[self.units.any(axis=1)]
        empty = len(self.units) - len(units)
        if not len(units):
            return ((math.nan, math.nan),) * 3
        rng = np.random.default_rng(seed)
        chances = np.append(np.full(len(units), 1.0), empty) / len(self.units)
        drawn = rng.multinomial(len(self.units), chances, size=RESAMPLES)[:, :-1]
        right, wrong, missed = (drawn @ units).T.astype(np.float64)
        with np.errstate(invalid="ignore"):
            values = (right / (right + wrong), right / (right + missed), 2 * right / (2 * right + wrong + missed))
        return tuple(_bounds(value) for value in values)  # type: ignore[return-value]


def _bounds(values: npt.NDArray[np.float64]) -> Interval:
    """The middle 95% of float64[n] that are known; nan where none is."""
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.percentile(known, (2.5, 97.5))
    return float(low), float(high)


def half_of(name: str) -> int:
    """Return 0 or 1: the half that a group, or a component of pairs, belongs to."""
    return zlib.crc32(name.encode()) & 1


def score_stream(truth: Iterable[TruthRow], named: Mapping[str, str], *, half: int | None = None) -> Evaluation:
    """Score `named`: page → the page it was said to repeat. half: only groups of that half."""
    rows = list(truth)
    groups = {row.id: row.group for row in rows}
    tally = _Tally()
    for row in rows:
        if half is None or half_of(row.group) == half:
            of = named.get(row.id)
            right = of is not None and of != row.id and groups.get(of) == row.group
            tally.add(row.group, row.positive, row.strata, flagged=of is not None, right=right)
    return tally.evaluation()


def score_pairs(
    pairs: Iterable[LabelledPair], duplicates: Mapping[tuple[str, str], bool], *, half: int | None = None
) -> Evaluation:
    """Score `duplicates`: (a, b) → whether b was said to repeat a. half: only components of that half."""
    tally = _Tally()
    for number, pair in enumerate(pairs):
        if half is None or half_of(pair.component) == half:
            flagged = duplicates.get((pair.a, pair.b), False)
            tally.add(str(number), pair.duplicate, pair.strata, flagged=flagged, right=flagged)
    return tally.evaluation()


class _Tally:
    def __init__(self) -> None:
        self._units: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self._found: Counter[tuple[str, bool]] = Counter()
        self._dropped: Counter[tuple[str, bool]] = Counter()
        self._others: Counter[tuple[str, bool]] = Counter()

    def add(self, unit: str, positive: bool | None, strata: Sequence[str], *, flagged: bool, right: bool) -> None:
        counts = self._units[unit]
        if positive is None:
            self._others.update((name, flagged) for name in strata)
        elif positive:
            counts[0] += right
            counts[1] += flagged and not right
            counts[2] += not right
            self._found.update((name, right) for name in strata)
        else:
            counts[1] += flagged
            self._dropped.update((name, flagged) for name in strata)

    def evaluation(self) -> Evaluation:
        units = np.array(list(self._units.values()), dtype=np.int64).reshape(-1, 3)
        right, wrong, missed = units.sum(axis=0).tolist()
        return Evaluation(
            right, wrong, missed, _shares(self._found), _shares(self._dropped), _shares(self._others), units
        )


def _shares(counts: Counter[tuple[str, bool]]) -> dict[str, Share]:
    names = sorted({name for name, _ in counts})
    return {name: Share(counts[name, True], counts[name, True] + counts[name, False]) for name in names}
