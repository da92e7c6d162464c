"""The block index: finds every entry within a fixed radius of a fingerprint.

How: S shards, each with the sequences that `block_shard.owner` assigns to it. A probe asks all shards and
merges the answers, which are therefore the same for any S.
Invariants: an entry is a pair (sequence, fingerprint) and is stored once. Answers depend on the entries
alone, not on the order or the way in which they were inserted. Not thread-safe: one thread at a time,
reading or writing.

Source: Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007; `block_layout` has
the others.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.index.block_layout import BUCKETS, COMPARED, FINGERPRINTS, MAX_RADIUS, PROBES
from dedup_service.core.index.block_shard import MIN_SPLIT, Shard, owner, owners
from dedup_service.core.index.probe_result import BatchProbeResult, IndexStatistics, ProbeResult, WorkCounters

__all__ = ["BlockIndex"]

BITS = 64
MAX_SEQUENCE = (1 << 63) - 1
_NO_CANDIDATES = ProbeResult(np.empty(0, np.int64), np.empty(0, np.uint8))


class BlockIndex:
    """Entries (sequence, 64-bit fingerprint), found by Hamming distance.

    >>> index = BlockIndex(3)
    >>> index.insert(1, 0b1000)
    >>> index.probe(0b1011).distances
    array([2], dtype=uint8)
    """

    __slots__ = ("_one_fingerprint", "_one_sequence", "_radius", "_shards")

    def __init__(self, radius: int, *, shards: int = 1, min_split: int | None = MIN_SPLIT) -> None:
        """Make an empty index, exact within `radius` bits.

        shards: number of parts. min_split: entries above which a crowded bucket may get a second level;
        None: no bucket does, and probes of hot buckets are slower. Answers are the same for any value of
        both. Raises ConfigurationError for a radius outside 0..7 or fewer than 1 shard.
        """
        if not 0 <= radius <= MAX_RADIUS:
            raise ConfigurationError(
                f"radius {radius} is outside 0..{MAX_RADIUS}, which four 16-bit blocks search exactly; choose another"
            )
        if shards < 1:
            raise ConfigurationError(f"{shards} shards cannot hold an index; give 1 or more")
        self._radius = radius
        self._shards = [Shard(radius, min_split=min_split) for _ in range(shards)]
        self._one_sequence = np.zeros(1, np.int64)
        self._one_fingerprint = np.zeros(1, np.uint64)

    def __len__(self) -> int:
        """Return the number of entries."""
        return sum(len(shard) for shard in self._shards)

    @property
    def radius(self) -> int:
        """The distance, in bits, up to which a probe finds every entry."""
        return self._radius

    def insert(self, sequence: int, fingerprint: int) -> None:
        """Add an entry.

        sequence: 0 to 2**63 - 1; fingerprint: 0 to 2**64 - 1; ConfigurationError outside.
        Several sequences may have one fingerprint. Raises StateError if this pair is in the index already.
        """
        shard = self._owner(sequence, fingerprint)
        shard.insert(self._one_sequence, self._one_fingerprint)

    def insert_many(self, sequences: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add entries, faster than one by one.

        sequences: int64[n] >= 0, in any order; fingerprints: uint64[n]. Raises like `insert`; then none was
        added.
        """
        sequences, fingerprints = _checked_arrays(sequences, fingerprints)
        owned = owners(sequences, len(self._shards))
        for number, shard in enumerate(self._shards):
            selected = owned == number
            try:
                shard.insert(sequences[selected], fingerprints[selected])
            except StateError:
                before = owned < number
                self._undo(sequences[before], fingerprints[before])
                raise

    def remove(self, sequence: int, fingerprint: int) -> None:
        """Remove an entry; StateError if this pair of sequence and fingerprint is not in the index."""
        shard = self._owner(sequence, fingerprint)
        if not shard.remove(sequence, self._one_fingerprint):
            raise StateError(
                f"sequence {sequence} with fingerprint {fingerprint} is not in the index; "
                "remove with the fingerprint that was inserted, once"
            )

    def probe(self, fingerprint: int) -> ProbeResult:
        """Return every entry within the radius of a fingerprint; ConfigurationError outside 64 bits."""
        self._one_fingerprint[0] = _checked(fingerprint, BITS, "fingerprint")
        found = [shard.probe(self._one_fingerprint)[1:] for shard in self._shards]
        if not any(len(sequences) for sequences, _ in found):
            return _NO_CANDIDATES
        sequences = np.concatenate([part for part, _ in found])
        distances = np.concatenate([part for _, part in found])
        if len(sequences) > 1:
            order = np.lexsort((sequences, distances))
            sequences, distances = sequences[order], distances[order]
        return ProbeResult(sequences, distances)

    def probe_many(self, fingerprints: npt.NDArray[np.uint64]) -> BatchProbeResult:
        """Return the candidates of each of fingerprints: uint64[n]; the same as n probes, faster."""
        fingerprints = np.array(fingerprints, np.uint64, order="C")
        queries, sequences, distances = [], [], []
        for shard in self._shards:
            ends, found, bits = shard.probe(fingerprints)
            queries.append(np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0)))
            sequences.append(found.copy())
            distances.append(bits.copy())
        query, sequence, distance = np.concatenate(queries), np.concatenate(sequences), np.concatenate(distances)
        order = np.lexsort((sequence, distance, query))
        offsets = np.searchsorted(query[order], np.arange(len(fingerprints) + 1))
        return BatchProbeResult(offsets, sequence[order], distance[order])

    def statistics(self) -> IndexStatistics:
        """Return the present sizes; reads every bucket header (about 1 ms)."""
        return IndexStatistics(
            entries=len(self),
            fingerprints=self._total(FINGERPRINTS),
            bytes=sum(shard.size_bytes for shard in self._shards),
            largest_bucket=max(shard.largest_bucket for shard in self._shards),
            split_buckets=sum(shard.split_buckets for shard in self._shards),
        )

    def work(self) -> WorkCounters:
        """Return the cost of all probes so far."""
        return WorkCounters(probes=self._total(PROBES), buckets=self._total(BUCKETS), entries=self._total(COMPARED))

    def _total(self, counter: int) -> int:
        return sum(int(shard.counters[counter]) for shard in self._shards)

    def _owner(self, sequence: int, fingerprint: int) -> Shard:
        """Check both values, put them where kernels read them, and return the shard of the sequence."""
        self._one_sequence[0] = _checked(sequence, BITS - 1, "sequence")
        self._one_fingerprint[0] = _checked(fingerprint, BITS, "fingerprint")
        if len(self._shards) == 1:
            return self._shards[0]
        return self._shards[owner(sequence, len(self._shards))]

    def _undo(self, sequences: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        for sequence, fingerprint in zip(sequences.tolist(), fingerprints.tolist(), strict=True):
            self.remove(sequence, fingerprint)


def _checked(value: int, bits: int, name: str) -> int:
    if not 0 <= value < 1 << bits:
        raise ConfigurationError(f"{name} {value} does not fit in unsigned {bits} bits")
    return value


def _checked_arrays(sequences: Any, fingerprints: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return copies in the form that kernels take, sequences ascending."""
    if sequences.shape != fingerprints.shape or sequences.ndim != 1:
        raise ConfigurationError(
            f"sequences have shape {sequences.shape}, fingerprints {fingerprints.shape}; give two arrays of one length"
        )
    if fingerprints.dtype != np.uint64 or sequences.dtype != np.int64:
        raise ConfigurationError(
            f"sequences are {sequences.dtype}, fingerprints {fingerprints.dtype}; give int64 and uint64"
        )
    if len(sequences) and sequences.min() < 0:
        raise ConfigurationError(f"sequence {sequences.min()} is negative; number pages from 0")
    order = np.argsort(sequences, kind="stable")
    return sequences[order], fingerprints[order]
