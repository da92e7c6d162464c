"""The native index of fingerprints, with lists for buffers."""

from array import array
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from dedup_service._native import HammingIndex
from dedup_service.core.index import IndexStatistics

NO_LIMIT = (1 << 63) - 1


class Work(NamedTuple):
    """The work of all probes so far: fingerprints probed, buckets read, lanes compared."""

    probes: int
    buckets: int
    entries: int


class BlockIndex:
    """Rows by a fingerprint, found up to a radius in bits."""

    def __init__(self, radius: int) -> None:
        self._radius = radius
        self._native = HammingIndex()

    def __len__(self) -> int:
        return len(self._native)

    def insert(self, row: int, fingerprint: int) -> None:
        """Add a row."""
        self.insert_many([row], [fingerprint])

    def insert_many(self, rows: Iterable[int], fingerprints: Iterable[int]) -> None:
        """Add rows."""
        self._native.insert(array("I", rows), array("Q", fingerprints))

    def remove(self, row: int, fingerprint: int) -> None:
        """Remove a row."""
        self.remove_many([row], [fingerprint])

    def remove_many(self, rows: Iterable[int], fingerprints: Iterable[int]) -> None:
        """Remove rows."""
        self._native.remove(array("I", rows), array("Q", fingerprints))

    def probe(self, fingerprint: int) -> list[tuple[int, int]]:
        """Return the distance and row of what is found."""
        return self.probe_many([fingerprint])[0]

    def probe_many(self, fingerprints: Iterable[int], most_identical: int = NO_LIMIT) -> list[list[tuple[int, int]]]:
        """Return what is found for each of some fingerprints; of equal ones, so many with the smallest rows."""
        found = self._native.probe(array("Q", fingerprints), self._radius, most_identical)
        pairs = list(zip(found.distances, array("I", found.rows), strict=True))
        return [pairs[start:end] for start, end in pairwise(array("q", found.offsets))]

    def statistics(self) -> IndexStatistics:
        """Return the present sizes."""
        return IndexStatistics(*self._native.statistics())

    def work(self) -> Work:
        """Return the work of all probes so far."""
        return Work(*self._native.work())
