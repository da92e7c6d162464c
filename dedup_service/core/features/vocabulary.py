"""What is known of the words met so far, in arrays that compiled loops look words up in.

A page has some 600 segments. As Python strings in dictionaries they cost a cache miss or three each, more
than cutting the text; as code points hashed in place they cost a tenth. A word is worked out once, in Python,
by the function that the owner gives, and remembered under the 64-bit hash of its code points (that two of
300,000 words share one has probability 2·10⁻⁹).

Invariant: what is found is what the function gives, however many words were met before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.core.hash_table import EMPTY, slot_of
from dedup_service.core.kernels import kernel
from dedup_service.core.text.ngrams import ngram_hash

__all__ = ["FEATURE", "MARKED", "MARKER", "PHRASE", "SENTENCE_END", "Distinct", "Facts", "Vocabulary"]

FEATURE, MARKER, SENTENCE_END, MARKED, PHRASE = 1, 2, 4, 8, 16
"""Kinds of a word: it is a feature; it is a marker, which marks its sentence; a sentence ends with it; it holds a
marker, which marks the word; a marker of several words may begin with it."""

MAX_KNOWN = 300_000  # words remembered before all are forgotten: some 40 MB
_FIRST_SIZE = 1 << 14
_BETWEEN = 0
_SEPARATOR = chr(_BETWEEN)  # joins segments, which are not expected to hold it
_LANE = (1 << 64) - 1

Slots = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Facts:
    """Of n words: their unsigned hashes of 64 or 128 bits, idf float64[n], and kinds."""

    hashes: Sequence[int]
    idf: npt.NDArray[np.float64]
    kinds: Sequence[int]


class Distinct(NamedTuple):
    """The distinct features among the segments of a page, in order of first occurrence.

    first int64[d]: the segment; low, high uint64[d]: the hash; counts int64[d]: occurrences in the body, 1 for a word
    of the title alone; idf float64[d]; in_title, marked bool[d].
    """

    first: Slots
    low: npt.NDArray[np.uint64]
    high: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    idf: npt.NDArray[np.float64]
    in_title: npt.NDArray[np.bool_]
    marked: npt.NDArray[np.bool_]


class Vocabulary:
    """Remembers what `look_up` said of each word; it is asked for several at a time."""

    def __init__(self, look_up: Callable[[Sequence[str]], Facts]) -> None:
        self._look_up = look_up
        self._table = _Table(_FIRST_SIZE)

    def slots(self, segments: Sequence[str]) -> Slots:
        """Return where each segment's facts are: int64[n], good until the next call. New words are looked up."""
        if self._table.count > MAX_KNOWN:
            self._table = _Table(_FIRST_SIZE)
        letters = np.frombuffer(_SEPARATOR.join(segments).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        hashes, found, unknown = found_segments(letters, len(segments), self._table.keys)
        if len(hashes) < len(segments):  # a segment holds what stands between them
            letters = np.frombuffer("".join(segments).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
            hashes = segment_hashes(letters, np.cumsum([len(segment) for segment in segments]))
            found = find_slots(hashes, self._table.keys)
            unknown = int(np.count_nonzero(found < 0))
        if unknown:
            new, at = np.unique(hashes[found < 0], return_index=True)
            places = np.flatnonzero(found < 0)[at]
            self._learn(new, [segments[place] for place in places.tolist()])
            found = find_slots(hashes, self._table.keys)
        return found

    def phrases(self, slots: Slots) -> list[int]:
        """Return which segments a marker of several words may begin with, and are none themselves, ascending."""
        found: list[int] = phrase_starts(slots, self._table.kinds).tolist()
        return found

    def distinct(self, slots: Slots, body: int, phrases: Sequence[int]) -> Distinct:
        """Return the distinct features; the first `body` segments are the body's, the others the title's.

        phrases: segments where a marker of several words does begin, ascending.
        """
        table = self._table
        columns = (table.kinds, table.low, table.high, table.idf, table.scratch)
        return Distinct(*distinct_features(slots, columns, body, np.array(phrases, dtype=np.int64)))

    def _learn(self, keys: npt.NDArray[np.uint64], words: Sequence[str]) -> None:
        self._table = table = self._table.room_for(len(words))
        facts = self._look_up(words)
        slots = new_slots(keys, table.keys)
        table.low[slots] = np.array([value & _LANE for value in facts.hashes], dtype=np.uint64)
        table.high[slots] = np.array([value >> 64 for value in facts.hashes], dtype=np.uint64)
        table.idf[slots] = facts.idf
        table.kinds[slots] = facts.kinds
        table.count += len(words)


class _Table:
    """An open-addressed table of `size` slots (a power of two) and its columns; scratch int32[size] is all -1."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        self.keys = np.zeros(size, dtype=np.uint64)
        self.low = np.zeros(size, dtype=np.uint64)
        self.high = np.zeros(size, dtype=np.uint64)
        self.idf = np.zeros(size, dtype=np.float64)
        self.kinds = np.zeros(size, dtype=np.uint8)
        self.scratch = np.full(size, -1, dtype=np.int32)

    def room_for(self, more: int) -> "_Table":
        """Return a table with the same words that is at most half full with `more` of them."""
        size = self.size
        while 2 * (self.count + more) > size:
            size *= 2
        if size == self.size:
            return self
        grown, held = _Table(size), np.flatnonzero(self.keys)
        slots = new_slots(self.keys[held], grown.keys)
        grown.low[slots], grown.high[slots] = self.low[held], self.high[held]
        grown.idf[slots], grown.kinds[slots] = self.idf[held], self.kinds[held]
        grown.count = self.count
        return grown


@kernel
def found_segments(
    letters: npt.NDArray[np.uint32], count: int, keys: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], Slots, int]:
    """Return `segment_hashes` and `find_slots` of segments joined by the separator, and how many are not found.

    Empty arrays where there are not `count` segments.
    """
    hashes = np.empty(count, dtype=np.uint64)
    start = found = 0
    for i in range(len(letters) + 1):
        if i < len(letters) and letters[i] != np.uint32(_BETWEEN):
            continue
        if found == count:
            return hashes[:0], np.empty(0, dtype=np.int64), 0
        hashes[found] = segment_hash(letters, start, i)
        found += 1
        start = i + 1
    slots = find_slots(hashes[:found], keys)
    unknown = 0
    for i in range(found):
        unknown += slots[i] < 0
    return hashes[:found], slots, unknown


@kernel
def segment_hash(letters: npt.NDArray[np.uint32], start: int, end: int) -> np.uint64:
    """Return the hash of letters[start : end], never 0."""
    value = ngram_hash(letters, start, end - start)
    return value if value != EMPTY else np.uint64(1)


@kernel
def segment_hashes(letters: npt.NDArray[np.uint32], ends: Slots) -> npt.NDArray[np.uint64]:
    """Return the hash of each segment, never 0: uint64[n]; letters: all code points; ends: where segments end."""
    hashes = np.empty(len(ends), dtype=np.uint64)
    start = 0
    for i in range(len(ends)):
        hashes[i] = segment_hash(letters, start, ends[i])
        start = ends[i]
    return hashes


@kernel
def find_slots(hashes: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> Slots:
    """Return the slot of each hash in the open-addressed `keys` (0: empty), -1 where it is not there."""
    slots = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        slot = slot_of(keys, hashes[i])
        slots[i] = np.int64(slot) if keys[slot] == hashes[i] else -1
    return slots


@kernel
def new_slots(hashes: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> Slots:
    """Give each hash, none of which is there, a slot of `keys`, and return the slots: int64[n]."""
    slots = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        slot = slot_of(keys, hashes[i])
        keys[slot] = hashes[i]
        slots[i] = np.int64(slot)
    return slots


@kernel
def phrase_starts(slots: Slots, kinds: npt.NDArray[np.uint8]) -> Slots:
    """See `Vocabulary.phrases`."""
    found = np.empty(len(slots), dtype=np.int64)
    count = 0
    for i in range(len(slots)):
        found[count] = i
        count += (kinds[slots[i]] & np.uint8(PHRASE | MARKER)) == PHRASE
    return found[:count]


@kernel
def in_marked_sentences(slots: Slots, kinds: npt.NDArray[np.uint8], body: int, phrases: Slots) -> npt.NDArray[np.bool_]:
    """Return which segments stand in a sentence of the body with a marker, its end excepted: bool[n]."""
    inside = np.zeros(len(slots), dtype=np.bool_)
    start = phrase = 0
    marked = False
    for i in range(body + 1):
        kind = kinds[slots[i]] if i < body else np.uint8(SENTENCE_END)
        while phrase < len(phrases) and phrases[phrase] <= i:
            marked |= phrases[phrase] == i
            phrase += 1
        marked |= (kind & np.uint8(MARKER)) != 0
        if kind & np.uint8(SENTENCE_END):
            inside[start:i] = marked
            start, marked = i + 1, False
    return inside


@kernel
def distinct_features(
    slots: Slots,
    columns: tuple[
        npt.NDArray[np.uint8],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
        npt.NDArray[np.float64],
        npt.NDArray[np.int32],
    ],
    body: int,
    phrases: Slots,
) -> tuple[
    Slots,
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint64],
    npt.NDArray[np.int64],
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
]:
    """See `Vocabulary.distinct`. columns: of the table; its scratch is all -1, and so again afterwards."""
    kinds, lows, highs, idfs, scratch = columns
    in_marked = in_marked_sentences(slots, kinds, body, phrases)
    maximum = len(slots)
    first, places = np.empty(maximum, dtype=np.int64), np.empty(maximum, dtype=np.int64)
    counts = np.zeros(maximum, dtype=np.int64)
    in_title, marked = np.zeros(maximum, dtype=np.bool_), np.zeros(maximum, dtype=np.bool_)
    found = 0
    for i in range(maximum):
        slot = slots[i]
        if not kinds[slot] & np.uint8(FEATURE):
            continue
        at = scratch[slot]
        if at < 0:
            at = scratch[slot] = found
            first[at], places[at] = i, slot
            marked[at] = (kinds[slot] & np.uint8(MARKED)) != 0
            found += 1
        if i < body:
            counts[at] += 1
        else:
            in_title[at] = True
            counts[at] = max(counts[at], 1)
        marked[at] |= in_marked[i]
    low, high, idf = np.empty(found, np.uint64), np.empty(found, np.uint64), np.empty(found, np.float64)
    for at in range(found):
        slot = places[at]
        low[at], high[at], idf[at] = lows[slot], highs[slot], idfs[slot]
        scratch[slot] = -1
    return first[:found], low, high, counts[:found], idf, in_title[:found], marked[:found]
