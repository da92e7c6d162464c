"""Fit the card of the score to labelled pairs, and write it into `native/src/stream/score.rs`.

    python -m benchmarks.quality.fit DIR [--write]

DIR is the evaluation data of `benchmarks.quality`; natural/, reposts/ and english/ are in DIR or beside it. Each
quantity is cut at its knots into ramps. The points of all ramps are found by a logistic regression that allows none
below 0. Each set weighs as the root of its pairs, so that a large one does not decide alone. Copies of the stream are
made, not labelled by people; they and German laws are told from the nearest other pages, which are all different.

The figures *left out* are of a set on which nothing was fitted: the points are those of all other sets. The
quantities, the knots and the threshold were chosen while all sets were looked at. Grey pairs and made copies are not
scored.

Source: Hastie, Tibshirani, "Generalized additive models", 1986 (the form); Bertsekas, "Projected Newton methods for
optimization problems with simple constraints", 1982 (the fit).
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.quality.corpora import Corpora, read_pages
from benchmarks.quality.numbers import figure
from benchmarks.quality.pair_sets import KNOTS, NEAREST, Floats, PairSet, labelled, nearest, pair_set, stream_set
from benchmarks.quality.store import NATIVE
from dedup_service.core.rules.profiles import PROFILES

CARD_FILE = NATIVE / "src" / "stream" / "score.rs"
SETS = ("natural", "reposts/text", "reposts/html", "pairs", "english")
"""Folders of the labelled pairs; each is left out in turn."""

WEIGHTS = {"stream": 0.7, "laws": 0.5}
PENALTY = 2e-4
"""Of the squared points, so that ramps of which the pairs say little have few."""

ZERO = 0.5
"""Logit of the fit that is a score of 0: between 0 and 1, half of the labelled pairs are copies."""

BALANCED = PROFILES["balanced"]
THRESHOLD = BALANCED.verified[0].score or 0.0
JACCARD = 0.5


def fitted(sets: Sequence[PairSet]) -> Floats:
    """Return the bias and the points of each ramp: float64[1 + ramps]."""
    ramps = np.concatenate([np.insert(found.ramps(), 0, 1, axis=1) for found in sets])
    signs = np.where(np.concatenate([found.copies for found in sets]), 1.0, -1.0)
    weights = np.concatenate([np.full(n := len(found.same), WEIGHTS.get(found.name, 1) / n**0.5) for found in sets])
    weights /= weights.sum()
    penalty = np.append(0, np.full(ramps.shape[1] - 1, PENALTY))
    lowest = np.where(penalty > 0, 0, -np.inf)

    def loss(points: Floats) -> float:
        return float(weights @ np.logaddexp(0, -signs * (ramps @ points)) + penalty @ points**2)

    points = np.where(penalty > 0, 0.3, 0.0)
    for _ in range(100):
        wrong = 1 / (1 + np.exp(signs * (ramps @ points)))
        gradient = -ramps.T @ (weights * signs * wrong) + 2 * penalty * points
        curvature = (ramps.T * (weights * wrong * (1 - wrong))) @ ramps + 2 * np.diag(penalty)
        free = (points > lowest) | (gradient < 0)
        step = np.zeros_like(points)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        tries = (np.maximum(points - size * step, lowest) for size in 0.5 ** np.arange(30))
        following = next((new for new in tries if loss(new) < loss(points)), points)
        if np.abs(following - points).max() < 1e-6:
            break
        points = following
    points[0] -= ZERO
    return points


def card_of(text: str, points: Floats) -> str:
    """Return the source `text` with the points in its card; ramps without points at either end are left out."""
    text = re.sub(r"(BIAS: f64 = )[-\d.]+", rf"\g<1>{points[0]:.3f}", text)
    at = 1
    for name, (_, knots) in KNOTS.items():
        found = np.round(points[at : at + len(knots) - 1], 3).tolist()
        at += len(knots) - 1
        some = np.flatnonzero(found)
        first, last = (int(some[0]), int(some[-1]) + 1) if len(some) else (0, 1)
        line = rf'(name: "{name}",.*?knots: &)\[.*?\](,\s+points: &)\[.*?\]'
        given = (list(map(float, knots[first : last + 1])), found[first:last])
        text, count = re.subn(line, rf"\g<1>{given[0]}\g<2>{given[1]}", text, count=1, flags=re.DOTALL)
        if not count:
            message = f"{CARD_FILE} has no quantity {name!r}: KNOTS and the card have to name the same"
            raise ValueError(message)
    return text


def figures(found: PairSet, scores: Floats, threshold: float) -> list[str]:
    """Return average precision, and precision, recall and F1 from the threshold on."""
    order = found.copies[np.argsort(-scores, kind="stable")]
    average = (np.cumsum(order) / np.arange(1, len(order) + 1))[order].mean()
    flagged = scores >= threshold
    right = int((flagged & found.copies).sum())
    precision, recall = right / max(1, flagged.sum()), right / max(1, found.copies.sum())
    return [figure(float(value)) for value in (average, precision, recall, 2 * right / (flagged.sum() + order.sum()))]


def table_of(sets: Sequence[PairSet], further: Sequence[PairSet], points: Floats) -> Table:
    """Return the table of all sets: left out, in sample, and by exact Jaccard similarity."""
    table = Table(title=f"Labelled pairs, at a score of {THRESHOLD:g}")
    for heading in ("pairs", "dup, not", "by", "AP", "P", "R", "F1"):
        table.add_column(heading, no_wrap=True)
    for found in sets:
        without = fitted([other for other in (*sets, *further) if other is not found])
        first = (found.name, f"{found.copies.sum()}, {(~found.copies).sum()}")
        table.add_row(*first, "score, left out", *figures(found, found.scores(without), THRESHOLD))
        table.add_row("", "", "score, in sample", *figures(found, found.scores(points), THRESHOLD))
        table.add_row("", "", f"Jaccard ≥ {JACCARD:g}", *figures(found, found.jaccard, JACCARD))
    return table


def main() -> None:
    """Fit the card, print how good it is and its lines, and write it if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.fit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the evaluation data")
    parser.add_argument("--write", action="store_true", help="write the card into the source of the score")
    options = parser.parse_args()
    corpora, console = Corpora(options.folder), Console()
    folders = {name: corpora.beside(name) for name in (*SETS, "english/streams")}
    if missing := [name for name, folder in folders.items() if folder is None]:
        parser.error(
            f"no folder {', '.join(missing)} in {options.folder} or beside it: unpack the labelled pairs there"
        )
    found = {name: folder for name, folder in folders.items() if folder is not None}
    sets = [labelled(name, found[name]) for name in SETS]
    streams = {name: read_pages(found["english/streams"] / f"{name}.jsonl") for name in ("laws", "fomc")}
    laws, named = nearest(streams["laws"], NEAREST)
    of_laws = [(laws[one], laws[other], False) for one, other in named.items()]
    further = [stream_set(corpora), pair_set("laws", of_laws)]
    points = fitted([*sets, *further])
    console.print(table_of(sets, further, points))
    for made in further:
        flagged = made.scores(points) >= THRESHOLD
        copies, others = (f"{flagged[which].sum()} of {which.sum()}" for which in (made.copies, ~made.copies))
        console.print(f"{made.name}, in sample: {copies} copies found, {others} other pairs flagged")
    for name, pages in streams.items():
        console.print(f"{name}: balanced calls {len(nearest(pages, BALANCED)[1])} of {len(pages)} pages duplicates")
    card = card_of(CARD_FILE.read_text(encoding="utf-8"), points)
    card_lines = re.findall(r'^pub const BIAS.*|^ +(?:name: "|knots: &\[|points: &\[).*', card, re.MULTILINE)
    console.print("\n".join(card_lines), markup=False, highlight=False)
    if options.write:
        CARD_FILE.write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
