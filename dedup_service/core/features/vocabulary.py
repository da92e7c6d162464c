"""The words seen so far with their hash, IDF and kind, in arrays that compiled loops search.

A page has some 600 segments. Looking them up as Python strings in dictionaries costs one to three cache
misses each, more than cutting the text does; hashing their code points in place costs a tenth. The facts of
a word are computed once, in Python, by the function that the owner gives, and stored under the 64-bit hash
of its code points (two of 300,000 words share a hash with probability 2·10⁻⁹).

Invariant: a lookup returns what the function returns, whatever words were seen before.
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
"""Kinds of a word, as bits.

FEATURE: it is a feature. MARKER: it marks its sentence. SENTENCE_END: it ends a sentence. MARKED: it
contains a marker, which marks the word itself. PHRASE: a marker phrase, of several words, may begin with it.
"""

MAX_KNOWN = 300_000
"""Words after which the vocabulary starts empty again: some 40 MB."""

_FIRST_SIZE = 1 << 14
_SEPARATOR = 0  # the code point between joined segments, which are not expected to contain it
_LANE = (1 << 64) - 1

Slots = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of n words: their unsigned hashes of 64 or 128 bits, idf float64[n], and kinds."""

    hashes: Sequence[int]
    idf: npt.NDArray[np.float64]
    kinds: Sequence[int]


class Distinct(NamedTuple):
    """The distinct features among the segments of a page, in order of first occurrence.

    first int64[d]: the segment. low, high uint64[d]: the two halves of the hash. counts int64[d]:
    occurrences in the body, 1 for a word of the title alone. idf float64[d]. in_title, marked bool[d].
    """

    first: Slots
    low: npt.NDArray[np.uint64]
    high: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    idf: npt.NDArray[np.float64]
    in_title: npt.NDArray[np.bool_]
    marked: npt.NDArray[np.bool_]


