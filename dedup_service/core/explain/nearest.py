"""The kept pages nearest to a page, from a scan of all of them.

The indexes are not used: an explanation should also show pages that they did not find. One pass over all
entries takes distances and the first bits of the sketches, 0.3 s for a million, and the best candidates are
compared by their evidence.
Invariant: entries are only read, and copied piece by piece.
"""

from dedup_service._native import Entry, HostText, promising
from dedup_service.core.decision.entries import distance_between
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.host_sentences import common_of_pair

_COMPARED = 64
"""Entries of a piece that are compared by evidence; others are far in both channels and in their sketches."""

_FAR = 65
"""Distance where a fingerprint is absent: more than any real one."""


def nearest(held: HeldEntries, page: Entry, limit: int, host_text: HostText) -> list[Entry]:
    """Return the `limit` live entries nearest to `page`, but not itself: by shingles, distance, age.

    host_text: says which sentences do not count.
    """
    found: list[tuple[float, int, int, Entry]] = []
    evidence = Evidence(page.evidence)
    for piece in held:
        for place in promising(piece, page, _COMPARED + 1):
            entry = piece[place]
            if entry.sequence == page.sequence:
                continue
            distance = distance_between(entry, page)
            common = common_of_pair(host_text, page, entry)
            jaccard = Similarity(Evidence(entry.evidence), evidence, common=common).jaccard
            bits = min(_FAR if bits is None else bits for bits in (distance.words, distance.body))
            found.append((-jaccard, bits, entry.sequence, entry))
        found = sorted(found, key=lambda row: row[:3])[:limit]
    return [entry for *_, entry in found]
