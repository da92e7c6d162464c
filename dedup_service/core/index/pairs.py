"""All pairs within a radius among some fingerprints: what a batch has in itself, before any of it is inserted.

Every pair is compared, by the loop that scans a bucket: 512 fingerprints take about 10 µs, 2,000 some 0.2 ms.
"""

import numpy as np

from dedup_service.core.index.instructions import popcount
from dedup_service.core.index.layout import Fingerprints, Integers
from dedup_service.core.index.scan import count_within
from dedup_service.core.kernels import kernel

__all__ = ["pairs_within"]

_FIRST_ROOM = 1024


def pairs_within(fingerprints: Fingerprints, radius: int) -> tuple[Integers, Integers]:
    """Return the places (later, earlier) of all pairs at most `radius` bits apart, by later, then earlier place.

    fingerprints: uint64[n]; both results are int64[m].
    """
    later, earlier = np.empty(_FIRST_ROOM, np.int64), np.empty(_FIRST_ROOM, np.int64)
    found = _all_pairs(fingerprints, radius, later, earlier)
    if found > _FIRST_ROOM:
        later, earlier = np.empty(found, np.int64), np.empty(found, np.int64)
        _all_pairs(fingerprints, radius, later, earlier)
    return later[:found], earlier[:found]


@kernel
def _all_pairs(fingerprints: Fingerprints, radius: int, later: Integers, earlier: Integers) -> int:
    """Write pairs while there is room; return how many there are."""
    found = 0
    for at in range(1, len(fingerprints)):
        fingerprint = fingerprints[at]
        if count_within(fingerprints, 0, at, fingerprint, radius) == 0:
            continue
        for before in range(at):
            if popcount(fingerprints[before] ^ fingerprint) <= radius:
                if found < len(later):
                    later[found] = at
                    earlier[found] = before
                found += 1
    return found
