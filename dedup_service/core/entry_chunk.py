"""Some ten thousand entries in arrays: rows are appended at the end, and one that leaves is marked.

Invariants: sequences ascend, as the log gives them. What `held` hands out stays as it is: a row that was written is
not written again, so another thread may read it meanwhile.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.entries import Entry
from dedup_service.core.entry_rows import EntryRows, entry_of

__all__ = ["CHUNK_ROWS", "EntryChunk", "HeldChunk"]

CHUNK_ROWS = 1 << 16
"""3 MB of rows: little to copy when half of them have left, and few chunks to choose from."""

_SMALLEST = 4096


@dataclass(frozen=True, slots=True, eq=False)
class HeldChunk:
    """What a chunk held at one moment. rows: ROW[n]; evidence: uint8[m]; alive: bool[n], None for all."""

    rows: npt.NDArray[Any]
    evidence: npt.NDArray[np.uint8]
    alive: npt.NDArray[np.bool_] | None

    def live(self) -> EntryRows:
        """Return the entries that were alive."""
        rows = EntryRows(self.rows, self.evidence.tobytes())
        return rows if self.alive is None else rows.where(self.alive)


class EntryChunk:
    """Entries from sequence `first` on. rows: the ones to begin with, taken as they are, at least one."""

    _rows: npt.NDArray[Any]
    _sequences: npt.NDArray[np.int64]
    _starts: npt.NDArray[np.int64]
    _alive: npt.NDArray[np.bool_]
    _evidence: npt.NDArray[np.uint8]
    _size: int
    _evidence_size: int
    _gone: int

    def __init__(self, rows: EntryRows) -> None:
        self.first = int(rows.rows["sequence"][0])
        self._take(rows)

    def __len__(self) -> int:
        """Return how many entries are alive."""
        return self._size - self._gone

    @property
    def room(self) -> int:
        """Return how many rows it takes yet."""
        return CHUNK_ROWS - self._size

    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence`, or None."""
        place = self._place(sequence)
        if place is None:
            return None
        return entry_of(self._rows[place].item(), self._evidence, int(self._starts[place]))

    def append(self, rows: EntryRows) -> None:
        """Append entries that come after all others."""
        start = self._size
        self._rows = _extended(self._rows, start, rows.rows)
        self._sequences = _extended(self._sequences, start, rows.rows["sequence"])
        self._starts = _extended(self._starts, start, rows.evidence_starts + self._evidence_size)
        self._alive = _extended(self._alive, start, np.ones(len(rows), np.bool_))
        self._evidence = _extended(self._evidence, self._evidence_size, np.frombuffer(rows.evidence, np.uint8))
        self._size += len(rows)
        self._evidence_size += len(rows.evidence)

    def remove(self, sequence: int) -> bool:
        """Take the live entry at `sequence` out; return False where there is none."""
        place = self._place(sequence)
        if place is None:
            return False
        self._alive[place] = False
        self._gone += 1
        if self._gone > self._size // 2:
            self._take(self.held().live())
        return True

    def held(self) -> HeldChunk:
        """Return what it holds now; later changes do not show in that."""
        alive = self._alive[: self._size].copy() if self._gone else None
        return HeldChunk(self._rows[: self._size], self._evidence[: self._evidence_size], alive)

    def _place(self, sequence: int) -> int | None:
        # A column of its own, whole and aligned: searched in a packed row, numpy copies all of it for every call.
        place = int(self._sequences[: self._size].searchsorted(sequence))
        if place == self._size or self._sequences[place] != sequence or not self._alive[place]:
            return None
        return place

    def _take(self, rows: EntryRows) -> None:
        self._rows = rows.rows
        self._sequences = rows.rows["sequence"].astype(np.int64)
        self._starts = rows.evidence_starts
        self._alive = np.ones(len(rows), np.bool_)
        self._evidence = np.frombuffer(rows.evidence, np.uint8)
        self._size = len(rows)
        self._evidence_size = len(rows.evidence)
        self._gone = 0


def _extended(array: npt.NDArray[Any], used: int, more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the first `used` rows of `array`, then `more`, in place where there is room; it grows by a half."""
    needed = used + len(more)
    if not len(more):
        return array
    if needed > len(array):
        grown = np.empty(max(needed + needed // 2, _SMALLEST), array.dtype)
        grown[:used] = array[:used]
        array = grown
    array[used:needed] = more
    return array
