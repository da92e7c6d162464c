"""Tables of the verdicts by pages kept and by template (`scale`)."""

from collections.abc import Iterable

import numpy as np

from benchmarks.quality.numbers import counted, figure, table
from benchmarks.quality.scale import AGES, PLACES, Arrays, ScaleRow

KINDS = ("unrelated", "hardneg_topic", "hardneg_xwlb", "hardneg_law", "hardneg_list")


def copies_table(rows: Iterable[ScaleRow]) -> str:
    """Return the copies found, and the different pages called duplicates."""
    lines = []
    for row in rows:
        cells = [" / ".join(str(row.found[age, where].hits) for age in AGES) for where in PLACES]
        merged = f"{row.merged.hits:,} ({100 * row.merged.value:.2f}%)"
        refused = f"{row.undecided:,}"
        lines.append([row.crawl.name, f"{row.crawl.share:g}", f"{row.size:,}", *cells, merged, refused])
    places = [f"found of 100, {where}" for where in PLACES]
    return table(["crawl", "template", "pages", *places, "different pages merged", "refused by guards"], lines)


def work_table(rows: Iterable[ScaleRow]) -> str:
    """Return the candidates, and the pieces of evidence read, of the latest tenth of the pages."""
    lines = []
    for row in rows:
        cells = [_spread(values) for values in (row.work.candidates, row.work.read)]
        lines.append([row.crawl.name, f"{row.crawl.share:g}", f"{row.size:,}", *cells])
    unit = "p50 / p99 / most / mean"
    return table(["crawl", "template", "pages", f"candidates: {unit}", f"evidence read: {unit}"], lines)


def _spread(values: Arrays) -> str:
    p50, p99 = np.percentile(values, (50, 99))
    return f"{p50:.0f} / {p99:.0f} / {values.max():,} / {values.mean():.2f}"


def stream_table(rows: Iterable[ScaleRow]) -> str:
    """Return the scores of the stream by pages kept before it, of half 1."""
    lines = []
    for row in rows:
        if row.stream is not None:
            found = row.stream[1]
            values = map(figure, (found.precision, found.recall))
            strengths = " / ".join(figure(found.recall_by[f"strength {name}"].value) for name in ("S1", "S2", "S3"))
            drops = " / ".join(counted(found.drops_by.get(kind)) for kind in KINDS)
            lines.append([f"{row.size:,}", *values, strengths, drops])
    drops = "false drops: unrelated / topic / daily news / laws / lists"
    return table(["pages before the stream", "P", "R", "S1 / S2 / S3", drops], lines)
