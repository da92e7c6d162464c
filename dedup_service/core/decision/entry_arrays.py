"""The live entries in arrays: no object for each page, look-up in O(log n), and no long pause.

How: `EntryTable` is what a decider uses. Entries in the window are values in a dictionary. When they leave
it, their keys are replaced by their paths through the cells, and a thousand at a time are appended to
`EntryArrays`, which holds all others in chunks of up to 65,536 rows (`EntryChunk`). Only an
entry that is asked for becomes an `Entry` again. Growth copies one chunk at most; a removed row is marked,
and a chunk is compacted when more than half of its rows are marked. `held` exports ten million entries as a
list of views; iterating them copies one piece at a time, which can be done in another thread.

Invariants: sequences ascend within a chunk and from chunk to chunk, as in the log. A row that was written is
never written again, so another thread may read what `held` returned.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryPieces, EntryRows, entry_of

__all__ = ["CHUNK_ROWS", "EntryArrays", "EntryChunk", "EntryTable", "HeldChunk", "HeldEntries"]

CHUNK_ROWS = 1 << 16
"""3 MB of rows: little to copy when a chunk is compacted, and few chunks to choose from."""

_MIN_ROWS = 4096
"""Rows that an array has after its first growth, at least."""

_PIECE_BYTES = 1 << 20
"""Bytes of evidence that an export copies at a time."""

_MAX_SETTLED = 1024
"""Entries that are appended at once: about 1 µs each, so 1 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldChunk:
    """An immutable view of a chunk. rows: ROW[n]; evidence: uint8[m]; alive: bool[n], None for all rows."""

    rows: npt.NDArray[Any]
    evidence: npt.NDArray[np.uint8]
    alive: npt.NDArray[np.bool_] | None

    def live(self) -> EntryRows:
        """Return the live entries."""
        rows = EntryRows(self.rows, self.evidence.tobytes())
        return rows if self.alive is None else rows.where(self.alive)

    def pieces(self) -> Iterator[EntryRows]:
        """Yield copies of the live entries, each of _PIECE_BYTES of evidence or one entry."""
        ends = np.cumsum(self.rows["evidence_bytes"], dtype=np.int64)
        start = first = 0
        while start < len(self.rows):
            stop = max(start + 1, int(ends.searchsorted(first + _PIECE_BYTES, side="right")))
            end = int(ends[stop - 1])
            piece = EntryRows(self.rows[start:stop], self.evidence[first:end].tobytes())
            yield piece if self.alive is None else piece.where(self.alive[start:stop])
            start, first = stop, end

    def size(self) -> tuple[int, int]:
        """Return the number of live entries and the bytes of their evidence."""
        sizes = self.rows["evidence_bytes"] if self.alive is None else self.rows["evidence_bytes"][self.alive]
        return len(sizes), int(sizes.sum(dtype=np.int64))


class EntryChunk:
    """Entries from sequence `first` on. rows: the first entries, at least one, used without a copy."""

    _rows: npt.NDArray[Any]
    _sequences: npt.NDArray[np.int64]
    _starts: npt.NDArray[np.int64]
    _alive: npt.NDArray[np.bool_]
    _evidence: npt.NDArray[np.uint8]
    _size: int
    _evidence_size: int
    _removed: int
    _earliest: int

    def __init__(self, rows: EntryRows) -> None:
        self.first = int(rows.rows["sequence"][0])
        self._take(rows)

    def __len__(self) -> int:
        """Return the number of live entries."""
        return self._size - self._removed

    def earliest(self) -> int:
        """Return the sequence of the first live entry; the chunk has one."""
        while not self._alive[self._earliest]:
            self._earliest += 1
        return int(self._sequences[self._earliest])

    @property
    def room(self) -> int:
        """How many more rows fit in."""
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
        """Remove the live entry at `sequence`; return False if there is none."""
        place = self._place(sequence)
        if place is None:
            return False
        self._alive[place] = False
        self._removed += 1
        if self._removed > self._size // 2:
            self._take(self.held().live())
        return True

    def held(self) -> HeldChunk:
        """Return an immutable view of the present rows."""
        alive = self._alive[: self._size].copy() if self._removed else None
        return HeldChunk(self._rows[: self._size], self._evidence[: self._evidence_size], alive)

    def _place(self, sequence: int) -> int | None:
        # Not searched in `_rows`: numpy would copy the column of packed rows for each search.
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
        self._removed = self._earliest = 0


