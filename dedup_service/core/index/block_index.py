"""The block index: every entry within a fixed radius of a fingerprint, always.

How: S shards, each owning the sequences that `sharding.owner` gives it; a probe asks them all and
merges, so the answer is the same for any S. Invariants: an entry is a pair (sequence, fingerprint)
and is there once; answers depend on the entries alone, not on how or in what order they came.
Not thread-safe: one thread at a time, reading or writing.

Source: design.md's block index; Manku, Jain, Das Sarma, WWW 2007; see `layout` for the rest.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.index.block_layout import BUCKETS, COMPARED, FINGERPRINTS, MAX_RADIUS, PROBES
from dedup_service.core.index.block_shard import SMALLEST_SPLIT, Shard, owner, owners
from dedup_service.core.index.probe_result import BatchProbeResult, IndexStatistics, ProbeResult, WorkCounters

__all__ = ["BlockIndex"]

BITS = 64
MAX_SEQUENCE = (1 << 63) - 1
NOTHING = ProbeResult(np.empty(0, np.int64), np.empty(0, np.uint8))


class BlockIndex:
    """Entries (sequence, 64-bit fingerprint), found by Hamming distance.

    >>> index = BlockIndex(3)
    >>> index.insert(1, 0b1000)
    >>> index.probe(0b1011).distances
    array([2], dtype=uint8)
    """

    __slots__ = ("_one_fingerprint", "_one_sequence", "_radius", "_shards")

    def __init__(self, radius: int, *, shards: int = 1, smallest_split: int | None = SMALLEST_SPLIT) -> None:
        """Make an empty index, exact within `radius` bits.

        shards: how many parts own the entries; answers are the same for any number.
        smallest_split: entries up to which a bucket is left whole, however crowded; None splits none.
        Answers are the same for any value; hot buckets are slower without a second level.
        Raises ConfigurationError for a radius outside 0..7 or fewer shards than 1.
        """
        if not 0 <= radius <= MAX_RADIUS:
            raise ConfigurationError(
                f"radius {radius} is outside 0..{MAX_RADIUS}, what four 16-bit blocks find exactly; choose one within"
            )
        if shards < 1:
            raise ConfigurationError(f"{shards} shards cannot hold an index; give 1 or more")
        self._radius = radius
        self._shards = [Shard(radius, smallest_split=smallest_split) for _ in range(shards)]
        self._one_sequence = np.zeros(1, np.int64)
        self._one_fingerprint = np.zeros(1, np.uint64)

    def __len__(self) -> int:
        """Return how many entries there are."""
        return sum(len(shard) for shard in self._shards)

    @property
    def radius(self) -> int:
        """The distance, in bits, up to which a probe finds everything."""
        return self._radius

    def insert(self, sequence: int, fingerprint: int) -> None:
        """Add an entry.

        sequence: 0 to 2**63 - 1; fingerprint: 0 to 2**64 - 1, ConfigurationError outside.
        Several sequences may share a fingerprint. Raises StateError where this very pair is there already.
        """
        shard = self._owner(sequence, fingerprint)
        shard.insert(self._one_sequence, self._one_fingerprint)

    def insert_many(self, sequences: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        """Add entries, faster than one by one: sequences: int64[n] >= 0, in any order; fingerprints: uint64[n].

        Raises as `insert` does; then none of them was added.
        """
        sequences, fingerprints = _checked_arrays(sequences, fingerprints)
        owned = owners(sequences, len(self._shards))
        for number, shard in enumerate(self._shards):
            mine = owned == number
            try:
                shard.insert(sequences[mine], fingerprints[mine])
            except StateError:
                before = owned < number
                self._take_back(sequences[before], fingerprints[before])
                raise

    def remove(self, sequence: int, fingerprint: int) -> None:
        """Remove an entry; StateError where this pair of sequence and fingerprint is not there."""
        shard = self._owner(sequence, fingerprint)
        if not shard.remove(sequence, self._one_fingerprint):
            raise StateError(
                f"sequence {sequence} with fingerprint {fingerprint} is not in the index; "
                "remove with the fingerprint that was inserted, once"
            )

    def probe(self, fingerprint: int) -> ProbeResult:
        """Return every entry within the radius of a fingerprint, 0 to 2**64 - 1 (ConfigurationError outside)."""
        self._one_fingerprint[0] = _checked(fingerprint, BITS, "fingerprint")
        found = [shard.probe(self._one_fingerprint)[1:] for shard in self._shards]
        if not any(len(sequences) for sequences, _ in found):
            return NOTHING
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
            ends, found, at = shard.probe(fingerprints)
            queries.append(np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0)))
            sequences.append(found.copy())
            distances.append(at.copy())
        query, sequence, distance = np.concatenate(queries), np.concatenate(sequences), np.concatenate(distances)
        order = np.lexsort((sequence, distance, query))
        offsets = np.searchsorted(query[order], np.arange(len(fingerprints) + 1))
        return BatchProbeResult(offsets, sequence[order], distance[order])

    def statistics(self) -> IndexStatistics:
        """Return sizes as they are now; reads every bucket header (about 1 ms)."""
        return IndexStatistics(
            entries=len(self),
            fingerprints=self._total(FINGERPRINTS),
            bytes=sum(shard.size_bytes for shard in self._shards),
            largest_bucket=max(shard.largest_bucket for shard in self._shards),
            split_buckets=sum(shard.split_buckets for shard in self._shards),
        )

    def work(self) -> WorkCounters:
        """Return what all probes so far have cost."""
        return WorkCounters(probes=self._total(PROBES), buckets=self._total(BUCKETS), entries=self._total(COMPARED))

    def _total(self, counter: int) -> int:
        return sum(int(shard.counters[counter]) for shard in self._shards)

    def _owner(self, sequence: int, fingerprint: int) -> Shard:
        """Return the shard of a sequence, with both values checked and put where kernels read them."""
        self._one_sequence[0] = _checked(sequence, BITS - 1, "sequence")
        self._one_fingerprint[0] = _checked(fingerprint, BITS, "fingerprint")
        if len(self._shards) == 1:
            return self._shards[0]
        return self._shards[owner(sequence, len(self._shards))]

    def _take_back(self, sequences: npt.NDArray[np.int64], fingerprints: npt.NDArray[np.uint64]) -> None:
        for sequence, fingerprint in zip(sequences.tolist(), fingerprints.tolist(), strict=True):
            self.remove(sequence, fingerprint)


def _checked(value: int, bits: int, name: str) -> int:
    if not 0 <= value < 1 << bits:
        raise ConfigurationError(f"{name} {value} does not fit the index's unsigned {bits} bits")
    return value


def _checked_arrays(sequences: Any, fingerprints: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return copies that kernels may take as they are, sequences ascending."""
    if sequences.shape != fingerprints.shape or sequences.ndim != 1:
        raise ConfigurationError(
            f"sequences have shape {sequences.shape}, fingerprints {fingerprints.shape}; give two lists of one length"
        )
    if fingerprints.dtype != np.uint64 or sequences.dtype != np.int64:
        raise ConfigurationError(
            f"sequences are {sequences.dtype}, fingerprints {fingerprints.dtype}; give int64 and uint64"
        )
    if len(sequences) and sequences.min() < 0:
        raise ConfigurationError(f"sequence {sequences.min()} is negative; number pages from 0")
    order = np.argsort(sequences, kind="stable")
    return sequences[order], fingerprints[order]
