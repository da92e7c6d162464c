"""Cross-validation: what a choice that was made on some sources of labelled pairs finds in the others.

A source is a pair of hosts; if there are too few of them, what the labels call a kind, or else pages that pairs
connect. Sources are dealt to up to FOLDS folds, each of which is left out in turn; so up to FOLDS sources are left out
one by one.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dedup_service.core.evaluation.calibration import Calibration, Channel, Point, choose, curve_of
from dedup_service.core.evaluation.fitting import Flags, Floats
from dedup_service.core.evaluation.scoring import LabelledPair

FOLDS, MIN_SOURCES = 10, 5


def folds_of(pairs: Sequence[LabelledPair], hosts: Sequence[str]) -> tuple[str, npt.NDArray[np.int64]]:
    """Return what a source is, in words, and the fold of each pair: int64[n]. hosts: of both pages of each pair."""
    kinds = [next((name for name in pair.strata if name.startswith("kind ")), "") for pair in pairs]
    ways = {"pair of hosts": hosts, "kind": kinds, "connected pages": [pair.component for pair in pairs]}
    by = next((way for way, sources in ways.items() if len(set(sources)) >= MIN_SOURCES), "connected pages")
    counts = Counter(ways[by])
    sizes, fold = [0] * min(FOLDS, len(counts)), {}
    for source, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        fold[source] = sizes.index(min(sizes))
        sizes[fold[source]] += count
    return by, np.array([fold[source] for source in ways[by]], np.int64)


def left_out(
    calibration: Calibration,
    channel: Channel,
    labels: Sequence[bool | None],
    folds: npt.NDArray[np.int64],
    offsets: Floats,
    fitted_on: Callable[[Flags], Floats],
) -> Point:
    """Return what is found in each fold by the rule that the other folds give; its threshold is nan.

    labels: whether a pair is a duplicate, None for grey. offsets: float64[n], the tightest that flag each pair by the
    rule as it is, which stays in a fold without which no threshold can be chosen. fitted_on: bool[n], pairs → offsets
    by a rule fitted on them.
    """
    truth = np.array(labels, dtype=object)
    flagged = offsets >= 0.0
    for fold in np.unique(folds):
        rest = folds != fold
        if {True, False} <= set(truth[rest]):
            found = fitted_on(rest)
            curve = curve_of(channel, found[rest].tolist(), truth[rest].tolist())
            chosen = choose(curve, calibration.precision, confident=calibration.confident)
            flagged[~rest] = (found if chosen else offsets)[~rest] >= (chosen.threshold if chosen else 0.0)
    right, wrong, grey, all_right = (
        sum(known is label for known in truth[among])
        for label, among in ((True, flagged), (False, flagged), (None, flagged), (True, slice(None)))
    )
    return Point(math.nan, right, wrong, all_right - right, grey)
