"""The block index: finds every entry within a fixed radius of a fingerprint.

How: S shards, each with the sequences that `block_shard.owner` assigns to it. A probe asks all shards and
merges the answers, which are therefore the same for any S.

Two layouts, with the same answers. `compact` serves radii up to 3 (`block_compact`): quarters of 16 bits up to 25
million fingerprints, then halves of 32 bits, with some 40 and 35 bytes a fingerprint; it grows without a pause. `seed`
serves radii up to 7: four blocks of 16 bits (`block_shard`).

Invariants: an entry is a pair (sequence, fingerprint) and is stored once. Answers depend on the entries
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
from dedup_service.core.index.block_compact import HOT_ENTRIES, MAX_ROW, QUARTERS, CompactShard
from dedup_service.core.index.block_halves import MAX_COMPACT_RADIUS
from dedup_service.core.index.block_layout import MAX_RADIUS
from dedup_service.core.index.block_quarters import MAX_ENTRIES
from dedup_service.core.index.block_shard import MIN_SPLIT, SeedShard, owner, owners
from dedup_service.core.index.probe_result import BatchProbeResult, IndexStatistics, ProbeResult, WorkCounters, arranged
from dedup_service.core.kernels import kernel

BITS = 64
NO_LIMIT = 1 << 62
_NO_CANDIDATES = ProbeResult(np.empty(0, np.int64), np.empty(0, np.uint8))

Layout = Literal["compact", "seed"]
_BY_LAYOUT = -1


class BlockIndex:
    """Entries (sequence, 64-bit fingerprint), found by Hamming distance.

    >>> index = BlockIndex(3)
    >>> index.insert(1, 0b1000)
    >>> index.probe(0b1011).distances
    array([2], dtype=uint8)
    """

    __slots__ = ("_layout", "_max_sequence", "_one_fingerprint", "_one_sequence", "_radius", "_shards")

    def __init__(
        self,
        radius: int,
        *,
        shards: int = 1,
        layout: Layout | None = None,
        rows: bool = False,
        min_split: int | None = _BY_LAYOUT,
        quarters: int = QUARTERS,
    ) -> None:
        """Make an empty index, exact within `radius` bits.

        shards: number of parts. layout: None chooses `compact` up to radius 3, else `seed`. rows: sequences are row
        numbers, 0 to `MAX_ROW`, which the compact layout stores as they are: 8 bytes an entry less. min_split: entries
        above which a crowded bucket may get a second level; None: no bucket does, and probes of hot buckets
        are slower; by default what the layout does best with. quarters: fingerprints of a shard above which the
        compact layout goes over to halves; 0: it has halves from the start. Answers are the same for any value
        of these.

        Raises ConfigurationError for a radius outside 0..7, `compact` above 3, or fewer than 1 shard.
        """
        if not 0 <= radius <= MAX_RADIUS:
            raise ConfigurationError(
                f"radius {radius} is outside 0..{MAX_RADIUS}, which four 16-bit blocks search exactly; choose another"
            )
        if shards < 1:
            raise ConfigurationError(f"{shards} shards cannot hold an index; give 1 or more")
        self._layout: Layout = layout or ("compact" if radius <= MAX_COMPACT_RADIUS else "seed")
        if self._layout == "compact" and radius > MAX_COMPACT_RADIUS:
            raise ConfigurationError(
                f"the compact layout is exact up to radius {MAX_COMPACT_RADIUS}, not {radius}; choose the layout seed"
            )
        self._radius = radius
        self._max_sequence = MAX_ROW if rows else (1 << (BITS - 1)) - 1
        self._shards: list[CompactShard | SeedShard]
        if self._layout == "compact":
            entries = HOT_ENTRIES if min_split == _BY_LAYOUT else min_split
            crowded = MAX_ENTRIES if min_split == _BY_LAYOUT or min_split is None else min_split
            self._shards = [
                CompactShard(radius, hot_entries=entries, crowded_entries=crowded, quarters=quarters, rows=rows)
                for _ in range(shards)
            ]
        else:
            entries = MIN_SPLIT if min_split == _BY_LAYOUT else min_split
            self._shards = [SeedShard(radius, min_split=entries) for _ in range(shards)]
        self._one_sequence = np.zeros(1, np.int64)
        self._one_fingerprint = np.zeros(1, np.uint64)

    def __len__(self) -> int:
        """Return the number of entries."""
        return sum(len(shard) for shard in self._shards)

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
        for shard in self._shards:
            if isinstance(shard, CompactShard):
                shard.reserve(entries // len(self._shards))

    def insert(self, sequence: int, fingerprint: int) -> None:
        """Add an entry.

        sequence: 0 to 2**63 - 1, or a row; fingerprint: 0 to 2**64 - 1; ConfigurationError outside.
        Several sequences may have one fingerprint. Raises StateError if this pair is in the index already.
        """
        shard = self._owner(sequence, fingerprint)
        shard.insert(self._one_sequence, self._one_fingerprint)

    def insert_many(self, sequences: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add entries, faster than one by one.

        sequences: int64[n] >= 0, in any order; fingerprints: uint64[n]. Raises like `insert`; then none was
        added.
        """
        sequences, fingerprints = self._checked_arrays(sequences, fingerprints)
        done: list[tuple[CompactShard | SeedShard, npt.NDArray[np.int64], npt.NDArray[np.uint64]]] = []
        for shard, some, stored in self._owned(sequences, fingerprints):
            try:
                shard.insert(some, stored)
            except StateError:
                for before, added, values in done:
                    before.remove(added, values)
                raise
            done.append((shard, some, stored))

    def fill(self, entries: int, pieces: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]]) -> None:
        """Add about so many entries: the same as `reserve` and `insert_many` for each piece, faster for rows.

        pieces: sequences and fingerprints, as for `insert_many`. Raises like it; then the index is of no use.
        """
        self.reserve(entries)
        if self._layout != "compact" or self._max_sequence != MAX_ROW:
            for sequences, fingerprints in pieces:
                self.insert_many(sequences, fingerprints)
            return
        each = -(-entries // len(self._shards))
        fills = {id(shard): shard.filling(each) for shard in self._shards if isinstance(shard, CompactShard)}
        for sequences, fingerprints in pieces:
            for shard, some, stored in self._owned(*self._checked_arrays(sequences, fingerprints)):
                filling = fills[id(shard)]
                if filling is None:
                    shard.insert(some, stored)
                else:
                    filling.add(some, stored)
        for filling in fills.values():
            if filling is not None:
                filling.end()

    def remove(self, sequence: int, fingerprint: int) -> None:
        """Remove an entry; StateError if this pair of sequence and fingerprint is not in the index."""
        shard = self._owner(sequence, fingerprint)
        if not shard.remove(self._one_sequence, self._one_fingerprint):
            raise _absent(sequence, fingerprint)

    def remove_many(self, sequences: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        """Remove entries, faster than one by one; arguments as for `insert_many`.

        Raises StateError if one of them is not in the index; then none was removed.
        """
        sequences, fingerprints = self._checked_arrays(sequences, fingerprints)
        done: list[tuple[CompactShard | SeedShard, npt.NDArray[np.int64], npt.NDArray[np.uint64]]] = []
        for shard, some, stored in self._owned(sequences, fingerprints):
            removed = shard.remove(some, stored)
            done.append((shard, some[:removed], stored[:removed]))
            if removed < len(some):
                for before, gone, values in done:
                    before.insert(gone, values)
                raise _absent(int(some[removed]), int(stored[removed]))

    def probe(self, fingerprint: int) -> ProbeResult:
        """Return every entry within the radius of a fingerprint; ConfigurationError outside 64 bits."""
        self._one_fingerprint[0] = _checked(fingerprint, (1 << BITS) - 1, "fingerprint")
        if len(self._shards) == 1:
            _, sequences, distances = self._shards[0].probe(self._one_fingerprint, NO_LIMIT)
            if not len(sequences):
                return _NO_CANDIDATES
        else:
            _, sequences, distances = self._ask(self._one_fingerprint, NO_LIMIT)
        order = np.lexsort((sequences, distances))
        return ProbeResult(sequences[order], distances[order])

    def probe_many(
        self, fingerprints: npt.NDArray[np.uint64], *, most_identical: int | None = None
    ) -> BatchProbeResult:
        """Return the candidates of each of fingerprints: uint64[n]; the same as n probes, faster.

        most_identical: of the entries that have one fingerprint, return so many at most, those with the smallest
        sequences (of each shard). Without it, n probes of n identical entries have n * n candidates.
        ConfigurationError below 1.
        """
        if most_identical is not None and most_identical < 1:
            raise ConfigurationError(f"most_identical is {most_identical}; give 1 or more")
        fingerprints = np.array(fingerprints, np.uint64, order="C")
        query, sequence, distance = self._ask(fingerprints, NO_LIMIT if most_identical is None else most_identical)
        return arranged(query, sequence, distance, len(fingerprints))

    def statistics(self) -> IndexStatistics:
        """Return the present sizes; reads 65,536 bucket headers of each table (some ms)."""
        return IndexStatistics(
            entries=len(self),
            fingerprints=sum(shard.distinct for shard in self._shards),
            bytes=sum(shard.size_bytes for shard in self._shards),
            largest_bucket=max(shard.largest_bucket for shard in self._shards),
            split_buckets=sum(shard.split_buckets for shard in self._shards),
            buckets=sum(shard.buckets for shard in self._shards),
        )

    def work(self) -> WorkCounters:
        """Return the cost of all probes so far."""
        probes, buckets, entries = np.sum([shard.work for shard in self._shards], axis=0).tolist()
        return WorkCounters(probes=probes, buckets=buckets, entries=entries)

    def _ask(
        self, fingerprints: npt.NDArray[np.uint64], limit: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Return queries, sequences and distances of the candidates in all shards, unsorted."""
        if len(self._shards) == 1:
            return self._shards[0].probe(fingerprints, limit)
        answers = [shard.probe(fingerprints, limit) for shard in self._shards]
        queries, sequences, distances = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        return queries, sequences, distances

    def _owned(
        self, sequences: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]
    ) -> list[tuple[CompactShard | SeedShard, npt.NDArray[np.int64], npt.NDArray[np.uint64]]]:
        """Return the shards with their part of the entries."""
        if len(self._shards) == 1:
            return [(self._shards[0], sequences, fingerprints)]
        owned = owners(sequences, len(self._shards))
        return [
            (shard, sequences[owned == number], fingerprints[owned == number])
            for number, shard in enumerate(self._shards)
        ]

    def _owner(self, sequence: int, fingerprint: int) -> CompactShard | SeedShard:
        """Check both values, put them where kernels read them, and return the shard of the sequence."""
        self._one_sequence[0] = _checked(sequence, self._max_sequence, "sequence")
        self._one_fingerprint[0] = _checked(fingerprint, (1 << BITS) - 1, "fingerprint")
        if len(self._shards) == 1:
            return self._shards[0]
        return self._shards[owner(sequence, len(self._shards))]

    def _checked_arrays(
        self, sequences: Any, fingerprints: Any
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Return both in the form that kernels take, sequences ascending."""
        if sequences.shape != fingerprints.shape or sequences.ndim != 1:
            raise ConfigurationError(
                f"sequences have shape {sequences.shape}, fingerprints {fingerprints.shape}; "
                "give two arrays of one length"
            )
        if fingerprints.dtype != np.uint64 or sequences.dtype != np.int64:
            raise ConfigurationError(
                f"sequences are {sequences.dtype}, fingerprints {fingerprints.dtype}; give int64 and uint64"
            )
        if not len(sequences):
            return sequences, fingerprints
        sequences, fingerprints = np.array(sequences, order="C"), np.array(fingerprints, order="C")
        ascend, least, most = _span(sequences)
        if least < 0:
            raise ConfigurationError(f"sequence {least} is negative; number pages from 0")
        if most > self._max_sequence:
            raise ConfigurationError(f"row {most} is above {self._max_sequence}, the largest row number")
        if ascend:
            return sequences, fingerprints
        order = np.argsort(sequences, kind="stable")
        return sequences[order], fingerprints[order]


@kernel
def _span(sequences: npt.NDArray[np.int64]) -> tuple[bool, int, int]:
    """Return whether sequences ascend, the smallest and the largest one, in one pass."""
    ascend, least, most = True, sequences[0], sequences[0]
    for at in range(1, len(sequences)):
        ascend &= sequences[at] >= sequences[at - 1]
        least, most = min(least, sequences[at]), max(most, sequences[at])
    return ascend, least, most


def _checked(value: int, most: int, name: str) -> int:
    if not 0 <= value <= most:
        raise ConfigurationError(f"{name} {value} does not fit in unsigned {most.bit_length()} bits")
    return value


def _absent(sequence: int, fingerprint: int) -> StateError:
    return StateError(
        f"sequence {sequence} with fingerprint {fingerprint} is not in the index; "
        "remove with the fingerprint that was inserted, once"
    )
