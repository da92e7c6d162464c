"""What a probe finds, and what the index tells of itself."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["BatchProbeResult", "IndexStatistics", "ProbeResult", "WorkCounters"]


@dataclass(frozen=True, slots=True, eq=False)
class ProbeResult:
    """The entries within the radius of one fingerprint, sorted by (distance, sequence), each once.

    sequences: int64[m]; distances: uint8[m], in bits.
    """

    sequences: npt.NDArray[np.int64]
    distances: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        """Return how many entries were found."""
        return len(self.sequences)


@dataclass(frozen=True, slots=True, eq=False)
class BatchProbeResult:
    """The candidates of n fingerprints, end to end; those of the i-th lie at offsets[i]:offsets[i + 1].

    offsets: int64[n + 1]; sequences: int64[m]; distances: uint8[m].
    """

    offsets: npt.NDArray[np.int64]
    sequences: npt.NDArray[np.int64]
    distances: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        """Return how many fingerprints were probed."""
        return len(self.offsets) - 1

    def __getitem__(self, at: int) -> ProbeResult:
        """Return the candidates of fingerprint `at`, 0 <= at < n; IndexError outside."""
        if not 0 <= at < len(self):
            raise IndexError(f"fingerprint {at} of a batch of {len(self)}")
        found = slice(self.offsets[at], self.offsets[at + 1])
        return ProbeResult(self.sequences[found], self.distances[found])


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """The index at one moment, summed over its shards (largest_bucket: the largest of any).

    entries: (sequence, fingerprint) pairs; fingerprints: distinct ones, which is what buckets hold.
    bytes: memory reserved for all arrays.
    largest_bucket: entries of the longest list that one probe may scan; split_buckets: second levels.
    """

    entries: int
    fingerprints: int
    bytes: int
    largest_bucket: int
    split_buckets: int


@dataclass(frozen=True, slots=True)
class WorkCounters:
    """The work of all probes since the index was made, summed over shards: machine-independent cost.

    probes: fingerprints looked up, once in each shard; buckets: headers read; entries: fingerprints compared.
    """

    probes: int
    buckets: int
    entries: int
