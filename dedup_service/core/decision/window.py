"""The window: the youngest kept pages, compared by their sketches before they enter the cells.

Cells change exactly `window` pages behind the log, so that a part of the index on another machine may be a
bounded number of pages behind and still find the same candidates. The pages in between are few: all of them
are compared with each new page, by the sieve first, then by the whole sketch, without the sentences that are
the own text of the new page's host. A page of the window is a candidate if this estimate of the Jaccard
similarity may reach a bound.

Invariant: the answer is a function of the entries that are in the window, in any order of insertion.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.columns import EvidenceColumns
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.index.cell_index import MOST_DIFFERING, SIEVE_BYTES
from dedup_service.core.kernels import kernel, popcount

__all__ = ["Window"]

_SIEVE_WORDS = SIEVE_BYTES // 8
_FIRST_ROWS = 64


class Window:
    """Kept pages of the window, in order of their ordinals."""

    def __init__(self) -> None:
        self._columns = EvidenceColumns(_FIRST_ROWS)
        self._sieves = np.empty((_SIEVE_WORDS, _FIRST_ROWS), np.uint64)
        self._sequences = np.empty(_FIRST_ROWS, np.int64)
        self._ordinals = np.empty(_FIRST_ROWS, np.int64)
        self._start = self._end = 0

    def __len__(self) -> int:
        """Return the number of rows, those of removed entries included."""
        return self._end - self._start

    def add(self, entry: Entry, evidence: Evidence) -> None:
        """Add a kept page with its evidence; its ordinal is larger than any before.

        A page without shingles is left out.
        """
        if not evidence.shingles:
            return
        self._make_room()
        self._columns.put(self._end, evidence)
        self._sieves[:, self._end] = self._columns.sketches[self._end, :_SIEVE_WORDS]
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

    def find(
        self, evidence: Evidence, common: npt.NDArray[np.uint32], min_jaccard: float
    ) -> tuple[int, npt.NDArray[np.int64]]:
        """Return how many entries the sieve lets through, and the sequences of those that are candidates.

        evidence: of the page. common: those of its sentences that are the own text of its host, ascending.
        min_jaccard: similarity from which an entry is a candidate.
        """
        if self._start == self._end or not evidence.shingles:
            return 0, np.empty(0, np.int64)
        sieve = np.frombuffer(evidence.sketch[:SIEVE_BYTES], np.uint64)
        rows = _sifted(sieve, self._sieves, self._sequences, self._start, self._end, MOST_DIFFERING)
        similar = self._columns.similar(rows, evidence, common, min_jaccard)
        return len(rows), self._sequences[similar]

    def _make_room(self) -> None:
        if self._end < len(self._columns):
            return
        rows, count = slice(self._start, self._end), self._end - self._start
        size = len(self._columns) if self._start > len(self._columns) // 2 else 2 * len(self._columns)
        columns, sequences, ordinals = EvidenceColumns(size), np.empty(size, np.int64), np.empty(size, np.int64)
        sieves = np.empty((_SIEVE_WORDS, size), np.uint64)
        self._columns.move(rows, columns)
        sieves[:, :count] = self._sieves[:, rows]
        sequences[:count], ordinals[:count] = self._sequences[rows], self._ordinals[rows]
        self._columns, self._sequences, self._ordinals, self._sieves = columns, sequences, ordinals, sieves
        self._start, self._end = 0, count


@kernel
def _sifted(
    sieve: npt.NDArray[np.uint64],
    sieves: npt.NDArray[np.uint64],
    sequences: npt.NDArray[np.int64],
    start: int,
    end: int,
    most_differing: int,
) -> npt.NDArray[np.int64]:
    """Return the rows whose first bits differ from the sieve, uint64[2], in `most_differing` at most: int64[n].

    sieves: uint64[2, rows]. sequences: int64[rows], negative for a removed entry.
    """
    differing = np.empty(end - start, np.int64)
    for place in range(end - start):  # a loop of its own, which the compiler vectorises
        first, second = sieves[0, start + place], sieves[1, start + place]
        differing[place] = popcount(sieve[0] ^ first) + popcount(sieve[1] ^ second)
    count = 0
    for place in range(end - start):
        bits = differing[place]
        differing[count] = start + place
        count += bits <= most_differing and sequences[start + place] >= 0
    return differing[:count]
