"""Live entries in arrays: no object a page, a look-up in the order of log n, and never a long pause.

`EntryRows` is the value that travels; this is where such rows live while entries come and go. They stand in chunks, so
that growing copies nothing and an export of ten million is a list of views; putting them together, which takes a
second, is left to whoever wants them in one piece.

Invariant: sequences ascend from chunk to chunk.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dedup_service.core.entries import Entry
from dedup_service.core.entry_chunk import CHUNK_ROWS, EntryChunk, HeldChunk
from dedup_service.core.entry_rows import EntryRows

__all__ = ["EntryArrays", "HeldEntries"]


@dataclass(frozen=True, slots=True, eq=False)
class HeldEntries:
    """The live entries of one moment, in pieces; any thread may put them together."""

    chunks: tuple[HeldChunk, ...] = ()

    def has(self, sequence: int) -> bool:
        """Whether the page at `sequence` is among them."""
        for chunk in self.chunks:
            places = np.flatnonzero(chunk.rows["sequence"] == sequence)
            if len(places):
                return chunk.alive is None or bool(chunk.alive[places[0]])
        return False

    def __iter__(self) -> Iterator[EntryRows]:
        """Yield them piece by piece, in order of sequence, as often as asked."""
        return (chunk.live() for chunk in self.chunks)

    def rows(self) -> EntryRows:
        """Return them in one piece, in order of sequence."""
        if not self.chunks:
            return EntryRows.none()
        parts = list(self)
        return EntryRows(np.concatenate([part.rows for part in parts]), b"".join(part.evidence for part in parts))


class EntryArrays:
    """Entries in chunks. rows: the ones to begin with, taken as they are."""

    def __init__(self, rows: EntryRows) -> None:
        self._chunks = [EntryChunk(piece) for piece in rows.pieces(CHUNK_ROWS)]
        self._firsts = [chunk.first for chunk in self._chunks]

    def __len__(self) -> int:
        """Return how many entries are alive."""
        return sum(map(len, self._chunks))

    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence`, or None."""
        at = bisect_right(self._firsts, sequence) - 1
        return self._chunks[at].get(sequence) if at >= 0 else None

    def append(self, rows: EntryRows) -> None:
        """Append entries that come after all others."""
        if self._chunks and len(rows) <= self._chunks[-1].room:
            self._chunks[-1].append(rows)
            return
        for piece in rows.pieces(CHUNK_ROWS):
            self._chunks.append(EntryChunk(piece))
            self._firsts.append(self._chunks[-1].first)

    def remove(self, sequence: int) -> bool:
        """Take the live entry at `sequence` out; return False where there is none."""
        at = bisect_right(self._firsts, sequence) - 1
        return at >= 0 and self._chunks[at].remove(sequence)

    def held(self) -> HeldEntries:
        """Return what is alive now; later changes do not show in that."""
        return HeldEntries(tuple(chunk.held() for chunk in self._chunks))
