"""The words seen so far with their hash, IDF and kind, in a table that compiled loops search.

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

from dedup_service.core.hash_table import EMPTY
from dedup_service.core.kernels import kernel, kernel_inline, kernel_inline_allocating, long_kernel, prefetch
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel
from dedup_service.core.text.segmentation.segments import PageSegments, Segments

FEATURE, MARKER, SENTENCE_END, MARKED, PHRASE = 1, 2, 4, 8, 16
"""Kinds of a word, as bits.

FEATURE: it is a feature. MARKER: it marks its sentence. SENTENCE_END: it ends a sentence. MARKED: it
contains a marker, which marks the word itself. PHRASE: a marker phrase, of several words, may begin with it.
"""

WORD = np.dtype(
    [
        ("first", np.int64),
        ("low", np.uint64),
        ("high", np.uint64),
        ("counts", np.int64),
        ("idf", np.float64),
        ("in_title", np.bool_),
        ("marked", np.bool_),
    ],
    align=True,
)
"""A distinct feature of a page.

first: the segment where it first occurs. low, high: the two halves of its hash. counts: occurrences in the body, 1 for
a word of the title alone. marked: a sentence of the body has both the word and a marker, or the word contains one.
"""

MAX_KNOWN = 300_000
"""Words after which the vocabulary starts empty again: 17 MB, and 4 for fingerprints of 128 bits. Each thread has one.
"""

_FIRST_SIZE = 1 << 14
LANE = 64
_LANE = (1 << LANE) - 1

KNOWN = np.dtype(
    [("key", np.uint64), ("low", np.uint64), ("idf", np.float64), ("place", np.int32), ("kind", np.uint8)], align=True
)
"""A slot of the table, half a cache line: the hash of the code points, EMPTY without a word, and the facts of the word.
The high half of its hash, which 64 bits do not need, is in an array of its own. place: scratch of loops over a page,
NOWHERE between calls."""

NOWHERE = 0
_LINE = 64

Slots = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Known = npt.NDArray[np.void]
Words = npt.NDArray[np.void]


_NO_PHRASES: Slots = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of n words: their unsigned hashes of 64 or 128 bits, idf float64[n], and kinds."""

    hashes: Sequence[int]
    idf: npt.NDArray[np.float64]
    kinds: Sequence[int]


class FoundWords(NamedTuple):
    """The words of n pages, as kernels take them.

    slots: of each segment in `known` and `high`, int64[k]. starts, bodies: of `PageSegments`. phrases: the segments of
    bodies with which a marker phrase begins, ascending: int64[p].
    """

    slots: Slots
    starts: Slots
    bodies: Slots
    phrases: Slots
    known: Known
    high: Hashes

    def distinct(self) -> Words:
        """Return the distinct features of all segments as of one page, WORD[d], in order of first occurrence."""
        return distinct_features(self.slots, self.known, self.high, int(self.bodies[0]), self.phrases)


class SegmentArrays(NamedTuple):
    """The segments of n pages with the table of known words, as kernels take them that find the words themselves.

    points, ends: of `Segments`. starts, bodies: of `PageSegments`. phrases: the hashes of the segments of p marker
    phrases, EMPTY after the last one: uint64[p, longest]. known, high: the table.
    """

    points: npt.NDArray[np.uint32]
    ends: Slots
    starts: Slots
    bodies: Slots
    phrases: Hashes
    known: Known
    high: Hashes