def _extended(array: npt.NDArray[Any], used: int, more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the first `used` rows of `array`, then `more`: in place, or in an array half as large again."""
    needed = used + len(more)
    if not len(more):
        return array
    if needed > len(array):
        grown = np.empty(max(needed + needed // 2, _MIN_ROWS), array.dtype)
        grown[:used] = array[:used]
        array = grown
    array[used:needed] = more
    return array


@dataclass(frozen=True, slots=True, eq=False)
class HeldEntries:
    """An immutable view of all live entries, in chunks; any thread may read it."""

    chunks: tuple[HeldChunk, ...] = ()

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry."""
        for chunk in self.chunks:
            places = np.flatnonzero(chunk.rows["sequence"] == sequence)
            if len(places):
                return chunk.alive is None or bool(chunk.alive[places[0]])
        return False

    def __iter__(self) -> Iterator[EntryRows]:
        """Yield copies of the live entries piece by piece, in order of sequence; may be repeated."""
        return (piece for chunk in self.chunks for piece in chunk.pieces())

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their evidence."""
        sizes = [chunk.size() for chunk in self.chunks]
        return sum(entries for entries, _ in sizes), sum(evidence for _, evidence in sizes)

    def rows(self) -> EntryRows:
        """Return the live entries in one piece, in order of sequence."""
        parts = list(self)
        if not parts:
            return EntryRows.none()
        return EntryRows(np.concatenate([part.rows for part in parts]), b"".join(part.evidence for part in parts))


class EntryArrays:
    """Entries in chunks. restored: the first entries."""

    def __init__(self, restored: EntryPieces = ()) -> None:
        self._chunks: list[EntryChunk] = []
        self._firsts: list[int] = []
        self._live = 0
        for piece in restored:
            self.append(piece)

    def __len__(self) -> int:
        """Return the number of live entries."""
        return self._live

    def first(self) -> int | None:
        """Return the sequence of the earliest live entry, None if there is none."""
        return self._chunks[0].earliest() if self._chunks else None

    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence`, or None."""
        chunk = bisect_right(self._firsts, sequence) - 1
        return self._chunks[chunk].get(sequence) if chunk >= 0 else None

    def append(self, rows: EntryRows) -> None:
        """Append entries that come after all others; those that begin a chunk are used without a copy."""
        self._live += len(rows)
        if self._chunks and len(rows) <= self._chunks[-1].room:
            self._chunks[-1].append(rows)
            return
        for piece in rows.pieces(CHUNK_ROWS):
            self._chunks.append(EntryChunk(piece))
            self._firsts.append(self._chunks[-1].first)

    def remove(self, sequence: int) -> bool:
        """Remove the live entry at `sequence`; return False if there is none."""
        chunk = bisect_right(self._firsts, sequence) - 1
        if chunk < 0 or not self._chunks[chunk].remove(sequence):
            return False
        self._live -= 1
        if not len(self._chunks[chunk]):
            del self._chunks[chunk], self._firsts[chunk]
        return True

    def held(self) -> HeldEntries:
        """Return an immutable view of the live entries."""
        return HeldEntries(tuple(chunk.held() for chunk in self._chunks))


class EntryTable:
    """Entries that can be looked up, added and removed. restored: the first entries, settled ones first."""

    def __init__(self, restored: EntryPieces = ()) -> None:
        self._arrays = EntryArrays()
        self._latest: dict[int, Entry] = {}
        self._settled: dict[int, Entry] = {}
        for piece in restored:
            settled = piece.settled
            self._arrays.append(piece if settled.all() else piece.where(settled))
            if not settled.all():
                self._latest.update((entry.sequence, entry) for entry in piece.where(~settled).entries())

    def __len__(self) -> int:
        return len(self._arrays) + len(self._latest) + len(self._settled)

    def get(self, sequence: int) -> Entry | None:
        """Return the entry at `sequence`, or None."""
        entry = self._latest.get(sequence) or self._settled.get(sequence)
        return self._arrays.get(sequence) if entry is None else entry

    def __getitem__(self, sequence: int) -> Entry:
        entry = self.get(sequence)
        if entry is None:
            raise KeyError(sequence)
        return entry

    def first(self) -> int | None:
        """Return the sequence of the earliest entry, None if there is none."""
        first = self._arrays.first()
        return next(iter(self._settled or self._latest), None) if first is None else first

    def add(self, entry: Entry) -> None:
        """Add an entry whose sequence is larger than any before; it is not settled."""
        self._latest[entry.sequence] = entry

    def settle(self, settled: Iterable[tuple[int, bytes]]) -> None:
        """Replace the keys of entries by their paths, in order of sequence; those removed are passed over."""
        for sequence, path in settled:
            entry = self._latest.pop(sequence, None)
            if entry is not None:
                self._settled[sequence] = entry.settle(path)
        if len(self._settled) >= _MAX_SETTLED:
            self._append_settled()

    def held(self) -> HeldEntries:
        """Return an immutable view of all entries, within milliseconds."""
        self._append_settled()
        held = self._arrays.held()
        if not self._latest:
            return held
        latest = EntryRows.from_entries(list(self._latest.values()))
        return HeldEntries((*held.chunks, HeldChunk(latest.rows, np.frombuffer(latest.evidence, np.uint8), None)))

    def rows(self) -> EntryRows:
        """Return all entries in one piece, in order of sequence."""
        return self.held().rows()

    def remove(self, sequence: int) -> None:
        """Remove the entry at `sequence`; KeyError if there is none."""
        if self._latest.pop(sequence, None) is not None or self._settled.pop(sequence, None) is not None:
            return
        if not self._arrays.remove(sequence):
            raise KeyError(sequence)

    def _append_settled(self) -> None:
        if self._settled:
            self._arrays.append(EntryRows.from_entries(list(self._settled.values())))
            self._settled.clear()
