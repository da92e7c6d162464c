"""Tables of the verdicts by pages kept, by template and by length (`scale`, `short_copies`)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.quality.assembled import Overlap
from benchmarks.quality.numbers import counted, figure, table
from benchmarks.quality.scale import AGES, PLACES, Arrays, ScaleRow
from benchmarks.quality.short_copies import FORMS, ShortCopies

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


def overlap_table(found: Mapping[int, Overlap]) -> str:
    """Return how alike a page is to the nearest other page, by pages."""
    lines = []
    for size, overlap in found.items():
        p50, p99 = np.percentile(overlap.nearest, (50, 99))
        cells = (figure(value) for value in (p50, p99, overlap.nearest.max()))
        lines.append([f"{size:,}", f"{np.median(overlap.sharing):.0f}", *cells])
    headings = ["pages", "pages that share half a sentence, median", "nearest page: Jaccard, p50", "p99", "most"]
    return table(headings, lines)


def short_copies_table(rows: Sequence[ShortCopies]) -> str:
    """Return the exact copies that are called duplicates, by length and form."""
    lines = []
    for letters in dict.fromkeys(row.letters for row in rows):
        mine = {row.form: row for row in rows if row.letters == letters}
        merged = sum(row.merged.hits for row in mine.values())
        total = sum(row.merged.total for row in mine.values())
        cells = [f"{mine[form].found.hits} of {mine[form].found.total}" for form in FORMS]
        lines.append([f"{letters:,}", *cells, f"{merged} of {total:,}"])
    return table(["letters", *FORMS, "different texts merged"], lines)
