"""A host's own text: which sentences came under several titles on one host.

    host_text.common(host, sentences)             # before the page itself is learned
    host_text.learn(host, terms, keys, sentences)  # every first-delivered page, whatever its verdict

Frames, sidebars, comment threads, disclaimers and consent walls are the same under any title, so they say
nothing about two pages being copies. A sentence is common on a host once it came there under TITLES different
titles. A page that is fetched again, or is at a hundred addresses, has one title and makes nothing common. A page
without a title, or with one that its site gives to all pages, counts by its text instead (`learn`).

Titles are the same if their terms are (`title_hash`): punctuation, width, case and order do not count. With another
term, such as the host's name at the end, they are different. An article under two or three headlines stays
evidence; under TITLES it counts as the host's text, and its copies are kept.

Memory is bounded. A table holds 8 sentences a set, the most recently followed first, 16 bytes each. New sentences
replace each other, since most never come again; those with two titles or more are replaced only when a set has more
than PROTECTED of them. A host uses one of REGIONS tables, so one host with endless different sentences pushes out
those of an eighth of the hosts at most. A table doubles when it is half full, until it has MAX_SETS sets.

Invariant: the state is a function of the calls of `follow` in their order, and of nothing else.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.errors import StateError
from dedup_service.core.kernels import kernel, kernel_inline, kernel_inline_allocating, prefetch
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel

TITLES = 5
"""Different titles under which a sentence comes on one host before it is that host's text: 2 to 5.

Measured on a crawl of 16,936 pages taken as one host's (of 288,835 sentences, those that become common · of 3,894
copies, those of which half or more becomes common): 2 titles 11,325 · 116, 3 titles 2,126 · 4, 4 titles 1,069 · 1,
5 titles 639 · 1, 8 titles 214 · 1. On 987 pages of HTML in the frames of 51 hosts: 1,034, 175, 154, 137, 121
sentences.
"""

REGIONS = 8
"""Tables. A host uses one of them."""

WAYS = 8
"""Sentences of a set."""

PROTECTED = 6
"""Sentences of a set with two titles or more that a new sentence does not replace."""

MAX_SETS = 1 << 14
"""Sets of the largest table: 2 MiB, 16 MiB for all regions. A power of two, like every number of sets."""

_MIN_SETS = 1 << 4

_TITLE_KNOWN, _TEXT_KNOWN = 1, 2

Slots = npt.NDArray[np.uint64]
"""A table, uint64[sets · SET_WORDS]: of each set the keys of its slots, 0 if empty, and then their titles.

