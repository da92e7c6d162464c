"""Some ten thousand entries in arrays: rows are appended at the end, and one that leaves is marked.

Invariants: sequences ascend, as the log gives them. What `held` hands out stays as it is: a row that was written is
not written again, so another thread may read it meanwhile.

Live entries in arrays: no object a page, a look-up in the order of log n, and never a long pause.

`EntryRows` is the value that travels; this is where such rows live while entries come and go. They stand in chunks, so
that growing copies nothing and an export of ten million is a list of views; putting them together, which takes a
second, is left to whoever wants them in one piece.

Invariant: sequences ascend from chunk to chunk.

The live entries by sequence: the latest as values, all others as arrays.

A state of many million pages costs its arrays and no object a page; only what is asked for, a candidate or an
earlier visit, becomes an `Entry`. The latest wait as values until there are enough to append at once.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows, entry_of

__all__ = ["CHUNK_ROWS", "EntryArrays", "EntryChunk", "EntryTable", "HeldChunk", "HeldEntries"]

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


_AT_ONCE = 4096
"""About 1 µs an entry; a batch takes 5 ms."""


class EntryTable:
    """Entries that can be looked up, added and removed. restored: the ones to begin with."""

    def __init__(self, restored: EntryRows) -> None:
        self._arrays = EntryArrays(restored)
        self._latest: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self._arrays) + len(self._latest)

    def get(self, sequence: int) -> Entry | None:
        """The entry at `sequence`, or None."""
        entry = self._latest.get(sequence)
        if entry is not None:
            return entry
        return self._arrays.get(sequence)

    def __getitem__(self, sequence: int) -> Entry:
        entry = self.get(sequence)
        if entry is None:
            raise KeyError(sequence)
        return entry

    def add(self, entry: Entry) -> None:
        """Add an entry whose sequence is larger than any before."""
        self._latest[entry.sequence] = entry
        if len(self._latest) >= _AT_ONCE:
            self._append_latest()

    def held(self) -> HeldEntries:
        """Return all entries in pieces, within milliseconds; later changes do not show in them."""
        self._append_latest()
        return self._arrays.held()

    def rows(self) -> EntryRows:
        """Return all entries in order of sequence; later changes do not show in them."""
        return self.held().rows()

    def remove(self, sequence: int) -> None:
        """Take one out; KeyError where it is not there."""
        if self._latest.pop(sequence, None) is not None:
            return
        if not self._arrays.remove(sequence):
            raise KeyError(sequence)

    def _append_latest(self) -> None:
        if self._latest:
            self._arrays.append(EntryRows.of(list(self._latest.values())))
            self._latest.clear()
