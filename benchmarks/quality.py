"""Precision and recall of every scheme and channel, and what each factor does, over a labelled stream.

    python -m benchmarks.quality DIR [--json FILE]

DIR holds pages.jsonl and truth.jsonl of the evaluation stream. Each page is fingerprinted once per scheme,
then decided by the same `Decider` that `twinsieve filter` uses. The best k ≤ 7 is the one with the highest F1
on half 0; all figures printed are of half 1. Prints Markdown tables: docs/quality.md holds them.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.progress import track

from benchmarks.scoring import Score, read_lines, score
from dedup_service.core.decision import Decider
from dedup_service.core.fingerprint import PreparedPage
from dedup_service.core.page import Page
from dedup_service.core.profiles import rule_for
from dedup_service.core.rule import MatchRule, Near
from dedup_service.core.url import canonicalise
from dedup_service.core.verdict import VerdictKind
from dedup_service.core.weighting.schemes import SCHEMES
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

RADII = range(8)
ABLATIONS: dict[str, tuple[str, ...]] = {
    "twinsieve": ("idf", "title", "marker"),
    "zhang2020": ("idf", "title", "marker", "pos", "length"),
    "wang2019": ("idf", "length"),
}


class _Names:
    """Ids of the pages by sequence: all that a decision asks of a journal."""

    def __init__(self, pages: list[Page]) -> None:
        self._pages = pages

    def name(self, sequence: int) -> tuple[str, str]:
        page = self._pages[sequence - 1]
        return page.id, page.url


def load(folder: Path) -> tuple[list[Page], list[dict[str, Any]]]:
    """Return pages and truth in crawl order."""
    pages = [
        Page(
            url=row["url"],
            canonical_url=canonicalise(row["url"]),
            id=row["id"],
            title=row["title"],
            text=row["text"],
            lang=row["lang"],
        )
        for row in read_lines(folder / "pages.jsonl")
    ]
    return pages, list(read_lines(folder / "truth.jsonl"))


def prepare(pages: list[Page], options: SpaceOptions, label: str) -> list[PreparedPage]:
    """Fingerprint all pages in the space of `options`."""
    fingerprinter = build_fingerprinter(options)
    return [fingerprinter.prepare(page) for page in track(pages, description=label, transient=True)]


def decide(prepared: list[PreparedPage], rule: MatchRule) -> dict[str, str]:
    """Return page id → id of the page that it was called a duplicate of."""
    decider = Decider(rule, "benchmark", _Names([item.page for item in prepared]))
    flags = {}
    for sequence, item in enumerate(prepared, 1):
        verdict = decider.decide(sequence, item).verdict
        if verdict.kind is VerdictKind.DUPLICATE and verdict.duplicate_of is not None:
            flags[verdict.id] = verdict.duplicate_of
    return flags


def both_rules(k: int) -> MatchRule:
    """The two-channel rule with its first radii at `k`; the checked bound of `body` stays as it is by default."""
    checked = max((near.body or 0 for near in rule_for("both").conditions), default=k)
    return MatchRule((Near(body=k), Near(words=k, body=checked)))


def rows_for(
    label: str, prepared: list[PreparedPage], truth: list[dict[str, Any]], channels: Iterable[str]
) -> list[dict[str, Any]]:
    """Score `prepared` with each channel at k = 3 and at the k that is best on half 0."""
    rows = []
    for channel in channels:
        flags = {}
        for k in RADII:
            rule = both_rules(k) if channel == "both" else rule_for(channel, k=k)
            flags[k] = decide(prepared, rule)
        best = max(RADII, key=lambda k: score(truth, flags[k], 0).f1)
        rows += [
            {"scheme": label, "channels": channel, "k": k, "score": score(truth, flags[k], 1)}
            for k in dict.fromkeys((3, best))
        ]
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    drops = "false drops per 10,000: unrelated / topic / daily news / laws / lists"
    lines = [f"| scheme | channels | k | P | R | F1 | S1 / S2 / S3 | {drops} |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        result: Score = row["score"]
        strengths = " / ".join(f"{result.recall_by.get(name, 0):.2f}" for name in ("S1", "S2", "S3"))
        kinds = ("unrelated", "hardneg_topic", "hardneg_xwlb", "hardneg_law", "hardneg_list")
        drops = " / ".join(f"{result.false_drops.get(name, 0):.0f}" for name in kinds)
        numbers = f"{result.precision:.3f} | {result.recall:.3f} | {result.f1:.3f}"
        lines.append(f"| {row['scheme']} | {row['channels']} | {row['k']} | {numbers} | {strengths} | {drops} |")
    return "\n".join(lines)


def main() -> None:
    """Run the schemes, then the ablations, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write all rows here as well")
    arguments = parser.parse_args()
    pages, truth = load(arguments.folder)
    schemes: list[dict[str, Any]] = []
    ablation: list[dict[str, Any]] = []
    for name in SCHEMES:
        prepared = prepare(pages, SpaceOptions(scheme=name), name)
        channels = ("words", "body", "both") if name == "twinsieve" else ("words", "both")
        rows = rows_for(name, prepared, truth, channels)
        schemes += rows
        if name == "twinsieve":
            default = score(truth, decide(prepared, rule_for("both")), 1)
            schemes.append({"scheme": f"**{name}, `simhash`**", "channels": "both", "k": "–", "score": default})
        if name in ABLATIONS:
            ablation += [row for row in rows if row["channels"] == "words"]
            for factor in ABLATIONS[name]:
                without = prepare(pages, SpaceOptions(scheme=name, without=(factor,)), f"{name} − {factor}")
                ablation += rows_for(f"{name} without {factor}", without, truth, ("words", "both"))
    print(table(schemes), "\n\n", table(ablation), sep="")
    if arguments.json:
        values = [{**row, "score": asdict(row["score"])} for row in schemes + ablation]
        arguments.json.write_text(json.dumps(values, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
