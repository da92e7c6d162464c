"""Where settled entries are: those that have left the window, by row number.

A *row* is the number of a settled entry, a uint32: what all tables of an index hold instead of the entry. Rows ascend
in the order of the log and are never used again. `EntryStore` says what a decider needs of a store; `MemoryStore`
keeps everything in memory, and `runtime.store` on disk.

`MemoryStore` has chunks of CHUNK_ROWS rows. Growth copies one chunk at most, a removed row is marked, and a chunk is
compacted when more than half of it is marked. What `held` returned never changes, so any thread may read it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import ROW, EntryRows, EvidenceSpans, Rows, Spans, entry_of
from dedup_service.core.errors import StateError

CHUNK_ROWS = 1 << 16
"""6 MB of rows, and evidence: little to copy when a chunk is compacted, and few chunks to choose from."""

_PIECE_BYTES = 1 << 23
"""Bytes of evidence that an export copies at a time."""

_MIN_ROWS = 4096
"""Rows that an array has after its first growth, at least."""

_MAX_ROWS = (1 << 32) - 1

Numbers = npt.NDArray[np.integer[Any]]


class HeldPart(Protocol):
    """Some of the live entries, as they were; any thread may read it."""

    def pieces(self) -> Iterator[EntryRows]:
        """Yield copies of the live entries piece by piece, in order of sequence; may be repeated."""
        ...

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry among them; reads few entries."""
        ...

    def size(self) -> tuple[int, int]:
        """Return the number of live entries and the bytes of their evidence."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldEntries:
    """A view of all live entries, which any thread may read."""

    parts: tuple[HeldPart, ...] = ()

    def __iter__(self) -> Iterator[EntryRows]:
        """Yield copies of the live entries piece by piece, in order of sequence; may be repeated."""
        return (piece for part in self.parts for piece in part.pieces() if len(piece))

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry; by bisection."""
        return any(part.has(sequence) for part in self.parts)

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their evidence."""
        sizes = [part.size() for part in self.parts]
        return sum(entries for entries, _ in sizes), sum(evidence for _, evidence in sizes)

    def rows(self) -> EntryRows:
        """Return the live entries in one piece, in order of sequence."""
        parts = list(self)
        if not parts:
            return EntryRows.none()
        return EntryRows(np.concatenate([part.rows for part in parts]), b"".join(part.evidence for part in parts))


class EntryStore(Protocol):
    """Settled entries by row. Methods that read take rows in any order; a row that is not live may be asked for."""

    def __len__(self) -> int:
        """Return the number of live rows."""
        ...

    def reserve(self, rows: int, evidence_bytes: int) -> int:
        """Return the number of the first of so many rows that the next call of `append` gets, which are consecutive.

        evidence_bytes: of all of them, at most.
        """
        ...

    def append(self, entries: EntryRows) -> npt.NDArray[np.uint32]:
        """Append entries that come after all others; return their rows: uint32[n]."""
        ...

    def live(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return which rows were appended and not removed: bool[n]."""
        ...

    def remove(self, numbers: Numbers) -> None:
        """Remove live rows, each once; KeyError, and none is removed, if one is not live."""
        ...

    def rows(self, numbers: Numbers) -> Rows:
        """Return ROW[n] of live rows."""
        ...

    def evidence(self, numbers: Numbers) -> EvidenceSpans:
        """Return the evidence of live rows, each followed by its path; it does not read the rows themselves."""
        ...

    def first(self, after: int = -1, limit: int = 1) -> npt.NDArray[np.int64]:
        """Return the `limit` first live rows behind row `after`, ascending: int64[m], fewer if there are no more."""
        ...

    def find(self, sequence: int) -> int | None:
        """Return the row of the live entry at `sequence`, or None."""
        ...

    def live_pieces(self) -> Iterator[tuple[npt.NDArray[np.uint32], EntryRows]]:
        """Yield all live rows with their entries piece by piece, ascending; the store does not change meanwhile."""
        ...

    def held(self) -> HeldEntries:
        """Return a view of the live entries, within milliseconds for any number of them."""
        ...