class Vocabulary:
    """Caches the facts of words.

    look_up: returns the facts of several words. phrases: the marker phrases, as segments; they begin with words of the
    kind PHRASE.
    """

    def __init__(self, look_up: Callable[[Sequence[str]], Facts], phrases: Sequence[Sequence[str]] = ()) -> None:
        self._look_up = look_up
        self._phrases = np.full((len(phrases), max(map(len, phrases), default=0)), EMPTY)
        for row, phrase in zip(self._phrases, phrases, strict=True):
            segments = Segments.of(phrase)
            row[: len(phrase)] = segment_hashes(segments.points.copy(), segments.ends)
        self._empty()

    def find(self, pages: PageSegments) -> FoundWords:
        """Return the words of pages; new ones are looked up. They are valid until the next call."""
        if self._count > MAX_KNOWN:
            self._empty()
        segments, starts, bodies = pages
        count = len(segments)
        hashes, slots = np.empty(count, np.uint64), np.empty(count, np.int64)
        unknown, phrases = find_segments(segments.points, segments.ends, starts, bodies, self._known, hashes, slots)
        if unknown:
            if self._make_room(unknown):
                slots.fill(-1)
            taken = take_slots(hashes, segments.ends, self._known, unknown, slots)
            text = segments.text
            try:
                words = [text[start:end] for start, end in zip(*taken[1:].tolist(), strict=True)]
                phrases += self._fill(taken[0], words)
            except BaseException:
                self._empty()  # it has words without facts
                raise
        begun = _NO_PHRASES
        if phrases:
            begun = phrase_starts(hashes, slots, starts, bodies, self._known, self._phrases)
        return FoundWords(slots, starts, bodies, begun, self._known, self._high)

    def arrays(self, pages: PageSegments) -> SegmentArrays:
        """Return pages with the table, valid until words are looked up; it may lack words of theirs."""
        segments, starts, bodies = pages
        return SegmentArrays(segments.points, segments.ends, starts, bodies, self._phrases, self._known, self._high)

    def _empty(self) -> None:
        self._known, self._high, self._count = _slots(_FIRST_SIZE), np.zeros(_FIRST_SIZE, np.uint64), 0

    def _make_room(self, more: int) -> bool:
        """Make the table so large that it is at most 5/8 full after `more` words are added; return whether it grew."""
        size = len(self._known)
        while 8 * (self._count + more) > 5 * size:
            size *= 2
        if size > len(self._known):
            larger, high = _slots(size), np.zeros(size, np.uint64)
            copy_known(self._known, self._high, larger, high)
            self._known, self._high = larger, high
            return True
        return False

    def _fill(self, slots: Slots, words: Sequence[str]) -> int:
        """Store the facts of words at their slots, and return how many of them may begin a marker phrase."""
        facts = self._look_up(words)
        low = np.array([value & _LANE for value in facts.hashes], dtype=np.uint64)
        high = np.array([value >> LANE for value in facts.hashes], dtype=np.uint64)
        store_facts(self._known, self._high, slots, low, high, facts.idf, np.array(facts.kinds, dtype=np.uint8))
        self._count += len(words)
        return sum(kind & (PHRASE | MARKER) == PHRASE for kind in facts.kinds)


def _slots(size: int) -> Known:
    """Return an empty table, of which no slot is in two cache lines."""
    memory = np.zeros(size * KNOWN.itemsize + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size * KNOWN.itemsize].view(KNOWN)


@kernel_inline
def slot_of_key(known: Known, key: np.uint64) -> np.uint64:
    """Return the slot where `key` is, or the empty slot where it belongs. key: not EMPTY."""
    mask = np.uint64(len(known) - 1)
    slot = key & mask
    while known[slot].key != EMPTY and known[slot].key != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@long_kernel
def find_segments(
    points: npt.NDArray[np.uint32],
    ends: Slots,
    starts: Slots,
    bodies: Slots,
    known: Known,
    hashes: Hashes,
    slots: Slots,
) -> tuple[int, int]:
    """Write the hash and the slot of each of n segments, -1 for one that is not known; see `PageSegments`.

    hashes: uint64[n]. slots: int64[n]. Returns how many are not known, and how many known ones of bodies may begin a
    marker phrase.
    """
    mask = np.uint64(len(known) - 1)
    begin = unknown = phrases = 0
    for page in range(len(bodies)):
        for i in range(starts[page], starts[page + 1]):
            hashes[i] = segment_hash(points, begin, ends[i])
            prefetch(known, int(hashes[i] & mask))
            begin = ends[i]
        for i in range(starts[page], starts[page + 1]):
            slot = slot_of_key(known, hashes[i])
            is_known = known[slot].key != EMPTY
            slots[i] = np.int64(slot) if is_known else -1
            unknown += not is_known
            phrases += i < bodies[page] and is_known and begins_phrase(known[slot].kind)
    return unknown, phrases


@kernel_inline
def segment_hash(points: npt.NDArray[np.uint32], start: int, end: int) -> np.uint64:
    """Return the hash of points[start : end], never EMPTY.

    Each step is folded: of a plain polynomial modulo 2**64, as n-grams have, it is known which long words have the same
    hash, whatever its base is (of two letters in the order of Thue and Morse, from 1,024 on).
    """
    value = np.uint64(end - start)
    for i in range(start, end):
        value = value * GAMMA + np.uint64(points[i])
        value ^= value >> np.uint64(32)
    value = mix64_in_kernel(value)
    return value if value != EMPTY else np.uint64(1)


@kernel_inline
def begins_phrase(kind: np.uint8) -> bool:
    """Whether a marker phrase may begin with a word of this kind, which is not a marker itself."""
    return bool((kind & np.uint8(PHRASE | MARKER)) == np.uint8(PHRASE))


@kernel
def take_slots(hashes: Hashes, ends: Slots, known: Known, unknown: int, slots: Slots) -> npt.NDArray[np.int64]:
    """Write the slots of those of n segments that have none (-1), after inserting what the table lacks.

    hashes, ends: of the segments. unknown: how many may be inserted. Returns the slots of those that were inserted, in
    order, and where in the text they begin and end: int64[3, m].
    """
    taken = np.empty((3, unknown), dtype=np.int64)
    count = 0
    for i in range(len(hashes)):
        if slots[i] >= 0:
            continue
        slot = slot_of_key(known, hashes[i])
        slots[i] = np.int64(slot)
        if known[slot].key == EMPTY:
            known[slot].key = hashes[i]
            taken[0, count], taken[1, count], taken[2, count] = slot, ends[i - 1] if i else 0, ends[i]
            count += 1
    return taken[:, :count]


