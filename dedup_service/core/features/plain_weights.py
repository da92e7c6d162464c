"""The SimHash of words that weigh (1 + ln n) times idf, title and marker, in one compiled call for many pages.

`plain_weights` is the definition, for the words of a page as `distinct_features` gives them. `plain_simhashes` finds,
counts and weighs the words of a page while its slots of the vocabulary are in the processor's cache: all of that waits
for memory. A page with a word that the vocabulary lacks is left to a second call.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.features.simhash import FIXED_POINT, LANE, weighted
from dedup_service.core.features.vocabulary import (
    FEATURE,
    MARKED,
    MARKER,
    NOWHERE,
    PHRASE,
    SENTENCE_END,
    begins_phrase,
    is_any_at,
    segment_hash,
    slot_of_key,
)
from dedup_service.core.hash_table import EMPTY
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel, prefetch

UNCOUNTED = np.int64(-1)
"""The number of words of a page without a fingerprint yet."""

_LOGS = 64
_TITLE, _MARKED = np.uint8(1), np.uint8(MARKED)

Slots = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Known = npt.NDArray[np.void]


@long_kernel
def plain_simhashes(
    points: npt.NDArray[np.uint32],
    ends: Slots,
    starts: Slots,
    bodies: Slots,
    phrases: Hashes,
    known: Known,
    high: Hashes,
    title: float,
    marker: float,
    switches: tuple[bool, bool],
    bits: int,
    counts: npt.NDArray[np.int64],
    halves: Hashes,
) -> int:
    """Fingerprint those of n pages that are UNCOUNTED, and return how many words the table lacks.

    points to high: the fields of `SegmentArrays`. Receive: counts, the number of distinct words, int64[n], UNCOUNTED
    where the table lacks a word; halves of `plain_simhash`, uint64[n, 2].
    """
    longest = 0
    for page in range(len(bodies)):
        longest = max(longest, starts[page + 1] - starts[page])
    hashes, slots = np.empty(longest, np.uint64), np.empty(longest, np.int64)
    kinds, flags = np.empty(longest, np.uint8), np.empty(longest, np.uint8)
    often, weights, logs = np.empty(longest, np.int64), np.empty(longest, np.int64), np.zeros(_LOGS)
    missing = 0
    for page in range(len(bodies)):
        if counts[page] != UNCOUNTED:
            continue
        first, size, body = starts[page], starts[page + 1] - starts[page], bodies[page] - starts[page]
        lacking, has_markers = found_on_page(points, ends, first, size, known, hashes, slots, kinds)
        missing += lacking
        if lacking:
            continue
        if has_markers:
            mark_sentences(hashes[:size], body, phrases, kinds)
        count = count_features(slots, kinds, size, body, known, often, flags)
        for i in range(count):
            slot = np.uint64(slots[i])
            log = log_of(often[i], logs)
            in_title, marked = (flags[i] & _TITLE) != 0, (flags[i] & _MARKED) != 0
            weights[i] = plain_weight(log, known[slot].idf, in_title, marked, title, marker, switches)
            hashes[i] = known[slot].low
            known[slot].place = NOWHERE
        halves[page, 0], halves[page, 1] = weighted(hashes[:count], weights[:count], False), np.uint64(0)
        if bits > LANE:
            for i in range(count):
                hashes[i] = high[np.uint64(slots[i])]
            halves[page, 1] = weighted(hashes[:count], weights[:count], False)
        counts[page] = count
    return missing


@kernel_inline
def found_on_page(
    points: npt.NDArray[np.uint32],
    ends: Slots,
    first: int,
    size: int,
    known: Known,
    hashes: Hashes,
    slots: Slots,
    kinds: npt.NDArray[np.uint8],
) -> tuple[int, bool]:
    """Write the hash, slot and kind of each of `size` segments from the first on, uint64, int64 and uint8[size].

    Returns how many the table lacks, and whether any may be a marker or begin one.
    """
    mask = np.uint64(len(known) - 1)
    begin = ends[first - 1] if first else 0
    for i in range(size):
        end = ends[first + i]
        hashes[i] = segment_hash(points, begin, end)
        prefetch(known, int(hashes[i] & mask))
        begin = end
    lacking, seen = 0, np.uint8(0)
    for i in range(size):
        slot = slot_of_key(known, hashes[i])
        slots[i] = np.int64(slot)
        lacking += known[slot].key == EMPTY
        kinds[i] = known[slot].kind
        seen |= kinds[i]
    return lacking, (seen & np.uint8(MARKER | PHRASE)) != 0


@kernel_inline
def mark_sentences(hashes: Hashes, body: int, phrases: Hashes, kinds: npt.NDArray[np.uint8]) -> None:
    """Add MARKED to the kinds of what is in a sentence of the body with a marker, but not to the ends of sentences."""
    start = 0
    marked = False
    for i in range(body + 1):
        kind = kinds[i] if i < body else np.uint8(SENTENCE_END)
        marked |= (kind & np.uint8(MARKER)) != 0
        if i < body and begins_phrase(kind):
            marked |= is_any_at(hashes, i, len(hashes), phrases)
        if kind & np.uint8(SENTENCE_END):
            if marked:
                for at in range(start, i):
                    kinds[at] |= _MARKED
            start, marked = i + 1, False


@kernel_inline
def count_features(
    slots: Slots,
    kinds: npt.NDArray[np.uint8],
    size: int,
    body: int,
    known: Known,
    often: npt.NDArray[np.int64],
    flags: npt.NDArray[np.uint8],
) -> int:
    """Count the distinct features of `size` segments, of which `body` are the body's, and return how many there are.

    Their slots replace those of the segments. Receive: often, how often each is in the body, 1 for one of the title
    alone, int64[size]; flags, _TITLE and _MARKED, uint8[size]. The slots keep their places.
    """
    count = 0
    for i in range(size):
        kind = kinds[i]
        if not kind & np.uint8(FEATURE):
            continue
        slot = np.uint64(slots[i])
        place = int(np.int64(known[slot].place))
        if place == NOWHERE:
            slots[count], often[count], flags[count] = np.int64(slot), 0, np.uint8(0)
            count += 1
            place = count
            known[slot].place = count
        in_body = i < body
        often[place - 1] = often[place - 1] + 1 if in_body else max(often[place - 1], 1)
        flags[place - 1] |= (kind & _MARKED) | (np.uint8(0) if in_body else _TITLE)
    return count


@kernel_inline
def log_of(count: int, logs: npt.NDArray[np.float64]) -> float:
    """Return 1 + ln n. logs: those of small numbers that were needed before, else 0."""
    if count >= _LOGS:
        return float(1.0 + np.log(np.float64(count)))
    if logs[count] == 0.0:
        logs[count] = 1.0 + np.log(np.float64(count))
    return float(logs[count])


@kernel
def plain_simhash(
    words: npt.NDArray[np.void], title: float, marker: float, switches: tuple[bool, bool], bits: int
) -> tuple[np.uint64, np.uint64]:
    """Return the two halves of the fingerprint of words WORD[n] with their `plain_weights`, the low one first."""
    weights = plain_weights(words, title, marker, switches)
    hashes = np.empty(len(words), np.uint64)
    for i in range(len(words)):
        hashes[i] = words[i].low
    low, high = weighted(hashes, weights, False), np.uint64(0)
    if bits > LANE:
        for i in range(len(words)):
            hashes[i] = words[i].high
        high = weighted(hashes, weights, False)
    return low, high


@kernel
def plain_weights(
    words: npt.NDArray[np.void], title: float, marker: float, switches: tuple[bool, bool]
) -> npt.NDArray[np.int64]:
    """Return fixed-point weights int64[n] of words WORD[n], computed step by step as `weighting_factors` does.

    switches: multiply by idf; multiply, not add, the boosts.
    """
    weights = np.empty(len(words), dtype=np.int64)
    for i in range(len(words)):
        log = 1.0 + np.log(np.float64(words[i].counts))
        weights[i] = plain_weight(log, words[i].idf, words[i].in_title, words[i].marked, title, marker, switches)
    return weights


@kernel_inline
def plain_weight(
    log: float, idf: float, in_title: bool, marked: bool, title: float, marker: float, switches: tuple[bool, bool]
) -> int:
    """Return the fixed-point weight of a word. log: 1 + ln n. Else as of `plain_weights`."""
    by_idf, product = switches
    weight = log * idf if by_idf else log
    of_title, of_marker = title if in_title else 1.0, marker if marked else 1.0
    if product:
        boost = of_marker * of_title
    elif marker == 1.0 or title == 1.0:  # a factor that is off is not part of the sum
        boost = of_title if marker == 1.0 else of_marker
    else:
        boost = of_marker + of_title
    return int(np.int64(np.rint(weight * boost * FIXED_POINT)))
