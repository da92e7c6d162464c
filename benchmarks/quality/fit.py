"""Fit the card of the score to labelled pairs, and write it into `core/evidence/card.py`.

    python -m benchmarks.quality.fit DIR [--write]

DIR is the evaluation data of `benchmarks.quality`; natural/, reposts/ and english/ are in DIR or beside it. The points
of all ramps are fitted (`core.evaluation.fitting`), at the knots that the card has. Each set weighs as the root of its
pairs, so that a large one does not decide alone. Copies of the stream are made, not labelled by people; they and German
laws are told from the nearest other pages, which are all different.

The figures *left out* are of a set on which nothing was fitted: the points are those of all other sets. The
quantities, the knots and the threshold were chosen while all sets were looked at. Grey pairs and made copies are not
scored.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.quality.corpora import Corpora, read_pages
from benchmarks.quality.numbers import figure
from benchmarks.quality.pair_sets import NEAREST, PairSet, labelled, nearest, pair_set, stream_set
from dedup_service.core.evaluation.fitting import Floats, fitted, ramps
from dedup_service.core.evidence import card as built_in
from dedup_service.core.evidence.card import BUILT_IN, BUILT_IN_TEXT, Card, card_lines
from dedup_service.core.rules.profiles import PROFILES

CARD_FILE = Path(built_in.__file__)
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


def card_of(sets: Sequence[PairSet]) -> Card:
    """Return the card that fits the sets."""
    columns = np.concatenate([ramps(BUILT_IN, found.quantities) for found in sets])
    copies = np.concatenate([found.copies for found in sets])
    weights = np.concatenate([np.full(n := len(found.same), WEIGHTS.get(found.name, 1) / n**0.5) for found in sets])
    found = fitted(columns, copies, weights / weights.sum(), np.zeros(columns.shape[1]), PENALTY).round(3).tolist()
    return BUILT_IN.with_points(round(found[0] - ZERO, 3), found[1:])


def figures(found: PairSet, scores: Floats, threshold: float) -> list[str]:
    """Return average precision, and precision, recall and F1 from the threshold on."""
    order = found.copies[np.argsort(-scores, kind="stable")]
    average = (np.cumsum(order) / np.arange(1, len(order) + 1))[order].mean()
    flagged = scores >= threshold
    right = int((flagged & found.copies).sum())
    precision, recall = right / max(1, flagged.sum()), right / max(1, found.copies.sum())
    return [figure(float(value)) for value in (average, precision, recall, 2 * right / (flagged.sum() + order.sum()))]


def table_of(sets: Sequence[PairSet], further: Sequence[PairSet], card: Card) -> Table:
    """Return the table of all sets: left out, in sample, and by exact Jaccard similarity."""
    table = Table(title=f"Labelled pairs, at a score of {THRESHOLD:g}")
    for heading in ("pairs", "dup, not", "by", "AP", "P", "R", "F1"):
        table.add_column(heading, no_wrap=True)
    for found in sets:
        without = card_of([other for other in (*sets, *further) if other is not found])
        first = (found.name, f"{found.copies.sum()}, {(~found.copies).sum()}")
        table.add_row(*first, "score, left out", *figures(found, found.scores(without), THRESHOLD))
        table.add_row("", "", "score, in sample", *figures(found, found.scores(card), THRESHOLD))
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
    parser.add_argument("--write", action="store_true", help="write the card into the source of the built-in one")
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
    card = card_of([*sets, *further])
    console.print(table_of(sets, further, card))
    for made in further:
        flagged = made.scores(card) >= THRESHOLD
        copies, others = (f"{flagged[which].sum()} of {which.sum()}" for which in (made.copies, ~made.copies))
        console.print(f"{made.name}, in sample: {copies} copies found, {others} other pairs flagged")
    for name, pages in streams.items():
        console.print(f"{name}: balanced calls {len(nearest(pages, BALANCED)[1])} of {len(pages)} pages duplicates")
    text = "".join(f"{line}\n" for line in card_lines(card))
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    if options.write:
        source = CARD_FILE.read_text(encoding="utf-8")
        CARD_FILE.write_text(source.replace(BUILT_IN_TEXT, text), encoding="utf-8")


if __name__ == "__main__":
    main()
