"""Precision and recall by language: every profile, and each channel of SimHash alone.

    python -m benchmarks.languages [--language NAME] [--seed N] [--unspaced icu|pairs]

The pages are generated from the seed (`benchmarks.language_pages`): for each language 400 articles, a copy
of each after one edit, and 300 look-alikes. No language should be worse than two references: the channel
`body`, character shingles alone, and *exact Jaccard*, every pair of pages compared by their exact sets of 5
letters. k and the bound of Jaccard are the best ones on half 0; figures are of half 1. docs/languages.md has
the tables.
"""

import argparse
import statistics
import time
from collections.abc import Iterable

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.language_pages import LANGUAGES, LanguageStream, stream_of
from benchmarks.prepared_names import PreparedNames
from benchmarks.quality.shingles import ngrams_of
from dedup_service._native import PageText
from dedup_service.core.decision.decider import Decider
from dedup_service.core.evaluation.scoring import Evaluation, score_stream
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

RADII = range(8)
KINDS = ("original", "hardneg_topic", "hardneg_series", "hardneg_boilerplate")
STRENGTHS = ("S1", "S2", "S3")


def decide(prepared: list[PreparedPage], rule: MatchRule) -> dict[str, str]:
    """Return page id → id of its original, for pages with the verdict `duplicate`."""
    decider = Decider(rule, "benchmark", PreparedNames(prepared))
    flags = {}
    for sequence, item in enumerate(prepared, 1):
        verdict = decider.decide(sequence, item).verdict
        if verdict.kind is VerdictKind.DUPLICATE and verdict.duplicate_of is not None:
            flags[verdict.id] = verdict.duplicate_of
    return flags


def prepared_by(fingerprinter: Fingerprinter, stream: LanguageStream) -> tuple[list[PreparedPage], float]:
    """Return the prepared pages, and pages a second of processor time."""
    began = time.process_time()
    prepared = [fingerprinter.prepare(page) for page in stream.pages]
    return prepared, len(prepared) / (time.process_time() - began)


def by_channel(stream: LanguageStream, prepared: list[PreparedPage], channel: str) -> Iterable[tuple[str, Evaluation]]:
    """Yield the result of one channel alone at k = 3 and at the best k on half 0."""
    flags = {k: decide(prepared, rule_for(channel, k=k)) for k in RADII}
    best = max(RADII, key=lambda k: score_stream(stream.truth, flags[k], half=0).f1)
    for k in dict.fromkeys((3, best)):
        yield f"{channel} k={k}", score_stream(stream.truth, flags[k], half=1)


def by_jaccard(stream: LanguageStream) -> tuple[str, Evaluation]:
    """Compare every pair by exact Jaccard similarity of letter shingles, at the best bound on half 0."""
    shingles = [ngrams_of(page.text) for page in stream.pages]
    nearest: list[tuple[float, int]] = []
    holders: dict[int, list[int]] = {}
    for at, values in enumerate(shingles):
        common = np.zeros(at + 1, dtype=np.int64)
        for value in values.tolist():
            held = holders.setdefault(value, [])
            common[held] += 1
            held.append(at)
        sizes = np.array([len(shingles[i]) for i in range(at)], dtype=np.int64)
        shares = common[:at] / (sizes + len(values) - common[:at]) if at else np.zeros(1)
        nearest.append((float(shares.max()), int(shares.argmax())))
    bounds = [round(0.30 + 0.05 * step, 2) for step in range(12)]

    def flagged(bound: float) -> dict[str, str]:
        return {stream.pages[i].id: stream.pages[j].id for i, (share, j) in enumerate(nearest) if share >= bound}

    best = max(bounds, key=lambda bound: score_stream(stream.truth, flagged(bound), half=0).f1)
    return f"exact Jaccard ≥ {best:.2f}", score_stream(stream.truth, flagged(best), half=1)


def table_of(title: str) -> Table:
    """Return an empty table with a column for each figure."""
    table = Table(title=title)
    for heading in ("contender", "P", "R", "F1", "S1 / S2 / S3", "false drops: " + " / ".join(KINDS)):
        table.add_column(heading, no_wrap=True)
    return table


def add(table: Table, name: str, result: Evaluation) -> None:
    """Add a row of figures."""
    strengths = " / ".join(f"{result.recall_by[name].value:.2f}" for name in STRENGTHS)
    drops = " / ".join(f"{result.drops_by[kind].hits} of {result.drops_by[kind].total}" for kind in KINDS)
    table.add_row(name, f"{result.precision:.3f}", f"{result.recall:.3f}", f"{result.f1:.3f}", strengths, drops)


def by_language(language: str, arguments: argparse.Namespace, console: Console) -> list[str]:
    """Print the table of one language and return its row of the summary."""
    stream = stream_of(language, arguments.seed)
    fingerprinter = build_fingerprinter(SpaceOptions(unspaced=arguments.unspaced))
    prepared, speed = prepared_by(fingerprinter, stream)
    results = {
        name: score_stream(stream.truth, decide(prepared, profile), half=1) for name, profile in PROFILES.items()
    }
    channels = {channel: list(by_channel(stream, prepared, channel)) for channel in ("words", "body")}
    for found in channels.values():
        results.update(found)
    bound, exact = by_jaccard(stream)
    results[bound] = exact
    letters_a_page = statistics.median(len(PageText("", page.text).letters) for page in stream.pages)
    table = table_of(f"{language}: {len(stream.pages)} pages of {letters_a_page:.0f} letters, {fingerprinter.space_id}")
    for name, result in results.items():
        add(table, name, result)
    console.print(table)
    balanced = results["balanced"]
    figures = [balanced.precision, balanced.recall, balanced.f1, exact.f1]
    figures.append(results["simhash"].f1)
    figures += [channels[channel][-1][1].f1 for channel in ("words", "body")]
    return [language, *(f"{figure:.3f}" for figure in figures), f"{speed:,.0f}"]


def main() -> None:
    """Print a table for each language, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=LANGUAGES, action="append", help="may be repeated (default: all)")
    parser.add_argument("--seed", type=int, default=6, help="seed of the pages (default: 6)")
    parser.add_argument("--unspaced", choices=["icu", "pairs"], default="pairs", help="of scripts without spaces")
    arguments = parser.parse_args()
    console = Console(width=160)
    headings = ("language", "balanced P", "R", "F1", "exact Jaccard F1", "simhash F1", "words F1", "body F1", "pages/s")
    summary = Table(*headings, title="profile balanced and exact Jaccard; distance alone, each channel at its best k")
    for language in arguments.language or LANGUAGES:
        summary.add_row(*by_language(language, arguments, console))
    console.print(summary)


if __name__ == "__main__":
    main()
