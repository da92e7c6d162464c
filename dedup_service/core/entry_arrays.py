"""Live entries in arrays that grow at the end: no object a page, and a look-up in the order of log n.

`EntryRows` is the value that travels; this is where such rows live while entries come and go. Rows are only ever
appended, and one that left is marked; so what `rows` hands out stays as it was while more are appended, and
another thread may write it to a disk meanwhile.

Invariant: sequences ascend, as the log gives them.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.entries import Entry
from dedup_service.core.entry_rows import EntryRows, entry_of

__all__ = ["EntryArrays"]

_SMALLEST = 4096


class EntryArrays:
    """Rows with a mark for each that is still alive. rows: the ones to begin with, taken as they are."""

    _rows: npt.NDArray[Any]
    _sequences: npt.NDArray[np.int64]
    _starts: npt.NDArray[np.int64]
    _alive: npt.NDArray[np.bool_]
    _metadata: npt.NDArray[np.uint8]
    _size: int
    _metadata_size: int
    _gone: int

    def __init__(self, rows: EntryRows) -> None:
        self._take(rows)

    def __len__(self) -> int:
        """Return how many entries are alive."""
        return self._size - self._gone

    def place(self, sequence: int) -> int | None:
        """Return where the live entry at `sequence` stands, or None."""
        # A column of its own, whole and aligned: searched in a packed row, numpy copies all of it for every call.
        place = int(self._sequences[: self._size].searchsorted(sequence))
        if place == self._size or self._sequences[place] != sequence or not self._alive[place]:
            return None
        return place

    def at(self, place: int) -> Entry:
        """Return the entry at `place` as a value."""
        return entry_of(self._rows[place].item(), self._metadata, int(self._starts[place]))

    def append(self, rows: EntryRows) -> None:
        """Append entries that come after all others."""
        start = self._size
        self._rows = _extended(self._rows, start, rows.rows)
        self._sequences = _extended(self._sequences, start, rows.rows["sequence"])
        self._starts = _extended(self._starts, start, rows.metadata_starts + self._metadata_size)
        self._alive = _extended(self._alive, start, np.ones(len(rows), np.bool_))
        self._metadata = _extended(self._metadata, self._metadata_size, np.frombuffer(rows.metadata, np.uint8))
        self._size += len(rows)
        self._metadata_size += len(rows.metadata)

    def remove(self, place: int) -> None:
        """Mark the live entry at `place` as gone."""
        self._alive[place] = False
        self._gone += 1

    def rows(self) -> EntryRows:
        """Return the live entries; later changes do not show in them. Those that are gone give up their room."""
        rows = EntryRows(self._rows[: self._size], self._metadata[: self._metadata_size].tobytes())
        if self._gone:
            rows = rows.where(self._alive[: self._size])
            self._take(rows)
        return rows

    def _take(self, rows: EntryRows) -> None:
        self._rows = rows.rows
        self._sequences = rows.rows["sequence"].astype(np.int64)
        self._starts = rows.metadata_starts
        self._alive = np.ones(len(rows), np.bool_)
        self._metadata = np.frombuffer(rows.metadata, np.uint8)
        self._size = len(rows)
        self._metadata_size = len(rows.metadata)
        self._gone = 0


def _extended(array: npt.NDArray[Any], used: int, more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the first `used` rows of `array`, then `more`, in place where there is room.

    It grows by a half: memory that nobody has written to costs nothing.
    """
    needed = used + len(more)
    if not len(more):
        return array
    if needed > len(array):
        grown = np.empty(max(needed + needed // 2, _SMALLEST), array.dtype)
        grown[:used] = array[:used]
        array = grown
    array[used:needed] = more
    return array
