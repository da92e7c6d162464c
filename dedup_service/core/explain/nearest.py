"""The kept pages nearest to a page, from a scan of all of them.

The indexes are not used: an explanation should also show pages that they did not find. One pass over all
entries takes distances and the first bits of the sketches, 0.3 s for a million, and the best candidates are
compared by their evidence.
Invariant: entries are only read, and copied piece by piece.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dedup_service._native import HostText
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows, channel_flag, entry_of
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.evidence.packed import BITS, Evidence, equal_sketch_bits
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.host_sentences import common_of_pair
from dedup_service.core.page import CHANNELS, Fingerprint

_COMPARED = 64
"""Entries of a piece that are compared by evidence; others are far in both channels and in their sketches."""

_FAR = 65
"""Distance where a fingerprint is absent: more than any real one."""

_SKETCH_BYTES = 32
"""Bytes of a sketch that are looked at: at J = 0, half of the 256 bits are equal, give or take 8."""

_CHANCE = 4 * _SKETCH_BYTES + 24
"""Equal bits of two sketches that share nothing, at most: three standard errors above the half."""


def nearest(held: HeldEntries, page: Entry, limit: int, host_text: HostText) -> list[Entry]:
    """Return the `limit` live entries nearest to `page`, but not itself: by shingles, distance, age.

    host_text: says which sentences do not count.
    """
    found: list[tuple[float, int, int, Entry]] = []
    evidence = Evidence(page.evidence)
    for piece in held:
        for entry in _promising(piece, page):
            if entry.sequence == page.sequence:
                continue
            distance = entry.distance_to(Fingerprint(page.words, page.body))
            common = common_of_pair(host_text, page, entry)
            jaccard = Similarity(Evidence(entry.evidence), evidence, common=common).jaccard
            bits = min(_FAR if bits is None else bits for bits in (distance.words, distance.body))
            found.append((-jaccard, bits, entry.sequence, entry))
        found = sorted(found, key=lambda row: row[:3])[:limit]
    return [entry for *_, entry in found]


def _promising(piece: EntryRows, page: Entry) -> Iterator[Entry]:
    """Yield the entries of a piece with the nearest sketches and the smallest distance."""
    rows, evidence = piece.rows, np.frombuffer(piece.evidence, np.uint8)
    starts = piece.evidence_starts
    far = np.full(len(rows), _FAR, np.int64)
    for channel in CHANNELS:
        value = page.channel(channel)
        if value is not None:
            present = (rows["flags"] & channel_flag(channel)) > 0
            bits = distances(rows[channel], np.uint64(value))
            far = np.where(present, np.minimum(far, bits), far)
    sketch = np.frombuffer(Evidence(page.evidence).sketch[:_SKETCH_BYTES], np.uint8)
    sizes = rows["evidence_bytes"].astype(np.int64)
    far -= np.maximum(equal_sketch_bits(evidence, starts, sizes, sketch) - _CHANCE, 0)
    for place in np.argsort(far, kind="stable")[: _COMPARED + 1].tolist():
        yield entry_of(rows[place].item(), evidence, int(starts[place]))


def distances(fingerprints: npt.NDArray[np.uint64], one: np.uint64) -> npt.NDArray[np.int64]:
    """Return the distance in bits of each of fingerprints: uint64[n] to one fingerprint, as int64[n]."""
    differing = np.ascontiguousarray(fingerprints ^ one).view(np.uint8)
    found: npt.NDArray[np.int64] = BITS[differing].reshape(-1, 8).sum(axis=1, dtype=np.int64)
    return found
