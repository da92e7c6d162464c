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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import BODY_DECIDES, ROW, SETTLED, TEXT_HASH, Rows, Spans, entry_in
from dedup_service.core.decision.equal_hashes import EqualRows, equal_rows
from dedup_service.core.decision.page_columns import BODY_MARK, KEYS_MARK, WORDS_MARK, PageColumns
from dedup_service.core.decision.page_runs import CandidatePool, RunWindow, facts_of
from dedup_service.core.evidence.columns import SKETCH_WORDS, EvidenceColumns, bits_between, most_bits_apart
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.index.cell_index import MOST_DIFFERING, SIEVE_BYTES
from dedup_service.core.kernels import kernel_inline, long_kernel, popcount
from dedup_service.core.page import CHANNELS
from dedup_service.core.wide_kernels import (
    MAX_BLOCK_RADIUS,
    SIEVE_PLANES,
    WIDE,
    lowest_bit,
    near_rows,
    rows_with_equal_block,
    similar_rows,
)

_SIEVE_WORDS = SIEVE_BYTES // 8
_FIRST_ROWS = 64
_HASHES = ("url_hash", "text_hash", "body_hash")
_TILE = 128
"""Rows that are compared with all pages of a batch before the next ones: 32 KiB of sketches."""

_FIRST_TILES = 1
"""Tiles of which all rows may be found for all pages before there is more room."""

_AT_ONCE = 8
"""Rows that are listed without asking whether there are so many."""

_ONE = np.uint64(1)

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)

_NO_PLACES, _NOT_ANY = np.empty(0, np.int64), np.empty(0, np.bool_)


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


@dataclass(frozen=True, slots=True, eq=False)
class Unsettled:
    """Entries that are to be settled, n of them, in order; of those that were removed, keys and ordinal alone.

    rows: ROW[n], a copy. packed, keys: evidence and keys. sieves: uint64[n, 2]. live: bool[n].
    """

    rows: Rows
    packed: Sequence[bytes]
    keys: Sequence[bytes]
    sieves: npt.NDArray[np.uint64]
    live: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class YoungPlaces:
    """Where entries that are not settled, or earlier pages of the batch, have the hashes of each page of a batch.

    urls: the page's URL; claims: the one that it claims; texts, bodies: title and body, and a body that decides.
    """

    urls: EqualRows
    claims: EqualRows
    texts: EqualRows
    bodies: EqualRows