The slots of a set are in use from the first on, in the order of the latest page that had them. Titles are four tags
of 16 bits, the first one's lowest. In one slot no two tags are equal and none is 0, so all bits can mean "common".
"""

SET_WORDS = 2 * WAYS

_EMPTY = np.uint64(0)
_COMMON = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_TAG = np.uint64(0xFFFF)
_TAG_BITS = 16
_LENGTH_BITS = np.uint64(6)
_IDENTITY = 0xFFFF_FFC0
"""The bits of a sentence value without its length."""
_HEADER = struct.Struct(f"<{REGIONS}B")


class HostText:
    """Learns from pages in their order which sentences are their host's own text.

    Args:
        state: What `state` returned at some place of the same pages; b"" to begin with.

    Raises:
        StateError: If `state` is no state of a `HostText`.

    Example:
        >>> host_text = HostText()
        >>> frame = np.array([64, 128], np.uint32)
        >>> for title in range(5):
        ...     host_text.follow(7, title, frame)
        >>> host_text.common(7, frame), host_text.common(8, frame)
        (array([ True,  True]), array([False, False]))
    """

    def __init__(self, state: bytes = b"") -> None:
        self._regions = _unpacked(state) if state else [_table(_MIN_SETS) for _ in range(REGIONS)]
        held = [np.count_nonzero(slots.reshape(-1, 2, WAYS)[:, 0]) for slots in self._regions]
        self._held = np.array(held, np.int64)

    def __len__(self) -> int:
        """Return how many sentences are held, common or not."""
        return int(self._held.sum())

    @property
    def size_bytes(self) -> int:
        """Memory of the tables: 16 KiB for few pages, REGIONS · MAX_SETS · WAYS · 16 bytes at most."""
        return sum(slots.nbytes for slots in self._regions)

    @property
    def tables(self) -> tuple[tuple[Slots, ...], npt.NDArray[np.int64]]:
        """The tables, and how many sentences each has, for `learn_pages`; other ones after `learn_many`."""
        return tuple(self._regions), self._held

    def learn(self, host: int, terms: npt.NDArray[np.uint16], keys: bytes, sentences: npt.NDArray[np.uint32]) -> None:
        """Learn from a page, whatever its verdict: `follow`, under its title or, if that says nothing, its text.

        A title that came on the host with TITLES different texts is the site's own, as no title is. Then four
        min-hash keys stand for the title: copies share them, pages that share a frame alone mostly do not.

        Args:
            host: Unsigned 64-bit hash of the host.
            terms: The terms of the page's title (`Evidence.term_values`), uint16[m].
            keys: Its packed keys (`core.evidence.keys`); b"" without any.
            sentences: Its sentence values, uint32[n].
        """
        self._learn(host, title_hash(terms), text_hash(keys), sentences)

    def _learn(self, host: int, title: int | None, text: int | None, sentences: npt.NDArray[np.uint32]) -> None:
        """Learn from a page. title, text: what it is followed under; None if it has no such."""
        if text is None:
            self.follow(host, title, sentences)
            return
        if title is not None:
            region = host % REGIONS
            stays, taken = learn_title(np.uint64(host), np.uint64(title), np.uint64(text), self._regions[region])
            self._hold(region, taken)
            if not stays:
                title = text
        self.follow(host, text if title is None else title, sentences)

    def learn_many(self, pages: "LearnedPages", first: int, end: int) -> None:
        """Learn from pages number `first` to `end` - 1, as `learn` does from each."""
        while first < end:
            first = learn_pages(*pages.columns, first, end, tuple(self._regions), self._held)
            if first < end:  # a table may have to be doubled
                self._learn_one(pages, first)
                first += 1

    def _learn_one(self, pages: "LearnedPages", page: int) -> None:
        hosts, titles, texts, known, sentences, counts = pages.columns
        has_title, has_text = bool(known[page] & _TITLE_KNOWN), bool(known[page] & _TEXT_KNOWN)
        title, text = int(titles[page]) if has_title else None, int(texts[page]) if has_text else None
        self._learn(int(hosts[page]), title, text, sentences[page, : counts[page]])

    def follow(self, host: int, title: int | None, sentences: npt.NDArray[np.uint32]) -> None:
        """Learn that a page of `host` has these sentences.

        Args:
            host: Unsigned 64-bit hash of the host.
            title: Unsigned 64-bit hash of the page's title (`title_hash`); None without one: nothing is learned.
            sentences: Sentence values, uint32[n]. Their lowest six bits, the length, do not count.
        """
        if title is None or not len(sentences):
            return
        region = host % REGIONS
        self._hold(region, follow_all(np.uint64(host), np.uint64(title), sentences, self._regions[region]))

    def _hold(self, region: int, more: int) -> None:
        """Count sentences that a table has more; double it if it is half full."""
        if not more:
            return
        slots, held = self._regions[region], self._held[region] + more
        while 2 * held > len(slots) // 2 and len(slots) < MAX_SETS * SET_WORDS:
            slots = self._regions[region] = doubled(slots)
        self._held[region] = held

    def common(self, host: int, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Return which sentences are text of `host`, as far as the pages followed so far say.

        Args:
            host: Unsigned 64-bit hash of the host.
            sentences: Sentence values, uint32[n].

        Returns:
            Whether each sentence is common, bool[n].
        """
        return common_among(np.uint64(host), sentences, self._regions[host % REGIONS])

    def common_to_pair(
        self, one: int, ours: npt.NDArray[np.uint32], other: int, theirs: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint32]:
        """Return the sentences that do not count when two pages are compared: those that are text of either host.

        Args:
            one: Hash of a page's host.
            ours: Its sentence values, uint32[n].
            other: Hash of the other page's host.
            theirs: Its sentence values, uint32[m].

        Returns:
            The common ones of both pages, ascending and distinct: uint32[k].
        """
        tables = self._regions[one % REGIONS], self._regions[other % REGIONS]
        return common_of_both(np.uint64(one), ours, tables[0], np.uint64(other), theirs, tables[1])

    def copy(self) -> Self:
        """Return a copy that later pages do not change."""
        copied = type(self)()
        copied._regions, copied._held = [slots.copy() for slots in self._regions], self._held.copy()  # noqa: SLF001
        return copied

    def state(self) -> bytes:
        """Return the state as bytes, from which another `HostText` continues alike."""
        used = [slots if held else slots[:0] for slots, held in zip(self._regions, self._held, strict=True)]
        header = _HEADER.pack(*((len(slots) // SET_WORDS).bit_length() for slots in used))
        return b"".join((header, *(slots.astype("<u8", copy=False).tobytes() for slots in used)))


def title_hash(terms: Sequence[int] | npt.NDArray[np.uint16]) -> int | None:
    """Return the hash of a title by its terms, ascending 16-bit hashes (`Evidence.terms`); None if it has none.

    >>> title_hash([])
    """
    return xxhash.xxh3_64_intdigest(np.asarray(terms, "<u2").tobytes()) if len(terms) else None


def text_hash(keys: bytes) -> int | None:
    """Return what stands for a text: the hash of four of its min-hash keys; None for b"", which has none."""
    quarter = len(keys) // 4
    if not quarter:
        return None
    parts = (keys[:4], keys[quarter : quarter + 4], keys[2 * quarter : 2 * quarter + 4])
    return xxhash.xxh3_64_intdigest(b"".join((*parts, keys[3 * quarter : 3 * quarter + 4])))


@dataclass(frozen=True, slots=True, eq=False)
class LearnedPages:
    """Pages to learn from: what `HostText.learn` takes of each, in columns, in the order of `learn_pages`."""

    columns: tuple[
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint8],
        npt.NDArray[np.uint32],
        npt.NDArray[np.int64],
    ]

    @classmethod
    def of(
        cls,
        hosts: Sequence[int] | npt.NDArray[np.uint32],
        terms: Sequence[bytes],
        keys: Sequence[bytes],
        sentences: npt.NDArray[np.uint32],
        counts: npt.NDArray[np.int64],
    ) -> Self:
        """Return n pages.

        hosts: unsigned hashes. terms: of each title, uint16, little-endian, as bytes. keys: packed. sentences:
        uint32[n, m], of which the first counts: int64[n] are used.
        """
        digest, count = xxhash.xxh3_64_intdigest, len(terms)
        titles = np.fromiter([digest(part) if part else 0 for part in terms], np.uint64, count)
        has_title = np.fromiter(map(len, terms), np.int64, count) > 0
        sizes = np.fromiter(map(len, keys), np.int64, count)
        if count and sizes[0] >= 16 and sizes[0] % 4 == 0 and (sizes == sizes[0]).all():  # `text_hash` of all at once
            quarters = np.frombuffer(b"".join(keys), np.uint8).reshape(count, 4, -1)
            firsts = quarters[:, :, :4].tobytes()
            text_hashes = [digest(firsts[at : at + 16]) for at in range(0, 16 * count, 16)]
        else:
            text_hashes = [text_hash(packed) or 0 for packed in keys]
        texts, has_text = np.fromiter(text_hashes, np.uint64, count), sizes >= 4
        known = (has_title * _TITLE_KNOWN + has_text * _TEXT_KNOWN).astype(np.uint8)
        return cls((np.asarray(hosts, np.uint64), titles, texts, known, sentences, counts))


def _table(sets: int) -> Slots:
    return np.zeros(sets * SET_WORDS, np.uint64)


def _unpacked(state: bytes) -> list[Slots]:
    if len(state) >= _HEADER.size:
        counts = [1 << bits - 1 if bits else 0 for bits in _HEADER.unpack_from(state)]
        valid = all(not count or _MIN_SETS <= count <= MAX_SETS for count in counts)
        if valid and len(state) == _HEADER.size + 8 * SET_WORDS * sum(counts):
            stored = np.frombuffer(state, "<u8", offset=_HEADER.size)
            parts = np.split(stored, SET_WORDS * np.cumsum(counts)[:-1])
            return [part.astype(np.uint64) if len(part) else _table(_MIN_SETS) for part in parts]
    raise StateError(
        f"{len(state)} bytes are no state of the hosts' own text: restore from the log or another snapshot"
    )


@kernel_inline_allocating
def _keys_of(host: np.uint64, sentences: npt.NDArray[np.uint32], slots: Slots) -> npt.NDArray[np.uint64]:
    """Return the key of each sentence uint32[n] of a host, uint64[n], and fetch its set into the cache."""
    keys = np.empty(len(sentences), np.uint64)
    mixed = mix64_in_kernel(host)
    for i in range(len(sentences)):
        key = mix64_in_kernel(mixed + GAMMA * (np.uint64(sentences[i]) >> _LENGTH_BITS))
        keys[i] = key if key != _EMPTY else GAMMA
        first = _set_of(keys[i], len(slots))
        prefetch(slots, first)
        prefetch(slots, first + WAYS)
    return keys


@kernel_inline
def _set_of(key: np.uint64, size: int) -> int:
    """Return the place of the first word of the set of `key` in a table of `size` words."""
    return int(key & np.uint64(size // SET_WORDS - 1)) * SET_WORDS


@kernel_inline
def _slot_of(slots: Slots, first: int, key: np.uint64) -> int:
    """Return the place of `key` in the set at `first`; else of the first empty slot, or the set's end if full."""
    for at in range(first, first + WAYS):
        if slots[at] == key or slots[at] == _EMPTY:
            return at
    return first + WAYS


@kernel_inline
def _with_title(titles: np.uint64, tag: np.uint64) -> np.uint64:
    """Return the titles of a slot with one more."""
    if titles == _COMMON:
        return titles
    for lane in range(TITLES - 1):
        shift = np.uint64(_TAG_BITS * lane)
        stored = titles >> shift & _TAG
        if stored == tag:
            return titles
        if stored == _EMPTY:
            return titles | tag << shift
    return _COMMON


@kernel_inline
def _replaced(slots: Slots, first: int) -> int:
    """Return the place of the slot of a full set that a new sentence takes.

    It is the least recent one with a single title; of those with more, if there are more than PROTECTED.
    """
    single = several = first
    protected = 0
    for at in range(first, first + WAYS):
        if slots[at + WAYS] <= _TAG:
            single = at
        else:
            several = at
            protected += 1
    return several if protected > PROTECTED else single


@kernel
def follow_all(host: np.uint64, title: np.uint64, sentences: npt.NDArray[np.uint32], slots: Slots) -> int:
    """Add a title of a host to the sentences uint32[n] in a table; return how many empty slots were taken."""
    tag = mix64_in_kernel(title) & _TAG
    if tag == _EMPTY:
        tag = np.uint64(1)
    taken = 0
    for key in _keys_of(host, sentences, slots):
        first = _set_of(key, len(slots))
        at = _slot_of(slots, first, key)
        titles = _EMPTY
        if at == first + WAYS:
            at = _replaced(slots, first)
        elif slots[at] == key:
            titles = slots[at + WAYS]
        else:
            taken += 1
        while at > first:
            slots[at] = slots[at - 1]
            slots[at + WAYS] = slots[at + WAYS - 1]
            at -= 1
        slots[first] = key
        slots[first + WAYS] = _with_title(titles, tag)
    return taken


@kernel
def learn_title(host: np.uint64, title: np.uint64, text: np.uint64, slots: Slots) -> tuple[bool, int]:
    """Let a host's title come with a text; return whether it says something, and how many empty slots were taken.

    A title is learned as a sentence is, and its texts as titles are.
    """
    own = np.empty(1, np.uint32)
    own[0] = np.uint32(title >> np.uint64(32) & np.uint64(_IDENTITY))
    if common_among(host, own, slots)[0]:
        return False, 0
    return True, follow_all(host, text, own, slots)


@kernel
def learn_pages(
    hosts: npt.NDArray[np.uint64],
    titles: npt.NDArray[np.uint64],
    texts: npt.NDArray[np.uint64],
    known: npt.NDArray[np.uint8],
    sentences: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.int64],
    first: int,
    end: int,
    regions: tuple[Slots, ...],
    held: npt.NDArray[np.int64],
) -> int:
    """Learn from pages number `first` to `end` - 1; return `end`, or a page for which a table may have to be doubled.

    known: uint8[n], 1 if a page has a title, 2 if it has a text. sentences: uint32[n, m], of which counts: int64[n]
    are used. regions: all tables; held: int64[REGIONS], sentences in each.
    """
    for page in range(first, end):
        count = counts[page]
        if count == 0 or known[page] == 0:
            continue
        host, title = hosts[page], titles[page]
        region = np.int64(host % np.uint64(REGIONS))
        slots = regions[region]
        if 4 * (held[region] + count + 1) > len(slots) and len(slots) < MAX_SETS * SET_WORDS:
            return page
        if known[page] == _TITLE_KNOWN | _TEXT_KNOWN:
            stays, taken = learn_title(host, title, texts[page], slots)
            held[region] += taken
            if not stays:
                title = texts[page]
        elif known[page] == _TEXT_KNOWN:
            title = texts[page]
        held[region] += follow_all(host, title, sentences[page, :count], slots)
    return end


@kernel
def common_among(host: np.uint64, sentences: npt.NDArray[np.uint32], slots: Slots) -> npt.NDArray[np.bool_]:
    """Return which of the sentences uint32[n] are common on a host, by its table: bool[n]."""
    keys = _keys_of(host, sentences, slots)
    common = np.empty(len(keys), np.bool_)
    for i in range(len(keys)):
        first = _set_of(keys[i], len(slots))
        at = _slot_of(slots, first, keys[i])
        common[i] = at < first + WAYS and slots[at + WAYS] == _COMMON
    return common


@kernel
def common_of_both(
    one: np.uint64,
    ours: npt.NDArray[np.uint32],
    our_slots: Slots,
    other: np.uint64,
    theirs: npt.NDArray[np.uint32],
    their_slots: Slots,
) -> npt.NDArray[np.uint32]:
    """Return the sentences of two pages that are common on either host, ascending and distinct: uint32[k]."""
    found = np.empty(len(ours) + len(theirs), np.uint32)
    count = 0
    for sentences in (ours, theirs):
        common = common_among(one, sentences, our_slots)
        if one != other:
            common |= common_among(other, sentences, their_slots)
        for i in range(len(sentences)):
            if common[i]:
                found[count] = sentences[i]
                count += 1
    ordered = np.sort(found[:count])
    kept = 0
    for i in range(count):
        if i == 0 or ordered[i] != ordered[kept - 1]:
            ordered[kept] = ordered[i]
            kept += 1
    return ordered[:kept]


@kernel
def doubled(slots: Slots) -> Slots:
    """Return the table with twice as many sets: each is cut in two, in its order."""
    grown = np.zeros(2 * len(slots), np.uint64)
    for first in range(0, len(slots), SET_WORDS):
        for at in range(first, first + WAYS):
            if slots[at] == _EMPTY:
                break
            new = _set_of(slots[at], len(grown))
            while grown[new] != _EMPTY:
                new += 1
            grown[new] = slots[at]
            grown[new + WAYS] = slots[at + WAYS]
    return grown