def entries_at(store: EntryStore, numbers: Numbers) -> list[Entry]:
    """Return live rows as values."""
    if not len(numbers):
        return []
    rows, spans = store.rows(numbers), store.evidence(numbers)
    starts = spans.starts.tolist()
    return [
        entry_of(row, spans.data, start, number)
        for row, start, number in zip(rows.tolist(), starts[:-1], numbers.tolist(), strict=True)
    ]


def row_of_sequence(store: EntryStore, sequence: int, first: int, end: int) -> int | None:
    """Return the live row of a sequence among the rows from `first` to `end` - 1, of which some live; by bisection."""
    while first < end:
        middle = (first + end) // 2
        found = store.first(middle - 1)
        if not len(found) or found[0] >= end:
            end = middle
            continue
        there = int(store.rows(found)["sequence"][0])
        if there == sequence:
            return int(found[0])
        if there < sequence:
            first = int(found[0]) + 1
        else:
            end = middle
    return None


class MemoryStore:
    """An `EntryStore` in memory."""

    def __init__(self) -> None:
        self._chunks: dict[int, _Chunk] = {}
        self._next_row = self._live = 0

    def __len__(self) -> int:
        return self._live

    @property
    def next_row(self) -> int:
        """The number of the next row that is appended."""
        return self._next_row

    @property
    def size_bytes(self) -> int:
        """Memory of all rows with their evidence."""
        return sum(chunk.size_bytes for chunk in self._chunks.values())

    def reserve(self, rows: int, evidence_bytes: int) -> int:  # noqa: ARG002 - of the protocol
        """Return the number of the next row; StateError if there are not so many left."""
        if self._next_row + rows > _MAX_ROWS:
            raise StateError(f"the index has given all {_MAX_ROWS} row numbers: begin a new state")
        return self._next_row

    def append(self, entries: EntryRows) -> npt.NDArray[np.uint32]:
        """Append entries; return their rows: uint32[n]."""
        first = self.reserve(len(entries), 0)
        starts = np.append(entries.evidence_starts, len(entries.evidence))
        done = 0
        while done < len(entries):
            number, place = divmod(self._next_row, CHUNK_ROWS)
            stop = min(len(entries), done + CHUNK_ROWS - place)
            chunk = self._chunks.setdefault(number, _Chunk())
            chunk.append(place, entries.rows[done:stop], entries.evidence[starts[done] : starts[stop]])
            self._next_row += stop - done
            done = stop
        self._live += len(entries)
        return np.arange(first, self._next_row, dtype=np.uint32)

    def live(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return which rows are live: bool[n]."""
        live = np.zeros(len(numbers), np.bool_)
        for chunk, places, offsets in self._of_chunks(numbers):
            live[places] = chunk.has(offsets)
        return live

    def remove(self, numbers: Numbers) -> None:
        """Remove live rows; KeyError, and none is removed, if one is not live."""
        live = self.live(numbers)
        if not live.all():
            raise KeyError(f"no live row {numbers[~live][0]}")
        for chunk, _, offsets in self._of_chunks(numbers):
            chunk.remove(offsets)
        self._live -= len(numbers)
        for number in np.unique(numbers.astype(np.int64) // CHUNK_ROWS).tolist():
            if not len(self._chunks[number]) and (number + 1) * CHUNK_ROWS <= self._next_row:
                del self._chunks[number]

    def rows(self, numbers: Numbers) -> Rows:
        """Return ROW[n]."""
        rows = np.empty(len(numbers), ROW)
        for chunk, places, offsets in self._of_chunks(numbers):
            rows[places] = chunk.rows[chunk.places(offsets)]
        return rows

    def evidence(self, numbers: Numbers) -> EvidenceSpans:
        """Return the evidence of rows, each followed by its path."""
        parts: list[bytes] = [b""] * len(numbers)
        sizes = np.zeros(len(numbers), np.int64)
        for chunk, places, offsets in self._of_chunks(numbers):
            sizes[places] = chunk.evidence_sizes(offsets)
            for place, part in zip(places.tolist(), chunk.spans(offsets), strict=True):
                parts[place] = part
        spans = Spans.joined(parts)
        return EvidenceSpans(spans.data, spans.starts, sizes)

    def first(self, after: int = -1, limit: int = 1) -> npt.NDArray[np.int64]:
        """Return the first live rows behind `after`, ascending: int64[m]."""
        found: list[npt.NDArray[np.int64]] = []
        left = limit
        for number, chunk in self._chunks.items():
            if (number + 1) * CHUNK_ROWS > after + 1 and left > 0:
                offsets = chunk.live_offsets(after + 1 - number * CHUNK_ROWS, left)
                found.append(offsets + number * CHUNK_ROWS)
                left -= len(offsets)
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def find(self, sequence: int) -> int | None:
        """Return the row of the live entry at `sequence`, or None."""
        return row_of_sequence(self, sequence, 0, self._next_row)

    def live_pieces(self) -> Iterator[tuple[npt.NDArray[np.uint32], EntryRows]]:
        """Yield all live rows with their entries, a chunk at a time."""
        for number, chunk in self._chunks.items():
            numbers = (chunk.live_offsets(0, CHUNK_ROWS) + number * CHUNK_ROWS).astype(np.uint32)
            yield numbers, chunk.held().live()

    def held(self) -> HeldEntries:
        """Return an immutable view of the live entries."""
        return HeldEntries(tuple(chunk.held() for chunk in self._chunks.values()))

    def _of_chunks(self, numbers: Numbers) -> Iterator[tuple["_Chunk", npt.NDArray[np.intp], npt.NDArray[np.int64]]]:
        """Yield each chunk with the places in `numbers` of its rows, and their offsets; leave out rows of no chunk."""
        wide = numbers.astype(np.int64)
        of_chunk = wide // CHUNK_ROWS
        different = sorted(set(of_chunk.tolist()))
        for number in different:
            chunk = self._chunks.get(number)
            if chunk is not None:
                places = np.arange(len(wide)) if len(different) == 1 else np.flatnonzero(of_chunk == number)
                yield chunk, places, wide[places] - number * CHUNK_ROWS


class _Chunk:
    """Rows of one chunk, by their offsets from its first row."""

    __slots__ = ("_alive", "_evidence", "_evidence_size", "_offsets", "_removed", "_size", "_starts", "rows")

    def __init__(self) -> None:
        self.rows: Rows = np.empty(0, ROW)
        self._offsets = np.empty(0, np.int64)
        self._starts = np.empty(0, np.int64)
        self._alive = np.empty(0, np.bool_)
        self._evidence = np.empty(0, np.uint8)
        self._size = self._evidence_size = self._removed = 0

    def __len__(self) -> int:
        return self._size - self._removed

    @property
    def size_bytes(self) -> int:
        """Memory of the arrays, as far as they are used: the system provides the rest with its first use."""
        arrays: Sequence[npt.NDArray[Any]] = (self.rows, self._offsets, self._starts, self._alive)
        return self._evidence_size + sum(self._size * array.itemsize for array in arrays)

    def append(self, offset: int, rows: Rows, evidence: bytes) -> None:
        """Append rows, the first of them at `offset`."""
        start, sizes = self._size, rows["evidence_bytes"].astype(np.int64)
        self.rows = _extended(self.rows, start, rows, CHUNK_ROWS)
        self._offsets = _extended(self._offsets, start, np.arange(offset, offset + len(rows)), CHUNK_ROWS)
        self._starts = _extended(self._starts, start, np.cumsum(sizes) - sizes + self._evidence_size, CHUNK_ROWS)
        self._alive = _extended(self._alive, start, np.ones(len(rows), np.bool_), CHUNK_ROWS)
        self._evidence = _extended(self._evidence, self._evidence_size, np.frombuffer(evidence, np.uint8))
        self._size += len(rows)
        self._evidence_size += len(evidence)

    def places(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return where rows are in the arrays; KeyError for one that compaction left out."""
        places, there = self._look_up(offsets)
        if not there.all():
            raise KeyError(f"no row at offset {offsets[~there][0]}")
        return places

    def has(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which rows are live."""
        places, there = self._look_up(offsets)
        found: npt.NDArray[np.bool_] = there & self._alive[np.where(there, places, 0)] if self._size else there
        return found

    def spans(self, offsets: npt.NDArray[np.int64]) -> list[bytes]:
        """Return the evidence of rows."""
        places = self.places(offsets)
        starts, sizes = self._starts[places], self.rows["evidence_bytes"][places].astype(np.int64)
        pairs = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return [self._evidence[start:end].tobytes() for start, end in pairs]

    def evidence_sizes(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the bytes of the evidence of rows, without the paths: int64[n]."""
        rows = self.rows[self.places(offsets)]
        sizes: npt.NDArray[np.int64] = rows["evidence_bytes"].astype(np.int64) - rows["keys_bytes"]
        return sizes

    def remove(self, offsets: npt.NDArray[np.int64]) -> None:
        """Remove live rows."""
        self._alive[self.places(offsets)] = False
        self._removed += len(offsets)
        if self._removed > self._size // 2:
            self._compact()

    def live_offsets(self, from_offset: int, limit: int) -> npt.NDArray[np.int64]:
        """Return the first live offsets from one on, ascending."""
        first = int(self._offsets[: self._size].searchsorted(from_offset))
        for end in (first + 4 * limit, self._size):  # most rows near the first one are live: seldom all are looked at
            alive = np.flatnonzero(self._alive[first : min(end, self._size)])[:limit]
            if len(alive) == limit:
                break
        return self._offsets[first + alive]

    def held(self) -> "_HeldChunk":
        """Return an immutable view of the present rows."""
        alive = self._alive[: self._size].copy() if self._removed else None
        return _HeldChunk(self.rows[: self._size], self._evidence[: self._evidence_size], alive)

    def _look_up(self, offsets: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        own = self._offsets[: self._size]
        places = own.searchsorted(offsets)
        there = places < self._size
        if self._size:
            there &= own[np.minimum(places, self._size - 1)] == offsets
        return places, there

    def _compact(self) -> None:
        alive = self._alive[: self._size]
        live = self.held().live()
        self.rows, self._offsets = live.rows, self._offsets[: self._size][alive]
        self._starts, self._alive = live.evidence_starts, np.ones(len(live), np.bool_)
        self._evidence = np.frombuffer(live.evidence, np.uint8)
        self._size, self._evidence_size, self._removed = len(live), len(live.evidence), 0


@dataclass(frozen=True, slots=True, eq=False)
class _HeldChunk:
    """An immutable view of a chunk. rows: ROW[n]; evidence: uint8[m]; alive: bool[n], None for all rows."""

    rows: Rows
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

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry among them."""
        place = bisect_left(self.rows["sequence"], sequence)
        is_there = place < len(self.rows) and int(self.rows["sequence"][place]) == sequence
        return is_there and (self.alive is None or bool(self.alive[place]))

    def size(self) -> tuple[int, int]:
        """Return the number of live entries and the bytes of their evidence."""
        sizes = self.rows["evidence_bytes"] if self.alive is None else self.rows["evidence_bytes"][self.alive]
        return len(sizes), int(sizes.sum(dtype=np.int64))


def _extended(array: npt.NDArray[Any], used: int, more: npt.NDArray[Any], most: int | None = None) -> npt.NDArray[Any]:
    """Return the first `used` rows of `array`, then `more`: in place, or in an array of four times the size.

    Growing by halves would copy three times as much; memory that is not used yet is none. most: rows of the largest
    array that is useful, None without a limit.
    """
    needed = used + len(more)
    if not len(more):
        return array
    if needed > len(array):
        room = max(4 * needed, _MIN_ROWS)
        grown = np.empty(room if most is None else max(needed, min(room, most)), array.dtype)
        grown[:used] = array[:used]
        array = grown
    array[used:needed] = more
    return array


@dataclass(frozen=True, slots=True, eq=False)
class HeldValues:
    """Entries that are values, as a part of a view."""

    entries: tuple[Entry, ...]

    def pieces(self) -> Iterator[EntryRows]:
        """Yield the entries in one piece."""
        yield EntryRows.from_entries(self.entries)

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` is among them."""
        return any(entry.sequence == sequence for entry in self.entries)

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their evidence."""
        return len(self.entries), sum(len(entry.evidence) + len(entry.keys) for entry in self.entries)