@kernel
def store_facts(
    known: Known,
    highs: Hashes,
    slots: Slots,
    low: npt.NDArray[np.uint64],
    high: npt.NDArray[np.uint64],
    idf: npt.NDArray[np.float64],
    kinds: npt.NDArray[np.uint8],
) -> None:
    """Write the columns of words at their slots, all of length n."""
    for i in range(len(slots)):
        slot = slots[i]
        known[slot].low, known[slot].idf, known[slot].kind = low[i], idf[i], kinds[i]
        if high[i]:  # memory that is not written to is none
            highs[slot] = high[i]


@kernel
def copy_known(known: Known, high: Hashes, larger: Known, larger_high: Hashes) -> None:
    """Insert all words into an empty table that has more slots."""
    for i in range(len(known)):
        if known[i].key != EMPTY:
            slot = slot_of_key(larger, known[i].key)
            larger[slot] = known[i]
            if high[i]:
                larger_high[slot] = high[i]


@kernel
def segment_hashes(points: npt.NDArray[np.uint32], ends: Slots) -> Hashes:
    """Return the hashes of n segments, as `find_segments` writes them: uint64[n]."""
    hashes = np.empty(len(ends), np.uint64)
    begin = 0
    for i in range(len(ends)):
        hashes[i] = segment_hash(points, begin, ends[i])
        begin = ends[i]
    return hashes


@kernel
def phrase_starts(hashes: Hashes, slots: Slots, starts: Slots, bodies: Slots, known: Known, phrases: Hashes) -> Slots:
    """Return with which of n segments, of the bodies of pages, a marker phrase begins, ascending: int64[m].

    hashes: uint64[n]. slots: int64[n]. starts, bodies: of `PageSegments`. phrases: the hashes of the segments of p
    phrases, EMPTY after the last one: uint64[p, longest]. A phrase that begins in a body may end in the title.
    """
    found = np.empty(len(slots), dtype=np.int64)
    count = 0
    for page in range(len(bodies)):
        for i in range(starts[page], bodies[page]):
            if begins_phrase(known[slots[i]].kind) and is_any_at(hashes, i, starts[page + 1], phrases):
                found[count] = i
                count += 1
    return found[:count]


@kernel_inline
def is_any_at(hashes: Hashes, start: int, end: int, phrases: Hashes) -> bool:
    """Whether any of the phrases, of at least one segment each, are segments of a page from `start` to before `end`."""
    for row in range(len(phrases)):
        place = 0
        while place < phrases.shape[1] and phrases[row, place] != EMPTY:
            if start + place >= end or hashes[start + place] != phrases[row, place]:
                break
            place += 1
        else:
            return True
    return False


@kernel_inline_allocating
def in_marked_sentences(slots: Slots, known: Known, body: int, phrases: Slots) -> npt.NDArray[np.bool_]:
    """Return which segments, without ends, are in a sentence of the body with a marker: bool[n]."""
    inside = np.zeros(len(slots), dtype=np.bool_)
    start = phrase = 0
    marked = False
    for i in range(body + 1):
        kind = known[slots[i]].kind if i < body else np.uint8(SENTENCE_END)
        while phrase < len(phrases) and phrases[phrase] <= i:
            marked |= phrases[phrase] == i
            phrase += 1
        marked |= (kind & np.uint8(MARKER)) != 0
        if kind & np.uint8(SENTENCE_END):
            inside[start:i] = marked
            start, marked = i + 1, False
    return inside


@kernel
def distinct_features(slots: Slots, known: Known, high: Hashes, body: int, phrases: Slots) -> Words:
    """Return the distinct features of a page, WORD[d], in order of first occurrence.

    slots: of its n segments, int64[n], of which `body` are the body's. phrases: those of them with which a marker
    phrase begins, ascending: int64[p].
    """
    in_marked = in_marked_sentences(slots, known, body, phrases)
    words = np.empty(len(slots), WORD)
    features = np.empty(len(slots), np.int64)
    count = 0
    for i in range(len(slots)):
        slot = slots[i]
        if not known[slot].kind & np.uint8(FEATURE):
            continue
        if known[slot].place == NOWHERE:
            features[count] = slot
            words[count].first, words[count].counts = i, 0
            words[count].low, words[count].high, words[count].idf = known[slot].low, high[slot], known[slot].idf
            words[count].in_title = False
            words[count].marked = (known[slot].kind & np.uint8(MARKED)) != 0
            count += 1
            known[slot].place = count
        place = known[slot].place - 1
        if i < body:
            words[place].counts += 1
        else:
            words[place].in_title = True
            words[place].counts = max(words[place].counts, 1)
        words[place].marked |= in_marked[i]
    for slot in features[:count]:
        known[slot].place = NOWHERE
    return words[:count]
