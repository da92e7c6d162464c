"""Size of each cluster of duplicates: estimated pages, hosts and other titles of a kept page's copies.

Each cluster takes 48 bytes (three sketches of `core.decision.hyperloglog`), about 155 with its place in the
dictionary. Their number is bounded: beyond the bound the quarter that grew least recently is forgotten at
once. A cluster that collapses grows all the time and is never among them.
Invariant: the same copies give the same clusters, from the beginning or from the bytes of `pack` in between.
"""

import struct
from itertools import islice
from typing import NamedTuple, Self

import numpy as np

from dedup_service.core.decision.hyperloglog import EMPTY, SKETCH_BYTES, estimate, with_value

__all__ = ["ClusterSizes", "Copy", "DuplicateClusters"]

MAX_CLUSTERS = 1 << 17
"""20 MB of memory. A cluster is forgotten once 100,000 others have grown: after a million pages or so."""

_NEW = (EMPTY, EMPTY, EMPTY)
_ROW = np.dtype([("original", "<i8"), ("sketches", f"V{3 * SKETCH_BYTES}")])


class Copy(NamedTuple):
    """A page that matched the kept page at sequence `original`.

    url, host: hashes, unsigned 64-bit. title: the hash of its title; None if that is about the kept page's.
    """

    original: int
    url: int
    host: int
    title: int | None

    def pack(self) -> bytes:
        """Return the copy as 24 or 32 bytes, as the journal stores it."""
        return struct.pack(
            f"<q{len(self) - 1 - (self.title is None)}Q", *(value for value in self if value is not None)
        )

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the copy that `pack` wrote."""
        original, url, host, *title = struct.unpack(f"<q{len(packed) // 8 - 1}Q", packed)
        return cls(original, url, host, title[0] if title else None)


class ClusterSizes(NamedTuple):
    """Estimated numbers of different pages, hosts and other titles among the copies of a kept page."""

    pages: int
    hosts: int
    titles: int


class DuplicateClusters:
    """Clusters by the sequence of their kept page. packed: from `pack`. max_clusters: how many to keep."""

    def __init__(self, packed: bytes = b"", max_clusters: int = MAX_CLUSTERS) -> None:
        self._max_clusters = max_clusters
        rows = np.frombuffer(packed, _ROW)
        self._clusters: dict[int, bytes] = dict(zip(rows["original"].tolist(), rows["sketches"].tolist(), strict=True))

    def __len__(self) -> int:
        return len(self._clusters)

    def add(self, copy: Copy) -> ClusterSizes:
        """Add a copy to its cluster and return the new sizes."""
        old = self._clusters.pop(
            copy.original, None
        )  # re-inserted at the end: the dictionary is ordered by the last growth
        pages, hosts, titles = _NEW if old is None else (old[:16], old[16:32], old[32:])
        pages, hosts = with_value(pages, copy.url), with_value(hosts, copy.host)
        titles = titles if copy.title is None else with_value(titles, copy.title)
        self._clusters[copy.original] = pages + hosts + titles
        if len(self._clusters) > self._max_clusters:
            for stale in list(islice(self._clusters, self._max_clusters // 4 or 1)):
                del self._clusters[stale]
        return ClusterSizes(estimate(pages), estimate(hosts), estimate(titles))

    def drop(self, original: int) -> None:
        """Forget the cluster of a kept page, if it has one."""
        self._clusters.pop(original, None)

    def pack(self) -> bytes:
        """Return all clusters as bytes, 56 each."""
        rows = np.empty(len(self._clusters), _ROW)
        rows["original"] = np.fromiter(self._clusters, np.int64, len(self._clusters))
        rows["sketches"] = np.frombuffer(b"".join(self._clusters.values()), _ROW["sketches"])
        return rows.tobytes()
