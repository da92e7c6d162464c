"""What a probe returns, and what an index reports about itself."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel

_MOST_INSERTED = 64
"""Candidates of one probe up to which they are sorted by insertion."""


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

    entries: (sequence, fingerprint) pairs; fingerprints: distinct ones, which buckets store once.
    bytes: memory reserved for all arrays.
    largest_bucket: entries of the longest list that one probe may scan (in the compact layout the longest of a
    sample if there are more than 131,071 buckets in a table); split_buckets: second levels.
    buckets: of one table.
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

    probes: fingerprints probed; buckets: headers read; entries: fingerprints compared.
    """

    probes: int
    buckets: int
    entries: int


def arranged(
    queries: npt.NDArray[np.int64],
    sequences: npt.NDArray[np.int64],
    distances: npt.NDArray[np.uint8],
    probes: int,
) -> BatchProbeResult:
    """Return the candidates of so many probes in their order. queries: int64[m], of which probe each candidate is."""
    offsets = np.zeros(probes + 1, np.int64)
    ordered, ordered_distances = np.empty(len(queries), np.int64), np.empty(len(queries), np.uint8)
    if not _arrange(queries, sequences, distances, offsets, ordered, ordered_distances):
        order = np.lexsort((sequences, distances, queries))
        ordered, ordered_distances = sequences[order], distances[order]
    return BatchProbeResult(offsets, ordered, ordered_distances)


@kernel
def _arrange(
    queries: npt.NDArray[np.int64],
    sequences: npt.NDArray[np.int64],
    distances: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    ordered: npt.NDArray[np.int64],
    ordered_distances: npt.NDArray[np.uint8],
) -> bool:
    """Write offsets and, if no probe has many candidates, these in order; return whether it did. offsets: zeros."""
    most = 0
    for query in queries:
        offsets[query + 1] += 1
        most = max(most, offsets[query + 1])
    for probe in range(len(offsets) - 1):
        offsets[probe + 1] += offsets[probe]
    if most > _MOST_INSERTED:
        return False
    ends = offsets[:-1].copy()
    for at in range(len(queries)):
        query, sequence, distance = queries[at], sequences[at], distances[at]
        place = ends[query]
        ends[query] += 1
        while place > offsets[query]:
            before = ordered_distances[place - 1]
            if before < distance or (before == distance and ordered[place - 1] < sequence):
                break
            ordered[place], ordered_distances[place] = ordered[place - 1], before
            place -= 1
        ordered[place], ordered_distances[place] = sequence, distance
    return True
