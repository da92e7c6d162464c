"""The window: the youngest kept pages, compared by their sketches before they enter the cells.

Cells change exactly `window` pages behind the log, so that a part of the index on another machine may be a
bounded number of pages behind and still find the same candidates. The pages in between are few: all of them
are compared with each new page, by the sieve first and then by the whole sketch. A page of the window is
therefore a candidate if the sieve lets it through and the estimated Jaccard similarity reaches a bound.

Invariant: the answer is a function of the entries that are in the window, in any order of insertion.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.sketch import BINS, SKETCH_BYTES
from dedup_service.core.index.cell_index import MOST_DIFFERING, SIEVE_BYTES
from dedup_service.core.kernels import kernel, popcount

__all__ = ["Window"]

_WORDS = SKETCH_BYTES // 8
_SIEVE_WORDS = SIEVE_BYTES // 8
_FIRST_ROWS = 64


class Window:
    """Kept pages of the window, in order of their ordinals."""

    def __init__(self) -> None:
        self._sketches = np.empty((_FIRST_ROWS, _WORDS), np.uint64)
        self._sequences = np.empty(_FIRST_ROWS, np.int64)
        self._ordinals = np.empty(_FIRST_ROWS, np.int64)
        self._start = self._end = 0
        self._found = np.empty(_FIRST_ROWS, np.int64)

    def __len__(self) -> int:
        """Return the number of rows, those of removed entries included."""
        return self._end - self._start

    def add(self, entry: Entry) -> None:
        """Add a kept page, whose ordinal is larger than any before. A page without shingles is left out."""
        evidence = Evidence(entry.evidence)
        if not evidence.shingles:
            return
        self._make_room()
        self._sketches[self._end] = np.frombuffer(evidence.sketch, np.uint64)
        self._sequences[self._end], self._ordinals[self._end] = entry.sequence, entry.ordinal
        self._end += 1

    def remove(self, sequence: int) -> None:
        """Remove an entry, if the window has it."""
        rows = self._start + np.flatnonzero(self._sequences[self._start : self._end] == sequence)
        self._sequences[rows] = -1

    def leave(self, ordinal: int) -> None:
        """Drop the entries up to an ordinal."""
        while self._start < self._end and self._ordinals[self._start] <= ordinal:
            self._start += 1

    def find(self, sketch: bytes, min_jaccard: float) -> tuple[int, npt.NDArray[np.int64]]:
        """Return how many entries the sieve lets through, and the sequences of those that are candidates.

        sketch: SKETCH_BYTES bytes. min_jaccard: estimated similarity from which an entry is a candidate.
        """
        if self._start == self._end:
            return 0, self._found[:0].copy()
        passed, count = _scan(
            np.frombuffer(sketch, np.uint64).copy(),
            self._sketches,
            self._sequences,
            self._start,
            self._end,
            MOST_DIFFERING,
            int(BINS * (1.0 - min_jaccard) / 2.0),
            self._found,
        )
        return int(passed), self._found[:count].copy()

    def _make_room(self) -> None:
        rows = len(self._sequences)
        if self._end < rows:
            return
        kept = slice(self._start, self._end)
        size = rows if self._start > rows // 2 else 2 * rows
        sketches, sequences, ordinals = self._sketches[kept], self._sequences[kept], self._ordinals[kept]
        count = len(sequences)
        self._sketches, self._found = np.empty((size, _WORDS), np.uint64), np.empty(size, np.int64)
        self._sequences, self._ordinals = np.empty(size, np.int64), np.empty(size, np.int64)
        self._sketches[:count], self._sequences[:count], self._ordinals[:count] = sketches, sequences, ordinals
        self._start, self._end = 0, count


@kernel
def _scan(
    sketch: npt.NDArray[np.uint64],
    sketches: npt.NDArray[np.uint64],
    sequences: npt.NDArray[np.int64],
    start: int,
    end: int,
    most_differing_of_sieve: int,
    most_differing: int,
    found: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Return how many rows pass the sieve, and how many sequences were put into `found`."""
    passed = count = 0
    for row in range(start, end):
        if sequences[row] < 0:
            continue
        bits = 0
        for word in range(_SIEVE_WORDS):
            bits += popcount(sketch[word] ^ sketches[row, word])
        if bits > most_differing_of_sieve:
            continue
        passed += 1
        for word in range(_SIEVE_WORDS, _WORDS):
            bits += popcount(sketch[word] ^ sketches[row, word])
        if bits <= most_differing:
            found[count] = sequences[row]
            count += 1
    return passed, count
