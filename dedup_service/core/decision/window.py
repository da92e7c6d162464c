"""The window: the youngest kept pages, compared one by one before they enter the tables.

All tables of an index change exactly `window` pages behind the log, so that a part of the index on another machine
may be a bounded number of pages behind and still find the same candidates. The pages in between are few: each new
page is compared with all of them, in one loop for a batch of pages. A page of the window is a candidate if

- both have shingles, at most MOST_DIFFERING of the first 128 bits of their sketches differ (the sieve), and their
  whole sketches say that the Jaccard similarity may reach a bound; or
- a fingerprint of both is within the radius of its channel.

Pages of a batch take their places in advance, so that they are compared with each other in the same loop; what is not
kept is closed up when the batch ends. Entries that left the window stay until they are *settled*: have a row in all
tables.

Invariant: the answer is a function of the entries that are in the window, in any order of insertion.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.columns import EvidenceColumns, are_close
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.index.cell_index import MOST_DIFFERING, SIEVE_BYTES
from dedup_service.core.kernels import kernel_inline, long_kernel, popcount
from dedup_service.core.page import CHANNELS, PreparedPage

__all__ = ["Comparison", "PageColumns", "Window"]

_SIEVE_WORDS = SIEVE_BYTES // 8
_FIRST_ROWS = 64
_TILE = 128
"""Rows that are compared with all pages of a batch before the next ones: 32 KiB of sketches."""

_FIRST_TILES = 1
"""Tiles of which all rows may be found for all pages before there is more room."""

_KEYS, _WORDS, _BODY = 1, 2, 4
"""What a page is compared by."""

Places = npt.NDArray[np.int64]
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class PageColumns:
    """What a loop has to know of n pages.

    evidence: n rows. fingerprints: uint64[n, 2], of words and body. marks: uint8[n], what a page is compared by: 1 for
    shingles, 2 and 4 for the fingerprint of words and of body.
    """

    evidence: EvidenceColumns
    fingerprints: npt.NDArray[np.uint64]
    marks: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, pages: Sequence[PreparedPage | Entry]) -> "PageColumns":
        """Return the columns of pages or entries."""
        sizes = np.array([len(page.evidence) for page in pages], np.int64)
        packed = np.frombuffer(b"".join([page.evidence for page in pages]), np.uint8)
        evidence = EvidenceColumns.of(packed, np.cumsum(sizes) - sizes, sizes)
        found = [_fingerprints(page) for page in pages]
        values = np.array([(words or 0, body or 0) for words, body in found], np.uint64).reshape(-1, 2)
        marks = np.array([(words is not None) * _WORDS | (body is not None) * _BODY for words, body in found], np.uint8)
        marks |= (evidence.shingles > 0).astype(np.uint8)
        return cls(evidence, values, marks)

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.marks)

    @property
    def sieves(self) -> npt.NDArray[np.uint64]:
        """The first bits of the sketches: uint64[n, 2]."""
        return self.evidence.sketches[:, :_SIEVE_WORDS]


def _fingerprints(page: PreparedPage | Entry) -> tuple[int | None, int | None]:
    """Return the fingerprints by which a page is found."""
    if isinstance(page, Entry):
        return (page.words, page.body) if page.indexed else (None, None)
    return (page.fingerprint.words, page.fingerprint.body) if page.reason is None else (None, None)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What a batch of pages has in common with the window.

    offsets: int64[n + 1]; page i has places[offsets[i]:offsets[i + 1]], ascending, int64; by_sieve, by_distance:
    bool, how each was found. passed: int64[n], how many the sieve let through.
    """

    offsets: Places
    places: Places
    by_sieve: npt.NDArray[np.bool_]
    by_distance: npt.NDArray[np.bool_]
    passed: Places


class _Found(NamedTuple):
    """Pairs that were found. pages: int32[n], rows: int64[n], flags: uint8[n]."""

    pages: npt.NDArray[np.int32]
    rows: Places
    flags: npt.NDArray[np.uint8]


