"""Greedy deduplication by any measure: a page is kept if and only if no earlier kept page is similar.

The rules of the filter without its code: a known URL is not a duplicate; an update replaces its predecessor;
of several similar kept pages the most similar one is the original, the earliest of equals.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.quality.edges import Edges
from dedup_service.core.page import PreparedPage


def greedy_dedup(pages: Sequence[PreparedPage], edges: Edges) -> dict[str, str]:
    """Return page id → id of its original, or of the earlier visit of its URL. pages: in stream order."""
    kept = np.zeros(len(pages), dtype=np.bool_)
    visits: dict[str, int] = {}
    named: dict[str, str] = {}
    starts = np.searchsorted(edges.later, np.arange(len(pages) + 1))
    for at, prepared in enumerate(pages):
        if prepared.body_hash is None:
            continue
        url = prepared.page.canonical_url
        visit = visits.get(url)
        if visit is not None:
            named[prepared.page.id] = pages[visit].page.id
            if pages[visit].body_hash != prepared.body_hash:
                kept[visit], kept[at], visits[url] = False, True, at
            continue
        alike = _most_similar(edges, starts[at], starts[at + 1], kept)
        if alike is not None:
            named[prepared.page.id] = pages[alike].page.id
        else:
            kept[at], visits[url] = True, at
    return named


def _most_similar(edges: Edges, begin: int, end: int, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    if begin == end:
        return None
    earlier, likeness = edges.earlier[begin:end], edges.likeness[begin:end]
    still_kept = kept[earlier]
    if not still_kept.any():
        return None
    earlier, likeness = earlier[still_kept], likeness[still_kept]
    return int(earlier[likeness == likeness.max()].min())
