"""What is known of the words met so far, in arrays that compiled loops look words up in.

A page has some 600 segments. As Python strings in dictionaries they cost a cache miss or three each, more
than cutting the text; as code points hashed in place they cost a tenth. A word is worked out once, in Python,
by the function that the owner gives, and remembered under the 64-bit hash of its code points (that two of
300,000 words share one has probability 2·10⁻⁹).

Invariant: what is found is what the function gives, however many words were met before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel
from dedup_service.core.ngrams import ngram_hash

__all__ = ["FEATURE", "MARKED", "MARKER", "SENTENCE_END", "Distinct", "Facts", "Vocabulary", "in_sentences_of"]

FEATURE, MARKER, SENTENCE_END, MARKED = 1, 2, 4, 8
"""Kinds of a word: it is a feature; a marker begins with it; a sentence ends with it; it holds a marker itself."""

MOST_KNOWN = 300_000  # words remembered before all are forgotten: some 40 MB
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


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct features among the segments of a page, in order of first occurrence.

    first int64[d]: the segment; slots int64[d]: where the vocabulary keeps the word; counts int64[d]: occurrences in
    the body, 1 for a word of the title alone; in_title, marked bool[d].
    """

    first: Slots
    slots: Slots
    counts: npt.NDArray[np.int64]
    in_title: npt.NDArray[np.bool_]
    marked: npt.NDArray[np.bool_]


class Vocabulary:
    """Remembers what `look_up` said of each word; it is asked for several at a time."""

    def __init__(self, look_up: Callable[[Sequence[str]], Facts]) -> None:
        self._look_up = look_up
        self._table = _Table(_FIRST_SIZE)

    def slots(self, segments: Sequence[str]) -> Slots:
        """Return where each segment's facts are: int64[n], good until the next call. New words are looked up."""
        if self._table.count > MOST_KNOWN:
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

    def kinds(self, slots: Slots) -> npt.NDArray[np.uint8]:
        """Return the kinds of the words at `slots`: uint8[n]."""
        return self._table.kinds[slots]

    def facts(self, slots: Slots) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
        """Return the low and the high 64 bits of the hashes, uint64[d] each, and the idf, float64[d]."""
        table = self._table
        return table.low[slots], table.high[slots], table.idf[slots]

    def distinct(self, slots: Slots, body: int, in_marked: npt.NDArray[np.bool_]) -> Distinct:
        """Return the distinct features; the first `body` segments are the body's, the others the title's.

        in_marked bool[n]: segments of marked sentences.
        """
        return Distinct(*distinct_features(slots, self._table.kinds, self._table.scratch, body, in_marked))

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
    return value if value != np.uint64(0) else np.uint64(1)


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
    mask = np.uint64(len(keys) - 1)
    slots = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        place = hashes[i] & mask
        while keys[place] != np.uint64(0) and keys[place] != hashes[i]:
            place = (place + np.uint64(1)) & mask
        slots[i] = np.int64(place) if keys[place] == hashes[i] else -1
    return slots


@kernel
def new_slots(hashes: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> Slots:
    """Give each hash, none of which is there, a slot of `keys`, and return the slots: int64[n]."""
    mask = np.uint64(len(keys) - 1)
    slots = np.empty(len(hashes), dtype=np.int64)
    for i in range(len(hashes)):
        place = hashes[i] & mask
        while keys[place] != np.uint64(0):
            place = (place + np.uint64(1)) & mask
        keys[place] = hashes[i]
        slots[i] = np.int64(place)
    return slots


@kernel
def in_sentences_of(hits: Slots, kinds: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.bool_]:
    """Return which of `size` segments stand in a sentence with one of `hits`, its end excepted: bool[size].

    hits int64[h]: ascending. kinds: of the first segments, which sentences are made of.
    """
    inside = np.zeros(size, dtype=np.bool_)
    for hit in hits:
        start = hit
        while start > 0 and not kinds[start - 1] & np.uint8(SENTENCE_END) and not inside[start - 1]:
            start -= 1
        for at in range(start, len(kinds)):
            if kinds[at] & np.uint8(SENTENCE_END):
                break
            inside[at] = True
    return inside


@kernel
def distinct_features(
    slots: Slots,
    kinds: npt.NDArray[np.uint8],
    scratch: npt.NDArray[np.int32],
    body: int,
    in_marked: npt.NDArray[np.bool_],
) -> tuple[Slots, Slots, npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """See `Vocabulary.distinct`. scratch int32[size]: all -1, and so again afterwards."""
    most = len(slots)
    first, places = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    counts = np.zeros(most, dtype=np.int64)
    in_title, marked = np.zeros(most, dtype=np.bool_), np.zeros(most, dtype=np.bool_)
    found = 0
    for i in range(most):
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
    for at in range(found):
        scratch[places[at]] = -1
    return first[:found], places[:found], counts[:found], in_title[:found], marked[:found]
