"""The kept pages nearest to a page, found by looking at all of them.

Not through the indexes: whoever asks why a page was kept wants to see also what they did not bring. One pass over all
entries takes distances and shared keys, 0.3 s a million, and the best are compared by their evidence.
Invariant: the entries are read only, piece by piece, and never copied in one piece.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_arrays import HeldChunk, HeldEntries
from dedup_service.core.decision.entry_rows import entry_of
from dedup_service.core.evidence.packed import Evidence, shared_keys
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.kernels import long_kernel, popcount
from dedup_service.core.page import Fingerprint

__all__ = ["nearest"]

_LOOKED_AT = 64
"""Of a piece, compared by evidence. What shares no key and is far in both channels has little in common."""

_FAR = 65
_KEY = 8
"""Bits that a shared key is worth: with one in common of eight, an eighth of the shingles are, about."""


def nearest(held: HeldEntries, page: Entry, maximum: int) -> list[Entry]:
    """Return the `maximum` live entries most like `page`, without itself: by shared shingles, distance, age."""
    found: list[tuple[float, int, int, Entry]] = []
    evidence = Evidence(page.evidence)
    for chunk in held.chunks:
        for entry in _promising(chunk, page):
            if entry.sequence == page.sequence:
                continue
            distance = entry.distance_to(Fingerprint(page.words, page.body))
            jaccard = Similarity(Evidence(entry.evidence), evidence).jaccard
            bits = min(_FAR if at is None else at for at in (distance.words, distance.body))
            found.append((-jaccard, bits, entry.sequence, entry))
        found = sorted(found, key=lambda at: at[:3])[:maximum]
    return [entry for *_, entry in found]


def _promising(chunk: HeldChunk, page: Entry) -> Iterator[Entry]:
    """Yield the live entries of a piece with most keys in common and the smallest distance."""
    rows = chunk.rows
    if not len(rows):
        return
    sizes = rows["evidence_bytes"].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    far = np.full(len(rows), _FAR, np.int64)
    for channel, mark in (("words", 1), ("body", 2)):
        value = page.channel(channel)
        if value is not None:
            there = (rows["flags"] & mark) > 0
            bits = distances(np.ascontiguousarray(rows[channel]), np.uint64(value))
            far = np.where(there, np.minimum(far, bits), far)
    keys = Evidence(page.evidence).keys
    far -= _KEY * shared_keys(chunk.evidence, starts, sizes, np.unique(keys[keys > 0]))
    if chunk.alive is not None:
        far[~chunk.alive] = _FAR + 1
    for at in np.argsort(far, kind="stable")[: _LOOKED_AT + 1].tolist():
        if chunk.alive is None or chunk.alive[at]:
            yield entry_of(rows[at].item(), chunk.evidence, int(starts[at]))


@long_kernel
def distances(fingerprints: npt.NDArray[np.uint64], one: np.uint64) -> npt.NDArray[np.int64]:
    """Return the distance in bits of each of uint64[n] to one: int64[n]."""
    found = np.empty(len(fingerprints), np.int64)
    for at in range(len(fingerprints)):
        found[at] = popcount(fingerprints[at] ^ one)
    return found