class Window:
    """Kept pages of the window, in order of their ordinals, and those behind it that are not settled.

    A place is the number of an entry in the order of its coming, from 0.
    """

    def __init__(self) -> None:
        self._columns = EvidenceColumns(_FIRST_ROWS)
        # The loop reads WIDE rows at a time, so there are some behind the last one.
        self._sieves = np.empty((SIEVE_PLANES, _FIRST_ROWS + WIDE), np.uint8)
        self._fingerprints = np.empty((len(CHANNELS), _FIRST_ROWS + WIDE), np.uint64)
        self._marks = np.empty(_FIRST_ROWS, np.uint8)
        self._records = np.zeros(_FIRST_ROWS, ROW)
        # Fields of the records again: a search in a field of records would copy it first.
        self._sequences, self._ordinals = np.zeros(_FIRST_ROWS, np.int64), np.zeros(_FIRST_ROWS, np.int64)
        self._hashes = np.zeros((len(_HASHES), _FIRST_ROWS), np.uint64)
        self._flags = np.zeros(_FIRST_ROWS, np.uint8)
        self._live = np.zeros(_FIRST_ROWS, np.bool_)
        self._numbers = np.full(_FIRST_ROWS, -1, np.int64)
        self._packed: list[bytes] = [b""] * _FIRST_ROWS
        self._keys: list[bytes] = [b""] * _FIRST_ROWS
        self._kept: list[int] = []
        self._start = self._settled = self._end = self._first = self._announced = self._young = 0
        self._left = -1

    def __len__(self) -> int:
        """Return the number of live entries that are not settled."""
        return self._young

    def get(self, sequence: int) -> Entry | None:
        """Return the live entry at `sequence` that is not settled, or None."""
        row = self._row_of(sequence)
        return None if row is None else self._entry(row)

    def at(self, place: int) -> Entry | None:
        """Return the entry at a place; None if it was removed, or is in the window no more."""
        row = place - self._first
        if row < self._start or not self._live[row]:
            return None
        has_left = row < self._settled and self._ordinals[row] <= self._left
        return None if has_left else self._entry(row)

    def earliest(self) -> Entry | None:
        """Return the first live entry that is not settled, or None."""
        rows = self._live_rows()
        return self._entry(int(rows[0])) if len(rows) else None

    def entries(self) -> list[Entry]:
        """Return the live entries that are not settled, in order of sequence."""
        return [self._entry(row) for row in self._live_rows().tolist()]

    def rows(self) -> Rows:
        """Return ROW of the live entries that are not settled, in order of sequence: ROW[n]."""
        return self._records[self._live_rows()]

    def visit(self, url: int) -> Entry | None:
        """Return the first live entry that is not settled and has this hash of its URL, or None."""
        rows = self._live_rows()
        found = rows[self._records["url_hash"][rows] == np.uint64(url)]
        return self._entry(int(found[0])) if len(found) else None

    def unsettled(self, ordinal: int) -> Unsettled:
        """Return the entries up to an ordinal that are not settled, removed ones, too. No batch is announced."""
        part = slice(self._settled, self._settled + self.backlog(ordinal))
        live = self._live[part].copy()
        sieves = np.where(live[:, np.newaxis], self._columns.sketches[part, :_SIEVE_WORDS], np.uint64(0))
        return Unsettled(self._records[part].copy(), self._packed[part], self._keys[part], sieves, live)

    def backlog(self, ordinal: int) -> int:
        """Return how many entries up to an ordinal are not settled, removed ones, too."""
        return int(self._ordinals[self._settled : self._end].searchsorted(ordinal, side="right"))

    def announce(self, pages: PageColumns) -> None:
        """Give the pages of a batch their places, in which they are not live. Adds no others until `finish`."""
        left = int(self._ordinals[self._start : self._settled].searchsorted(self._left, side="right"))
        for values in (self._packed, self._keys):
            values[self._start : self._start + left] = [b""] * left
        self._start += left
        self._make_room(len(pages))
        rows = slice(self._end, self._end + len(pages))
        self._columns.put(self._end, pages.evidence)
        self._sieves[:, rows] = pages.evidence.sketches.view(np.uint8)[:, :SIEVE_PLANES].T
        for channel, fingerprints in zip(CHANNELS, self._fingerprints, strict=True):
            fingerprints[rows] = pages.rows[channel]
        self._marks[rows], self._live[rows], self._numbers[rows] = pages.marks, False, -1
        self._records[rows] = pages.rows
        self._sequences[rows], self._ordinals[rows] = pages.rows["sequence"], pages.rows["ordinal"]
        for name, hashes in zip(_HASHES, self._hashes, strict=True):
            hashes[rows] = pages.rows[name]
        self._flags[rows] = pages.rows["flags"]
        self._packed[rows], self._keys[rows] = pages.packed, pages.keys
        self._announced = len(pages)

    def keep_all(self, first: int, kept: Mask) -> None:
        """Keep those of the pages announced, from number `first` on; their ordinals are larger than any before."""
        rows = self._end + first + np.flatnonzero(kept)
        self._kept += rows.tolist()
        self._live[rows] = True
        self._young += len(rows)

    def keep(self, page: int, *, live: bool = True) -> None:
        """Keep page number `page` of those announced; its ordinal is larger than any before."""
        row = self._end + page
        self._kept.append(row)
        if live:
            self._live[row] = True
            self._young += 1

    def finish(self) -> None:
        """Close up the places of pages of the batch that were not kept."""
        if not self._announced:
            return
        first, end = self._end, self._end + self._announced
        self._announced, kept, self._kept = 0, self._kept, []
        self._end += len(kept)
        if self._end == end:
            return
        if kept:
            rows, moved = slice(first, self._end), np.array(kept, np.int64)
            self._columns.move(moved, self._columns, first)
            moving = (self._fingerprints, self._sieves, self._marks, self._live, self._hashes, self._flags)
            for array in (*moving, self._records, self._sequences, self._ordinals):
                array[..., rows] = array[..., moved]
        for values in (self._packed, self._keys):
            values[first:end] = [*(values[row] for row in kept), *[b""] * (end - self._end)]

    def remove(self, sequence: int) -> None:
        """Remove the live entry at `sequence` that is not settled; the cells will still need its keys."""
        row = self._row_of(sequence)
        if row is None:
            raise KeyError(sequence)
        self._live[row], self._packed[row] = False, b""
        for flags in (self._records["flags"], self._flags):
            flags[row] &= ~np.uint8(BODY_DECIDES)
        self._young -= 1

    def forget(self, entry: Entry) -> None:
        """Remove a settled entry, if it is still here."""
        if entry.ordinal <= self._left:
            return
        row = self._start + int(self._ordinals[self._start : self._settled].searchsorted(entry.ordinal))
        if row < self._settled and self._ordinals[row] == entry.ordinal:
            self._live[row] = False

    def settle(self, numbers: Places, paths: Sequence[bytes]) -> None:
        """Settle the first entries that are not. numbers: their rows, int64[n]; paths: of each."""
        part = slice(self._settled, self._settled + len(paths))
        self._keys[part] = paths
        self._numbers[part] = numbers
        self._records["flags"][part] |= np.uint8(SETTLED)
        self._young -= int(np.count_nonzero(self._live[part]))
        self._settled = part.stop

    def leave(self, ordinal: int) -> None:
        """Drop the settled entries up to an ordinal."""
        self._left = max(self._left, ordinal)

    def equal(self, pages: PageColumns) -> YoungPlaces:
        """Return where the hashes of pages are that were announced, in entries and pages before each."""
        urls, texts, bodies = self._hashes[:, self._end : self._end + len(pages)]
        every = np.ones(len(pages), np.bool_)
        return YoungPlaces(
            self._equal(urls, every, 0, 0),
            self._equal(pages.claims, pages.claiming, 0, 0),
            self._equal(texts, every, 1, TEXT_HASH),
            self._equal(bodies, every, 2, BODY_DECIDES),
        )

    def live(self, places: Places, limit: int) -> list[Entry]:
        """Return the first `limit` live entries at places, which are ascending."""
        rows = places - self._first
        return [self._entry(row) for row in rows[self._live[rows]][:limit].tolist()]

    def compare(
        self, marks: npt.NDArray[np.uint8], min_jaccard: float, radii: tuple[int | None, int | None]
    ) -> Comparison:
        """Compare the pages of the batch that was announced with those before each, pages of the batch included.

        marks: of the pages, uint8[n], perhaps fewer than announced. radii: of words and body; None: that channel is not
        compared.
        """
        room = (1 + _FIRST_TILES) * _TILE * len(marks)
        found = _Found(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.uint8))
        passed, progress = np.zeros(len(marks), np.int64), np.array([self._start, 0], np.int64)
        words, body = (-1 if radius is None else radius for radius in radii)
        while True:
            _compare_tiles(
                marks,
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
            if row >= self._end + len(marks):
                break
            found = _Found(*(np.concatenate([array, np.empty_like(array)]) for array in found))
        if not count:
            return Comparison(np.zeros(len(marks) + 1, np.int64), _NO_PLACES, _NOT_ANY, _NOT_ANY, passed)
        order = np.argsort(found.pages[:count], kind="stable")
        by = found.flags[order]
        offsets = np.searchsorted(found.pages[order], np.arange(len(marks) + 1))
        places = found.rows[order] + self._first
        return Comparison(offsets, places, (by & 1).astype(bool), (by & 2).astype(bool), passed)

    def pool(self, places: Places) -> tuple[Mask, Places, CandidatePool]:
        """Return the entries at some places as candidates.

        Says of each place whether it is compared by shingles, bool[n], and its number in the pool, int64[n].
        """
        rows = places - self._first
        compared = (self._marks[rows] & KEYS_MARK) != 0
        rows, numbers = np.unique(rows, return_inverse=True)
        evidence = Spans.joined([self._packed[row] for row in rows.tolist()])
        starts, sizes = evidence.starts[:-1], np.diff(evidence.starts)
        gone = np.zeros(len(rows), np.bool_)
        pool = CandidatePool(
            facts_of(self._records[rows], rows), evidence.data, starts, sizes, EvidenceColumns(0), gone
        )
        return compared, numbers.astype(np.int64), pool

    def for_run(self, length: int, first_page: int) -> RunWindow:
        """Return where the pages that were announced are, for a run."""
        return RunWindow(self._live, self._end, self._settled, length, first_page)

    def similar(self, places: Places, evidence: Evidence, common: npt.NDArray[np.uint32], min_jaccard: float) -> Places:
        """Return which of the places may have a Jaccard similarity of `min_jaccard` to a page: int64[m].

        evidence: of the page. common: those of its sentences that are the own text of its host, ascending.
        """
        rows = places - self._first
        rows = rows[(self._marks[rows] & KEYS_MARK) != 0]
        return self._columns.similar(rows, evidence, common, min_jaccard) + self._first

    def _equal(self, values: npt.NDArray[np.uint64], asked: Mask, column: int, flag: int) -> EqualRows:
        """Return where the hashes of pages are in a column of _HASHES, among rows that have a flag."""
        rows = slice(self._settled, self._end + len(values))
        own = self._end - self._settled
        found = equal_rows(values, asked, self._hashes[column, rows], self._flags[rows], flag, own)
        return EqualRows(found.offsets, found.rows + (self._first + self._settled)) if len(found.rows) else found

    def _row_of(self, sequence: int) -> int | None:
        """Return the number of the live entry at `sequence` that is not settled, or None."""
        end = self._end + self._announced
        row = self._settled + int(self._sequences[self._settled : end].searchsorted(sequence))
        return row if row < end and self._sequences[row] == sequence and self._live[row] else None

    def _live_rows(self) -> npt.NDArray[np.int64]:
        """Return the numbers of the live entries that are not settled, ascending."""
        return self._settled + np.flatnonzero(self._live[self._settled : self._end + self._announced])

    def _entry(self, row: int) -> Entry:
        return entry_in(self._records[row].item(), self._packed[row], self._keys[row], int(self._numbers[row]))

    def _make_room(self, rows: int) -> None:
        """Have room for more rows: those that have left are dropped when the arrays are moved."""
        size = len(self._marks)
        if self._end + rows <= size:
            return
        used, count = slice(self._start, self._end), self._end - self._start
        size = max(_FIRST_ROWS, (count + rows) * 3 // 2)  # half as many again come before the next move
        columns = EvidenceColumns(size)
        self._columns.move(used, columns)
        self._columns = columns
        self._fingerprints = _moved(self._fingerprints, used, size + WIDE)
        self._sieves = _moved(self._sieves, used, size + WIDE)
        self._marks, self._live = _moved(self._marks, used, size), _moved(self._live, used, size)
        self._records, self._numbers = _moved(self._records, used, size), _moved(self._numbers, used, size)
        self._sequences, self._ordinals = _moved(self._sequences, used, size), _moved(self._ordinals, used, size)
        self._hashes, self._flags = _moved(self._hashes, used, size), _moved(self._flags, used, size)
        self._packed = [*self._packed[used], *[b""] * (size - count)]
        self._keys = [*self._keys[used], *[b""] * (size - count)]
        self._first += self._start
        self._settled -= self._start
        self._start, self._end = 0, count


def _moved(array: npt.NDArray[T], rows: slice, size: int) -> npt.NDArray[T]:
    """Return an array whose last axis is so long, and begins with some rows of another's."""
    moved = np.zeros((*array.shape[:-1], size), array.dtype)
    moved[..., : rows.stop - rows.start] = array[..., rows]
    return moved


@long_kernel
def _compare_tiles(
    page_marks: npt.NDArray[np.uint8],
    end: int,
    sketches: npt.NDArray[np.uint64],
    sieves: npt.NDArray[np.uint8],
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
    start, count = progress[0], progress[1]
    planes, stride, of_pages = sieves.ctypes.data, sieves.shape[1], sketches.ctypes.data
    most_apart, listed = most_bits_apart(min_jaccard), np.empty(_TILE + _AT_ONCE, np.int64)
    while start < end + len(page_marks) and count + _TILE * len(page_marks) <= len(found_rows):
        for page in range(max(0, start + 1 - end), len(page_marks)):
            own, by, several = end + page, page_marks[page], 0
            for first in range(start, min(start + _TILE, own), WIDE):
                alike = np.uint64(0)
                if by & KEYS_MARK:
                    alike = similar_rows(planes + first, stride, of_pages + 8 * SKETCH_WORDS * own, most_differing)
                near = near_in(fingerprints, 0, own, first, words if by & WORDS_MARK else -1)
                near_body = near_in(fingerprints, 1, own, first, body if by & BODY_MARK else -1)
                within = ~np.uint64(0) if own - first >= WIDE else (_ONE << np.uint64(own - first)) - _ONE
                several = list_rows(alike & within, near & within, near_body & within, first, listed, several)
            for place in range(several):
                row, mark = listed[place] >> 3, marks[listed[place] >> 3] & listed[place]
                flag = np.uint8(0)
                if mark & KEYS_MARK:
                    passed[page] += 1
                    flag = np.uint8(bits_between(sketches, own, sketches, row) <= most_apart)
                if mark & (WORDS_MARK | BODY_MARK):
                    flag |= np.uint8(2)
                found_pages[count], found_rows[count], found_flags[count] = page, row, flag
                count += flag != 0
        start += _TILE
    progress[0], progress[1] = start, count


@kernel_inline
def list_rows(
    alike: np.uint64, near: np.uint64, near_body: np.uint64, first: int, listed: npt.NDArray[np.int64], several: int
) -> int:
    """Append the rows of three masks, the first of which is `first`, to `listed`; return how many it has then.

    A number is eight times the row, plus the marks by which it was found. There is room for _AT_ONCE more. How many
    rows a mask has is hard to predict for a processor, so that many are written whether they are there or not.
    """
    if near | near_body:
        for bit in range(WIDE):
            mark = bit_of(alike, bit) * KEYS_MARK | bit_of(near, bit) * WORDS_MARK | bit_of(near_body, bit) * BODY_MARK
            listed[several] = (first + bit) << 3 | mark
            several += mark != 0
        return several
    count, left = popcount(alike), alike
    for place in range(_AT_ONCE):
        listed[several + place] = (first + lowest_bit(left)) << 3 | KEYS_MARK
        left &= left - _ONE
    for place in range(_AT_ONCE, count):
        listed[several + place] = (first + lowest_bit(left)) << 3 | KEYS_MARK
        left &= left - _ONE
    return several + count


@kernel_inline
def bit_of(word: np.uint64, bit: int) -> np.int64:
    """Return one bit of a word, 0 or 1."""
    return np.int64(word >> np.uint64(bit) & _ONE)


@kernel_inline
def near_in(fingerprints: npt.NDArray[np.uint64], channel: int, own: int, first: int, radius: int) -> np.uint64:
    """Return which of WIDE rows from `first` on are within a radius of row `own` in a channel; below 0: none."""
    if radius < 0:
        return np.uint64(0)
    values = fingerprints.ctypes.data + 8 * (channel * fingerprints.shape[1] + first)
    value = fingerprints[channel, own]
    if radius <= MAX_BLOCK_RADIUS and not rows_with_equal_block(values, value):
        return np.uint64(0)
    return np.uint64(near_rows(values, value, radius))
