"""The block index: finds every entry within a fixed radius of a fingerprint.

Two layouts, with the same answers. `compact` serves radii up to 3 (`block_compact`): two halves of 32 bits, some 35
bytes a fingerprint; it grows without a pause. `seed` serves radii up to 7: four blocks of 16 bits (`block_seed`).

Invariants: an entry is a pair (row, fingerprint) and is stored once. Answers depend on the entries
alone, not on the order or the way in which they were inserted. Not thread-safe: one thread at a time,
reading or writing.

Source: Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007; `block_layout` has
the others.
"""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.index.block_compact import HOT_ENTRIES, MAX_ROW, CompactLayout
from dedup_service.core.index.block_halves_write import MAX_COMPACT_RADIUS
from dedup_service.core.index.block_layout import MAX_RADIUS
from dedup_service.core.index.block_seed import MIN_SPLIT, SeedLayout
from dedup_service.core.index.probe_result import BatchProbeResult, IndexStatistics, ProbeResult, WorkCounters, arranged
from dedup_service.core.kernels import kernel

BITS = 64
NO_LIMIT = 1 << 62
_NO_CANDIDATES = ProbeResult(np.empty(0, np.int64), np.empty(0, np.uint8))

Layout = Literal["compact", "seed"]
_BY_LAYOUT = -1


