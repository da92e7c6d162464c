"""Scores of verdicts against the truth.

Stream: each page with a truth is a positive (it repeats an earlier page of its group) or a negative. A flag
is right if the page that it names belongs to the same group; a flag on a negative is a false drop. Pairs:
labelled `dup`, `not`, or grey, which is not scored.

Intervals are 95%: of precision, recall and F1 by bootstrap over groups (or pairs).
Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.
"""

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dedup_service.core.evaluation.share import Interval, Share

RESAMPLES = 1000
"""Bootstrap resamples."""

LEFT_OUT = ("S4", "S5")
"""Strengths of edits that are not scored: a third of the text or more has changed."""


@dataclass(frozen=True, slots=True)
class TruthRow:
    """The truth of a page.

    group: of pages with the same content; a flag is right only within it. positive: the page repeats an
    earlier one;
    None: shown and not scored. strata: further names under which it is counted.
    """

    id: str
    group: str
    positive: bool | None
    strata: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """The truth of a pair. duplicate: None for grey. component: the connected pages that it belongs to."""

    a: str
    b: str
    duplicate: bool | None
    component: str
    strata: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """Counts of one run, and the scores that follow from them.

    right, wrong, missed: right flags on positives, all other flags, and positives that were not found.
    recall_by, drops_by, others_by: shares by stratum, of positives found, of negatives flagged, and of
    unscored rows flagged. units: int64[n, 3], right, wrong and missed of each group or pair, for the
    bootstrap.
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
        """Share of flags that are right; nan without flags."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else math.nan

    @property
    def recall(self) -> float:
        """Share of positives that are found; nan without positives."""
        return self.right / (self.right + self.missed) if self.right + self.missed else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; nan without flags and positives."""
        total = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / total if total else math.nan

    def intervals(self, seed: int = 7) -> tuple[Interval, Interval, Interval]:
        """Return the intervals of precision, recall and F1 by bootstrap over groups; nan if the value is."""
        units = self.units[self.units.any(axis=1)]
        empty = len(self.units) - len(units)
        if not len(units):
            return ((math.nan, math.nan),) * 3
        rng = np.random.default_rng(seed)
        probabilities = np.append(np.full(len(units), 1.0), empty) / len(self.units)
        drawn = rng.multinomial(len(self.units), probabilities, size=RESAMPLES)[:, :-1]
        right, wrong, missed = (drawn @ units).T.astype(np.float64)
        with np.errstate(invalid="ignore"):
            values = (right / (right + wrong), right / (right + missed), 2 * right / (2 * right + wrong + missed))
        return tuple(_bounds(value) for value in values)  # type: ignore[return-value]


def _bounds(values: npt.NDArray[np.float64]) -> Interval:
    """Return the middle 95% of values: float64[n] that are not nan; nan if all are."""
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.percentile(known, (2.5, 97.5))
    return float(low), float(high)


def half_of(name: str) -> int:
    """Return the half, 0 or 1, of a group or a component of pairs."""
    return zlib.crc32(name.encode()) & 1


def score_stream(truth: Iterable[TruthRow], named: Mapping[str, str], *, half: int | None = None) -> Evaluation:
    """Score `named`: page → the page that its verdict names. half: only groups of that half."""
    rows = list(truth)
    groups = {row.id: row.group for row in rows}
    tally = _Tally()
    for row in rows:
        if half is None or half_of(row.group) == half:
            original = named.get(row.id)
            right = original is not None and original != row.id and groups.get(original) == row.group
            tally.add(row.group, row.positive, row.strata, flagged=original is not None, right=right)
    return tally.evaluation()


def score_pairs(
    pairs: Iterable[LabelledPair], duplicates: Mapping[tuple[str, str], bool], *, half: int | None = None
) -> Evaluation:
    """Score `duplicates`: (a, b) → whether b is called a duplicate of a.

    half: only components of that half.
    """
    tally = _Tally()
    for number, pair in enumerate(pairs):
        if half is None or half_of(pair.component) == half:
            flagged = duplicates.get((pair.a, pair.b), False)
            tally.add(str(number), pair.duplicate, pair.strata, flagged=flagged, right=flagged)
    return tally.evaluation()


class _Tally:
    """Counts flags by unit (a group, or a pair) and by stratum."""

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
