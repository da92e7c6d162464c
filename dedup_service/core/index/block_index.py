"""The block index: finds every entry within a radius of a fingerprint.

A fingerprint is four blocks of 16 bits, with a table for each: a bucket has the entries that share a block. An entry of
a bucket is its *lane*, the next block, and its row, so that a probe looks at the fingerprints of few rows. For each
radius it is known how many bits of block and lane may differ in each table, so that one table at least finds every
pair within the radius. A crowded bucket is split again by the bits in which its fingerprints differ.

Invariants: an entry is a pair (row, fingerprint), a row has one fingerprint. Answers depend on the entries alone, not
on the order or the way in which they were inserted. Not thread-safe: one thread at a time, reading or writing.

Source: Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007; `native/src/tables/hamming.rs`
has the others.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service._native import HammingIndex
from dedup_service.core.errors import ConfigurationError

MAX_RADIUS = 7
MAX_ROW = (1 << 32) - 2
"""The largest row."""

_BITS = 64
_NO_LIMIT = (1 << 63) - 1


@dataclass(frozen=True, slots=True, eq=False)
class ProbeResult:
    """The candidates of one probe, sorted by (distance, sequence), each once.

    sequences: int64[m]; distances: uint8[m], in bits.
    """

    sequences: npt.NDArray[np.int64]
    distances: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.sequences)


@dataclass(frozen=True, slots=True, eq=False)
class BatchProbeResult:
    """The candidates of n probes, end to end; those of probe i are at offsets[i]:offsets[i + 1].

    offsets: int64[n + 1]; sequences: int64[m]; distances: uint8[m].
    """

    offsets: npt.NDArray[np.int64]
    sequences: npt.NDArray[np.int64]
    distances: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        """Return the number of probes."""
        return len(self.offsets) - 1

    def __getitem__(self, probe: int) -> ProbeResult:
        """Return the candidates of one probe, 0 <= probe < n; IndexError outside."""
        if not 0 <= probe < len(self):
            raise IndexError(f"probe {probe} of a batch of {len(self)}")
        candidates = slice(self.offsets[probe], self.offsets[probe + 1])
        return ProbeResult(self.sequences[candidates], self.distances[candidates])


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """Sizes of the block index.

    entries: (row, fingerprint) pairs; fingerprints: distinct ones, which buckets store once. bytes: memory reserved.
    largest_bucket: entries of the longest list that one probe may scan; split_buckets: second levels. buckets: of one
    table.
    """

    entries: int
    fingerprints: int
    bytes: int
    largest_bucket: int
    split_buckets: int
    buckets: int = 1 << 16


@dataclass(frozen=True, slots=True)
class WorkCounters:
    """The work of all probes since the index was made: a cost that no machine changes.

    probes: fingerprints probed; buckets: read; entries: lanes compared.
    """

    probes: int
    buckets: int
    entries: int


class BlockIndex:
    """Entries (row number, 64-bit fingerprint), found by Hamming distance.

    radius: 0 to 7 bits. native: what is in it to begin with.

    >>> index = BlockIndex(3)
    >>> index.insert(1, 0b1000)
    >>> index.probe(0b1011).distances
    array([2], dtype=uint8)
    """

    __slots__ = ("_native", "_radius")

    def __init__(self, radius: int, native: HammingIndex | None = None) -> None:
        if not 0 <= radius <= MAX_RADIUS:
            raise ConfigurationError(
                f"radius {radius} is outside 0..{MAX_RADIUS}, which four 16-bit blocks search exactly; choose another"
            )
        self._radius = radius
        self._native = HammingIndex() if native is None else native

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._native)

    @property
    def radius(self) -> int:
        """The distance, in bits, up to which a probe finds every entry."""
        return self._radius

    def insert(self, row: int, fingerprint: int) -> None:
        """Add an entry.

        row: 0 to `MAX_ROW`; fingerprint: 0 to 2**64 - 1; ConfigurationError outside. Several rows may have one
        fingerprint. Raises StateError if the row is in the index already.
        """
        self.insert_many(*_one(row, fingerprint))

    def insert_many(self, rows: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add entries, faster than one by one.

        rows: int64[n], in any order; fingerprints: uint64[n]. Raises like `insert`; then none was added.
        """
        self._native.insert(*_checked_arrays(rows, fingerprints))

    def remove(self, row: int, fingerprint: int) -> None:
        """Remove an entry; StateError if this pair of row and fingerprint is not in the index."""
        self.remove_many(*_one(row, fingerprint))

    def remove_many(self, rows: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        """Remove entries, faster than one by one; arguments as for `insert_many`.

        Raises StateError if one of them is not in the index; then none was removed.
        """
        self._native.remove(*_checked_arrays(rows, fingerprints))

    def probe(self, fingerprint: int) -> ProbeResult:
        """Return every entry within the radius of a fingerprint; ConfigurationError outside 64 bits."""
        return self.probe_many(_one(0, fingerprint)[1])[0]

    def probe_many(
        self, fingerprints: npt.NDArray[np.uint64], *, most_identical: int | None = None
    ) -> BatchProbeResult:
        """Return the candidates of each of fingerprints: uint64[n]; the same as n probes, faster.

        most_identical: of the entries that have one fingerprint, return so many at most, those with the smallest
        rows. Without it, n probes of n identical entries have n * n candidates.
        ConfigurationError below 1.
        """
        if most_identical is not None and most_identical < 1:
            raise ConfigurationError(f"most_identical is {most_identical}; give 1 or more")
        found = self._native.probe(np.asarray(fingerprints, np.uint64), self._radius, most_identical or _NO_LIMIT)
        return BatchProbeResult(
            np.frombuffer(found.offsets, np.int64),
            np.frombuffer(found.rows, np.uint32).astype(np.int64),
            np.frombuffer(found.distances, np.uint8),
        )

    def statistics(self) -> IndexStatistics:
        """Return the present sizes; reads the header of each bucket (some ms)."""
        return IndexStatistics(*self._native.statistics())

    def work(self) -> WorkCounters:
        """Return the cost of all probes so far."""
        return WorkCounters(*self._native.work())


def _one(row: int, fingerprint: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    rows = np.array([_checked(row, MAX_ROW, "row")], np.int64)
    return rows, np.array([_checked(fingerprint, (1 << _BITS) - 1, "fingerprint")], np.uint64)


def _checked(value: int, most: int, name: str) -> int:
    if not 0 <= value <= most:
        raise ConfigurationError(f"{name} {value} is outside 0..{most}")
    return value


def _checked_arrays(rows: Any, fingerprints: Any) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    if rows.shape != fingerprints.shape or rows.ndim != 1:
        raise ConfigurationError(
            f"rows have shape {rows.shape}, fingerprints {fingerprints.shape}; give two arrays of one length"
        )
    if fingerprints.dtype != np.uint64 or rows.dtype != np.int64:
        raise ConfigurationError(f"rows are {rows.dtype}, fingerprints {fingerprints.dtype}; give int64 and uint64")
    for row in (rows.min(initial=0), rows.max(initial=0)):
        _checked(int(row), MAX_ROW, "row")
    return rows.astype(np.uint32), fingerprints