class BlockIndex:
    """Entries (row number, 64-bit fingerprint), found by Hamming distance.

    >>> index = BlockIndex(3)
    >>> index.insert(1, 0b1000)
    >>> index.probe(0b1011).distances
    array([2], dtype=uint8)
    """

    __slots__ = ("_entries", "_layout", "_one_fingerprint", "_one_row", "_radius")

    def __init__(self, radius: int, *, layout: Layout | None = None, min_split: int | None = _BY_LAYOUT) -> None:
        """Make an empty index, exact within `radius` bits.

        layout: None chooses `compact` up to radius 3, else `seed`. min_split: entries above which a crowded bucket may
        get a second level; None: no bucket does, and probes of hot buckets are slower; by default what the layout does
        best with. Answers are the same for any value of these.

        Raises ConfigurationError for a radius outside 0..7, or `compact` above 3.
        """
        if not 0 <= radius <= MAX_RADIUS:
            raise ConfigurationError(
                f"radius {radius} is outside 0..{MAX_RADIUS}, which four 16-bit blocks search exactly; choose another"
            )
        self._layout: Layout = layout or ("compact" if radius <= MAX_COMPACT_RADIUS else "seed")
        if self._layout == "compact" and radius > MAX_COMPACT_RADIUS:
            raise ConfigurationError(
                f"the compact layout is exact up to radius {MAX_COMPACT_RADIUS}, not {radius}; choose the layout seed"
            )
        self._radius = radius
        self._entries: CompactLayout | SeedLayout
        if self._layout == "compact":
            self._entries = CompactLayout(radius, hot_entries=HOT_ENTRIES if min_split == _BY_LAYOUT else min_split)
        else:
            self._entries = SeedLayout(radius, min_split=MIN_SPLIT if min_split == _BY_LAYOUT else min_split)
        self._one_row = np.zeros(1, np.int64)
        self._one_fingerprint = np.zeros(1, np.uint64)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    @property
    def radius(self) -> int:
        """The distance, in bits, up to which a probe finds every entry."""
        return self._radius

    @property
    def layout(self) -> Layout:
        """How fingerprints are stored."""
        return self._layout

    def reserve(self, entries: int) -> None:
        """Prepare an empty index for so many entries: they are inserted faster, and take the same memory."""
        if isinstance(self._entries, CompactLayout):
            self._entries.reserve(entries)

    def insert(self, row: int, fingerprint: int) -> None:
        """Add an entry.

        row: 0 to `MAX_ROW`; fingerprint: 0 to 2**64 - 1; ConfigurationError outside. Several rows may have one
        fingerprint. Raises StateError if this pair is in the index already.
        """
        self._check(row, fingerprint)
        self._entries.insert(self._one_row, self._one_fingerprint)

    def insert_many(self, rows: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add entries, faster than one by one.

        rows: int64[n], in any order; fingerprints: uint64[n]. Raises like `insert`; then none was added.
        """
        self._entries.insert(*_checked_arrays(rows, fingerprints))

    def fill(self, entries: int, pieces: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]]) -> None:
        """Add about so many entries: the same as `reserve` and `insert_many` for each piece, faster.

        pieces: rows and fingerprints, as for `insert_many`. Raises like it; then the index is of no use.
        """
        if isinstance(self._entries, SeedLayout):
            for rows, fingerprints in pieces:
                self.insert_many(rows, fingerprints)
            return
        filling = self._entries.filling(entries)
        for rows, fingerprints in pieces:
            filling.add(*_checked_arrays(rows, fingerprints))
        filling.end()

    def remove(self, row: int, fingerprint: int) -> None:
        """Remove an entry; StateError if this pair of row and fingerprint is not in the index."""
        self._check(row, fingerprint)
        if not self._entries.remove(self._one_row, self._one_fingerprint):
            raise _absent(row, fingerprint)

    def remove_many(self, rows: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        """Remove entries, faster than one by one; arguments as for `insert_many`.

        Raises StateError if one of them is not in the index; then none was removed.
        """
        rows, fingerprints = _checked_arrays(rows, fingerprints)
        removed = self._entries.remove(rows, fingerprints)
        if removed < len(rows):
            self._entries.insert(rows[:removed], fingerprints[:removed])
            raise _absent(int(rows[removed]), int(fingerprints[removed]))

    def probe(self, fingerprint: int) -> ProbeResult:
        """Return every entry within the radius of a fingerprint; ConfigurationError outside 64 bits."""
        self._one_fingerprint[0] = _checked(fingerprint, (1 << BITS) - 1, "fingerprint")
        _, sequences, distances = self._entries.probe(self._one_fingerprint, NO_LIMIT)
        if not len(sequences):
            return _NO_CANDIDATES
        order = np.lexsort((sequences, distances))
        return ProbeResult(sequences[order], distances[order])

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
        fingerprints = np.array(fingerprints, np.uint64, order="C")
        limit = NO_LIMIT if most_identical is None else most_identical
        query, sequence, distance = self._entries.probe(fingerprints, limit)
        return arranged(query, sequence, distance, len(fingerprints))

    def statistics(self) -> IndexStatistics:
        """Return the present sizes; reads 65,536 bucket headers of each table (some ms)."""
        return IndexStatistics(
            entries=len(self),
            fingerprints=self._entries.distinct,
            bytes=self._entries.size_bytes,
            largest_bucket=self._entries.largest_bucket,
            split_buckets=self._entries.split_buckets,
            buckets=self._entries.buckets,
        )

    def work(self) -> WorkCounters:
        """Return the cost of all probes so far."""
        probes, buckets, entries = self._entries.work
        return WorkCounters(probes=probes, buckets=buckets, entries=entries)

    def _check(self, row: int, fingerprint: int) -> None:
        """Check both values, and put them where kernels read them."""
        self._one_row[0] = _checked(row, MAX_ROW, "row")
        self._one_fingerprint[0] = _checked(fingerprint, (1 << BITS) - 1, "fingerprint")


def _checked_arrays(rows: Any, fingerprints: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return both in the form that kernels take, rows ascending."""
    if rows.shape != fingerprints.shape or rows.ndim != 1:
        raise ConfigurationError(
            f"rows have shape {rows.shape}, fingerprints {fingerprints.shape}; give two arrays of one length"
        )
    if fingerprints.dtype != np.uint64 or rows.dtype != np.int64:
        raise ConfigurationError(f"rows are {rows.dtype}, fingerprints {fingerprints.dtype}; give int64 and uint64")
    if not len(rows):
        return rows, fingerprints
    rows, fingerprints = np.array(rows, order="C"), np.array(fingerprints, order="C")
    ascend, least, most = _span(rows)
    if least < 0:
        raise ConfigurationError(f"row {least} is negative; number rows from 0")
    if most > MAX_ROW:
        raise ConfigurationError(f"row {most} is above {MAX_ROW}, the largest row number")
    if ascend:
        return rows, fingerprints
    order = np.argsort(rows, kind="stable")
    return rows[order], fingerprints[order]


@kernel
def _span(rows: npt.NDArray[np.int64]) -> tuple[bool, int, int]:
    """Return whether rows ascend, the smallest and the largest one, in one pass."""
    ascend, least, most = True, rows[0], rows[0]
    for at in range(1, len(rows)):
        ascend &= rows[at] >= rows[at - 1]
        least, most = min(least, rows[at]), max(most, rows[at])
    return ascend, least, most


def _checked(value: int, most: int, name: str) -> int:
    if not 0 <= value <= most:
        raise ConfigurationError(f"{name} {value} does not fit in unsigned {most.bit_length()} bits")
    return value


def _absent(row: int, fingerprint: int) -> StateError:
    return StateError(
        f"row {row} with fingerprint {fingerprint} is not in the index; "
        "remove with the fingerprint that was inserted, once"
    )
