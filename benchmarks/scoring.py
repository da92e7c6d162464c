"""Precision and recall of verdicts over a labelled stream, by the rules of the evaluation data.

Positives are variants of strength S1 to S3; a flag is right when the page it names is in the same group. A
flag on a page that has no duplicate is a false drop. Re-crawls of a URL and stronger edits are left out.
The data has two halves by group: thresholds are chosen on half 0, figures reported on half 1.
"""

import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCORED = ("S1", "S2", "S3")


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one run, recall by strength and false drops per 10,000 pages of each kind."""

    right: int
    wrong: int
    missed: int
    recall_by: Mapping[str, float] = field(default_factory=dict)
    false_drops: Mapping[str, float] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """Share of flags that are right."""
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        """Share of positives that are found."""
        return self.right / max(1, self.right + self.missed)

    @property
    def f1(self) -> float:
        """Their harmonic mean."""
        return 2 * self.right / max(1, 2 * self.right + self.wrong + self.missed)


def read_lines(path: Path) -> Iterator[Any]:
    """Yield the JSON values of a file of lines."""
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def score(truth: list[dict[str, Any]], named: Mapping[str, str], half: int | None = None) -> Score:
    """Score `named` (page id → id of the page it is called a duplicate of) against the truth."""
    groups = {row["id"]: row["group"] for row in truth}
    right = wrong = missed = 0
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    dropped: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in truth:
        counted = half is None or zlib.crc32(row["group"].encode()) & 1 == half
        if not counted or row["operator"].startswith("recrawl") or row["strength"] in ("S4", "S5"):
            continue
        of = named.get(row["id"])
        hit = of is not None and groups.get(of) == row["group"]
        if row["strength"] in SCORED:
            right, missed, wrong = right + hit, missed + (not hit), wrong + (of is not None and not hit)
            found[row["strength"]][0] += hit
            found[row["strength"]][1] += 1
        else:
            wrong += of is not None
            dropped[row["operator"]][0] += of is not None
            dropped[row["operator"]][1] += 1
    return Score(
        right,
        wrong,
        missed,
        {name: n / of for name, (n, of) in sorted(found.items())},
        {name: 1e4 * n / of for name, (n, of) in sorted(dropped.items())},
    )