class Vocabulary:
    """Caches the facts of words. look_up: returns the facts of several words."""

    def __init__(self, look_up: Callable[[Sequence[str]], Facts]) -> None:
        self._look_up = look_up
        self._table = _Table(_FIRST_SIZE)

    def slots(self, segments: Sequence[str]) -> Slots:
        """Return the slot of each segment: int64[n], valid until the next call. New words are looked up."""
        if self._table.count > MAX_KNOWN:
            self._table = _Table(_FIRST_SIZE)
        letters = np.frombuffer(chr(_SEPARATOR).join(segments).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        hashes, slots, unknown = find_segments(letters, len(segments), self._table.keys)
        if len(hashes) < len(segments):  # a segment contains the separator
            letters = np.frombuffer("".join(segments).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
            hashes = segment_hashes(letters, np.cumsum([len(segment) for segment in segments]))
            slots = find_slots(hashes, self._table.keys)
            unknown = int(np.count_nonzero(slots < 0))
        if unknown:
            new, first = np.unique(hashes[slots < 0], return_index=True)
            indexes = np.flatnonzero(slots < 0)[first]
            self._add(new, [segments[i] for i in indexes.tolist()])
            slots = find_slots(hashes, self._table.keys)
        return slots

    def phrases(self, slots: Slots) -> list[int]:
        """Return the segments with which a marker phrase may begin and that are not markers, ascending."""
        starts: list[int] = phrase_starts(slots, self._table.kinds).tolist()
        return starts

    def distinct(self, slots: Slots, body: int, phrases: Sequence[int]) -> Distinct:
        """Return the distinct features. The first `body` segments are the body's, the others the title's.

        phrases: the segments where a marker phrase does begin, ascending.
        """
        table = self._table
        columns = (table.kinds, table.low, table.high, table.idf, table.scratch)
        return Distinct(*distinct_features(slots, columns, body, np.array(phrases, dtype=np.int64)))

    def _add(self, keys: npt.NDArray[np.uint64], words: Sequence[str]) -> None:
        self._table = table = self._table.room_for(len(words))
        facts = self._look_up(words)
        slots = new_slots(keys, table.keys)
        table.low[slots] = np.array([value & _LANE for value in facts.hashes], dtype=np.uint64)
        table.high[slots] = np.array([value >> 64 for value in facts.hashes], dtype=np.uint64)
        table.idf[slots] = facts.idf
        table.kinds[slots] = facts.kinds
        table.count += len(words)


class _Table:
    """A hash table of `size` slots (a power of two) and its columns; scratch is all -1 between calls."""

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
        """Return a table with the same words that is at most half full after `more` are added."""
        size = self.size
        while 2 * (self.count + more) > size:
            size *= 2
        if size == self.size:
            return self
        grown, used = _Table(size), np.flatnonzero(self.keys)
        slots = new_slots(self.keys[used], grown.keys)
        grown.low[slots], grown.high[slots] = self.low[used], self.high[used]
        grown.idf[slots], grown.kinds[slots] = self.idf[used], self.kinds[used]
        grown.count = self.count
        return grown


@kernel
def find_segments(
    letters: npt.NDArray[np.uint32], count: int, keys: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], Slots, int]:
    """Return the hash and the slot of each segment, and how many segments have no slot.

    letters: the code points of the segments, joined by the separator. The arrays are empty if these are not
    `count` segments.
    """
    hashes = np.empty(count, dtype=np.uint64)
    start = segments = 0
    for i in range(len(letters) + 1):
        if i < len(letters) and letters[i] != np.uint32(_SEPARATOR):
            continue
        if segments == count:
            return hashes[:0], np.empty(0, dtype=np.int64), 0
        hashes[segments] = segment_hash(letters, start, i)
        segments += 1
        start = i + 1
    slots = find_slots(hashes[:segments], keys)
    unknown = 0
    for i in range(segments):
        unknown += slots[i] < 0
    return hashes[:segments], slots, unknown


@kernel
def segment_hash(letters: npt.NDArray[np.uint32], start: int, end: int) -> np.uint64:
    """Return the hash of letters[start : end], never 0."""
    value = ngram_hash(letters, start, end - start)
    return value if value != EMPTY else np.uint64(1)


@kernel
def segment_hashes(letters: npt.NDArray[np.uint32], ends: Slots) -> npt.NDArray[np.uint64]:
    """Return the hash of each segment, never 0: uint64[n]. letters: code points. ends: of the segments."""
    hashes = np.empty(len(ends), dtype=np.uint64)
    start = 0
    for i in range(len(ends)):
        hashes[i] = segment_hash(letters, start, ends[i])
        start = ends[i]
    return hashes


@kernel
def find_slots(hashes: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> Slots:
    """Return the slot of each hash in the hash table `keys`, -1 for a hash that it lacks: int64[n]."""
    slots = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        slot = slot_of(keys, hashes[i])
        slots[i] = np.int64(slot) if keys[slot] == hashes[i] else -1
    return slots


@kernel
def new_slots(hashes: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> Slots:
    """Insert hashes that the hash table `keys` lacks, and return their slots: int64[n]."""
    slots = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        slot = slot_of(keys, hashes[i])
        keys[slot] = hashes[i]
        slots[i] = np.int64(slot)
    return slots


@kernel
def phrase_starts(slots: Slots, kinds: npt.NDArray[np.uint8]) -> Slots:
    """Return what `Vocabulary.phrases` returns, as int64[m]."""
    starts = np.empty(len(slots), dtype=np.int64)
    count = 0
    for i in range(len(slots)):
        starts[count] = i
        count += (kinds[slots[i]] & np.uint8(PHRASE | MARKER)) == PHRASE
    return starts[:count]


@kernel
def in_marked_sentences(slots: Slots, kinds: npt.NDArray[np.uint8], body: int, phrases: Slots) -> npt.NDArray[np.bool_]:
    """Return which segments, without ends, are in a sentence of the body with a marker: bool[n]."""
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
    """Return the columns of `Vocabulary.distinct`.

    columns: kinds, low, high, idf and scratch of the table; scratch is all -1 before and after.
    """
    kinds, lows, highs, idfs, scratch = columns
    in_marked = in_marked_sentences(slots, kinds, body, phrases)
    total = len(slots)
    first, features = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    counts = np.zeros(total, dtype=np.int64)
    in_title, marked = np.zeros(total, dtype=np.bool_), np.zeros(total, dtype=np.bool_)
    distinct = 0
    for i in range(total):
        slot = slots[i]
        if not kinds[slot] & np.uint8(FEATURE):
            continue
        row = scratch[slot]
        if row < 0:
            row = scratch[slot] = distinct
            first[row], features[row] = i, slot
            marked[row] = (kinds[slot] & np.uint8(MARKED)) != 0
            distinct += 1
        if i < body:
            counts[row] += 1
        else:
            in_title[row] = True
            counts[row] = max(counts[row], 1)
        marked[row] |= in_marked[i]
    low, high, idf = np.empty(distinct, np.uint64), np.empty(distinct, np.uint64), np.empty(distinct, np.float64)
    for row in range(distinct):
        slot = features[row]
        low[row], high[row], idf[row] = lows[slot], highs[slot], idfs[slot]
        scratch[slot] = -1
    return first[:distinct], low, high, counts[:distinct], idf, in_title[:distinct], marked[:distinct]