class Window:
    """Kept pages of the window, in order of their ordinals, and those behind it that are not settled.

    A place is the number of an entry in the order of its coming, from 0.
    """

    def __init__(self) -> None:
        self._columns = EvidenceColumns(_FIRST_ROWS)
        self._sieves = np.empty((_SIEVE_WORDS, _FIRST_ROWS), np.uint64)
        self._fingerprints = np.empty((len(CHANNELS), _FIRST_ROWS), np.uint64)
        self._marks = np.empty(_FIRST_ROWS, np.uint8)
        self._ordinals = np.empty(_FIRST_ROWS, np.int64)
        self._live = np.zeros(_FIRST_ROWS, np.bool_)
        self._entries: list[Entry | None] = [None] * _FIRST_ROWS
        self._places: dict[int, int] = {}
        self._start = self._settled = self._end = self._first = self._announced = 0

    def __len__(self) -> int:
        """Return the number of live entries that are not settled."""
        return len(self._places)

    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence` that is not settled, or None."""
        place = self._places.get(sequence)
        return None if place is None else self._entries[place - self._first]

    def at(self, place: int) -> Entry | None:
        """Return the entry at a place; None if it was removed, or is in the window no more."""
        row = place - self._first
        return self._entries[row] if row >= self._start and self._live[row] else None

    def earliest(self) -> Entry | None:
        """Return the first live entry that is not settled, or None."""
        return self.get(next(iter(self._places))) if self._places else None

    def entries(self) -> list[Entry]:
        """Return the live entries that are not settled, in order of sequence."""
        found = (self._entries[place - self._first] for place in self._places.values())
        return [entry for entry in found if entry is not None]

    def unsettled(self, ordinal: int) -> Iterator[Entry]:
        """Yield the entries up to an ordinal that are not settled, removed ones, too, in order of their ordinals."""
        for row in range(self._settled, self._end):
            entry = self._entries[row]
            if entry is None or entry.ordinal > ordinal:
                return
            yield entry

    def backlog(self, ordinal: int) -> int:
        """Return how many entries up to an ordinal are not settled, removed ones, too."""
        return int(self._ordinals[self._settled : self._end].searchsorted(ordinal, side="right"))

    def announce(self, pages: PageColumns) -> None:
        """Give the pages of a batch their places, in which they are not live. Adds no others until `finish`."""
        self._make_room(len(pages))
        rows = slice(self._end, self._end + len(pages))
        self._columns.put(self._end, pages.evidence)
        self._sieves[:, rows] = pages.sieves.T
        self._fingerprints[:, rows] = pages.fingerprints.T
        self._marks[rows], self._live[rows] = pages.marks, False
        self._announced = len(pages)

    def keep(self, page: int, entry: Entry, *, live: bool = True) -> None:
        """Keep page number `page` of those announced; its ordinal is larger than any before."""
        row = self._end + page
        self._ordinals[row], self._entries[row], self._live[row] = entry.ordinal, entry, live
        if live:
            self._places[entry.sequence] = self._first + row

    def finish(self) -> None:
        """Close up the places of pages of the batch that were not kept."""
        end = self._end + self._announced
        kept = np.array([row for row in range(self._end, end) if self._entries[row] is not None], np.int64)
        first, self._announced = self._end, 0
        self._end += len(kept)
        if self._end == end:
            return
        rows = slice(first, self._end)
        self._columns.move(kept, self._columns, first)
        for array in (self._fingerprints, self._sieves, self._marks, self._ordinals, self._live):
            array[..., rows] = array[..., kept]
        entries = [self._entries[row] for row in kept.tolist()]
        self._entries[first:end] = [*entries, *[None] * (end - self._end)]
        for row, entry in enumerate(entries, first):
            if entry is not None and entry.sequence in self._places:
                self._places[entry.sequence] = self._first + row

    def remove(self, entry: Entry) -> None:
        """Remove a live entry that is not settled; what the cells will still need of it is in `entry`."""
        row = self._places.pop(entry.sequence) - self._first
        self._live[row], self._entries[row] = False, entry

    def forget(self, entry: Entry) -> None:
        """Remove a settled entry, if it is still here."""
        row = self._start + int(self._ordinals[self._start : self._settled].searchsorted(entry.ordinal))
        if row < self._settled and self._ordinals[row] == entry.ordinal:
            self._live[row] = False

    def settle(self, entries: Sequence[Entry]) -> None:
        """Replace the first entries that are not settled by themselves as they are settled."""
        for row, entry in enumerate(entries, self._settled):
            self._entries[row] = entry
            self._places.pop(entry.sequence, None)
        self._settled += len(entries)

    def leave(self, ordinal: int) -> None:
        """Drop the settled entries up to an ordinal."""
        while self._start < self._settled and self._ordinals[self._start] <= ordinal:
            self._entries[self._start] = None
            self._start += 1

    def compare(self, pages: PageColumns, min_jaccard: float, radii: tuple[int | None, int | None]) -> Comparison:
        """Compare the pages of the batch that was announced with those before each, pages of the batch included.

        pages: marks may be fewer than announced. radii: of words and body; None: that channel is not compared.
        """
        room = (1 + _FIRST_TILES) * _TILE * len(pages)
        found = _Found(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.uint8))
        passed, progress = np.zeros(len(pages), np.int64), np.array([self._start, 0], np.int64)
        words, body = (-1 if radius is None else radius for radius in radii)
        while True:
            _compare_tiles(
                pages.marks,
                self._end,
                self._columns.sketches,
                self._sieves,
                self._fingerprints,
                self._marks,
                MOST_DIFFERING,
                min_jaccard,
                words,
                body,
                *found,
                passed,
                progress,
            )
            row, count = progress.tolist()
            if row >= self._end + len(pages):
                break
            found = _Found(*(np.concatenate([array, np.empty_like(array)]) for array in found))
        order = np.argsort(found.pages[:count], kind="stable")
        by = found.flags[order]
        offsets = np.searchsorted(found.pages[order], np.arange(len(pages) + 1))
        places = found.rows[order] + self._first
        return Comparison(offsets, places, (by & 1).astype(bool), (by & 2).astype(bool), passed)

    def similar(self, places: Places, evidence: Evidence, common: npt.NDArray[np.uint32], min_jaccard: float) -> Places:
        """Return which of the places may have a Jaccard similarity of `min_jaccard` to a page: int64[m].

        evidence: of the page. common: those of its sentences that are the own text of its host, ascending.
        """
        rows = places - self._first
        rows = rows[(self._marks[rows] & _KEYS) != 0]
        return self._columns.similar(rows, evidence, common, min_jaccard) + self._first

    def _make_room(self, rows: int) -> None:
        size = len(self._marks)
        if self._end + rows <= size:
            return
        used, count = slice(self._start, self._end), self._end - self._start
        while size < 2 * (count + rows):
            size *= 2
        columns = EvidenceColumns(size)
        self._columns.move(used, columns)
        self._columns = columns
        self._fingerprints, self._sieves = _moved(self._fingerprints, used, size), _moved(self._sieves, used, size)
        self._marks, self._live = _moved(self._marks, used, size), _moved(self._live, used, size)
        self._ordinals = _moved(self._ordinals, used, size)
        self._entries = [*self._entries[used], *[None] * (size - count)]
        self._first += self._start
        self._settled -= self._start
        self._start, self._end = 0, count


def _moved(array: npt.NDArray[T], rows: slice, size: int) -> npt.NDArray[T]:
    """Return an array whose last axis is so long, and begins with some rows of another's."""
    moved = np.zeros((*array.shape[:-1], size), array.dtype)
    moved[..., : rows.stop - rows.start] = array[..., rows]
    return moved


@long_kernel
def _compare_tiles(  # noqa: C901 - a step of its own would take views of the sketches, ten times as long
    page_marks: npt.NDArray[np.uint8],
    end: int,
    sketches: npt.NDArray[np.uint64],
    sieves: npt.NDArray[np.uint64],
    fingerprints: npt.NDArray[np.uint64],
    marks: npt.NDArray[np.uint8],
    most_differing: int,
    min_jaccard: float,
    words: int,
    body: int,
    found_pages: npt.NDArray[np.int32],
    found_rows: npt.NDArray[np.int64],
    found_flags: npt.NDArray[np.uint8],
    passed: npt.NDArray[np.int64],
    progress: npt.NDArray[np.int64],
) -> None:
    """Compare all pages with all rows before theirs, a tile of rows at a time, whose sketches stay in the cache.

    progress: the next row, and how many pairs were found; it stops before a tile whose pairs may not fit. The pages are
    in rows from `end` on. words, body: radii, -1 for a channel that is not compared. The rest is as in `Window` and
    `Comparison`; flags: 1 for the sieve and the sketch, 2 for a fingerprint.
    """
    tile = np.zeros(_TILE, np.uint8)
    eights = tile.view(np.uint64)
    start, count = progress[0], progress[1]
    while start < end + len(page_marks) and count + _TILE * len(page_marks) <= len(found_rows):
        for page in range(max(0, start + 1 - end), len(page_marks)):
            own = end + page
            stop = min(start + _TILE, own)
            before = tile[: stop - start]
            mark_equal(sieves[0, start:stop], sieves[1, start:stop], sieves[:, own], most_differing, before)
            mark_near(fingerprints[0, start:stop], fingerprints[0, own], words, np.uint8(_WORDS), before)
            if body >= 0:
                mark_near(fingerprints[1, start:stop], fingerprints[1, own], body, np.uint8(_BODY), before)
            mask_marks(marks[start:stop], page_marks[page], before)
            tile[stop - start :] = 0
            for eight in range(_TILE >> 3):
                if eights[eight] == 0:
                    continue
                for place in range(8 * eight, 8 * eight + 8):
                    by, row = tile[place], start + place
                    if by == 0:
                        continue
                    flag = 2 if by & (_WORDS | _BODY) else 0
                    if by & _KEYS:
                        passed[page] += 1
                        if are_close(sketches, own, sketches, row, min_jaccard):
                            flag |= 1
                    if flag:
                        found_pages[count], found_rows[count], found_flags[count] = page, row, flag
                        count += 1
        start += _TILE
    progress[0], progress[1] = start, count


# Loops of their own, from 0 on and without branches, which the compiler vectorises.


@kernel_inline
def mark_equal(
    first: npt.NDArray[np.uint64],
    second: npt.NDArray[np.uint64],
    sieve: npt.NDArray[np.uint64],
    most: int,
    rows: npt.NDArray[np.uint8],
) -> None:
    """Set rows to _KEYS where at most so many bits of two words differ from those of a sieve, to 0 elsewhere."""
    word_0, word_1 = sieve[0], sieve[1]
    for row in range(len(rows)):
        rows[row] = popcount(first[row] ^ word_0) + popcount(second[row] ^ word_1) <= most


@kernel_inline
def mark_near(
    values: npt.NDArray[np.uint64], value: np.uint64, radius: int, mark: np.uint8, rows: npt.NDArray[np.uint8]
) -> None:
    """Add a mark to rows where at most `radius` bits differ from a fingerprint."""
    for row in range(len(rows)):
        rows[row] |= mark * np.uint8(popcount(values[row] ^ value) <= radius)


@kernel_inline
def mask_marks(marks: npt.NDArray[np.uint8], by: np.uint8, rows: npt.NDArray[np.uint8]) -> None:
    """Leave of each row what both it and the page are compared by."""
    for row in range(len(rows)):
        rows[row] &= marks[row] & by
