"""The quantities of two pages that rules set bounds on, all at once, from their packed evidence.

`Similarity` defines them; this is the loop for pages that are decided, of which most have few candidates and some
have hundreds. It gives the same numbers, bit for bit: the same operations on 64-bit floats in the same order. What is
counted here (sentences, numbers, terms) are whole numbers, so the order of counting does not matter.

Two samples are compared by walking through both, so they have to ascend. Those of `pack_evidence` do; `read_pair`
refuses others, which only another program can have written, and `Similarity` takes them as they are. `metadata` and
`combined` are exact fractions, which are not computed here.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.overlap import letters_of_common, overlap, shared_of_common
from dedup_service.core.evidence.packed import (
    MAX_NUMBERS,
    MAX_SENTENCES,
    header_of,
    read_numbers,
    read_sentences,
    read_terms,
    sketch_difference,
)
from dedup_service.core.evidence.sketch import BINS
from dedup_service.core.kernels import kernel_inline, kernel_inline_allocating

QUANTITIES = (
    "jaccard",
    "containment",
    "min_letters",
    "length_ratio",
    "sentences",
    "numbers",
    "missing_numbers",
    "swapped_numbers",
    "figures",
    "title",
    "title_on_host",
    "alphabetic",
    "unspaced",
    "words_distance",
    "body_distance",
)
"""Properties of `Similarity`, in the order in which `pair_quantities` writes them."""

(
    _JACCARD,
    _CONTAINMENT,
    _MIN_LETTERS,
    _LENGTH_RATIO,
    _SENTENCES,
    _NUMBERS,
    _MISSING_NUMBERS,
    _SWAPPED_NUMBERS,
    _FIGURES,
    _TITLE,
    _TITLE_ON_HOST,
    _ALPHABETIC,
    _UNSPACED,
    _WORDS_DISTANCE,
    _BODY_DISTANCE,
) = range(len(QUANTITIES))

FOUND, DISTANT, UNREADABLE = 0, -1, -2
"""What `pair_quantities` returns. DISTANT: a page has no shingles, or the sketches differ too much. UNREADABLE: a
sample does not ascend."""

_SAMPLE = 256
"""Values of a sample, at most: their number is a byte."""

_LETTERS, _SIZE, _SHINGLES, _NUMBER_COUNT, _SENTENCE_COUNT, _SAMPLED_NUMBERS, _SAMPLED_SENTENCES, _TERMS = range(8)
_HEADER_FIELDS = 9
_LARGEST = np.uint32((1 << 32) - 1)
_UNITS = 256
_UNIT, _S8 = np.uint32(255), np.uint32(8)

Packed = npt.NDArray[np.uint8]
Header = npt.NDArray[np.int64]
Sample = npt.NDArray[np.uint32]


@kernel_inline_allocating
def pair_quantities(
    one: Packed,
    other: Packed,
    common: Sample,
    same_host: bool,
    words_distance: float,
    body_distance: float,
    min_jaccard: float,
    found: npt.NDArray[np.float64],
) -> int:
    """Write the QUANTITIES of two pages into found: float64[n], and return FOUND; else why there are none.

    one, other: packed evidence. common, same_host: as in `Similarity`. min_jaccard: of the whole sketches, at least;
    above 0. Distances are infinite where a page has no fingerprint.
    """
    ours, theirs = np.empty(_HEADER_FIELDS, np.int64), np.empty(_HEADER_FIELDS, np.int64)
    figures, other_figures = header_of(one, ours), header_of(other, theirs)
    if ours[_SHINGLES] == 0 or theirs[_SHINGLES] == 0:
        return DISTANT
    differing = sketch_difference(one, other)
    if 1.0 - 2.0 * differing / BINS < min_jaccard:
        return DISTANT
    mine, others = np.empty(_SAMPLE, np.uint32), np.empty(_SAMPLE, np.uint32)
    if not (read_terms(one, ours, mine) and read_terms(other, theirs, others)):
        return UNREADABLE
    write_titles(mine[: ours[_TERMS]], others[: theirs[_TERMS]], same_host, found)
    if not (read_numbers(one, ours, mine) and read_numbers(other, theirs, others)):
        return UNREADABLE
    write_numbers(ours, mine, theirs, others, figures == other_figures, found)
    if not (read_sentences(one, ours, mine) and read_sentences(other, theirs, others)):
        return UNREADABLE
    our_sentences, their_sentences = mine[: ours[_SAMPLED_SENTENCES]], others[: theirs[_SAMPLED_SENTENCES]]
    write_shares(ours, our_sentences, theirs, their_sentences, common, 1.0 - 2.0 * differing / BINS, found)
    share = max(alphabetic_share(ours), alphabetic_share(theirs))
    found[_ALPHABETIC] = min(1.0, share)
    found[_UNSPACED] = 1.0 - found[_ALPHABETIC]
    found[_WORDS_DISTANCE], found[_BODY_DISTANCE] = words_distance, body_distance
    return FOUND


@kernel_inline
def write_titles(ours: Sample, theirs: Sample, same_host: bool, found: npt.NDArray[np.float64]) -> None:
    """Write the quantities of two titles, by their terms."""
    found[_TITLE] = 0.0
    if len(ours) and len(theirs):
        _, _, both = shared_values(ours, theirs, _LARGEST, ours[:0])
        found[_TITLE] = both / (len(ours) + len(theirs) - both)
    is_bound = same_host and len(ours) > 0 and len(theirs) > 0
    found[_TITLE_ON_HOST] = found[_TITLE] if is_bound else 1.0


@kernel_inline
def write_numbers(
    ours: Header, mine: Sample, theirs: Header, others: Sample, same_figures: bool, found: npt.NDArray[np.float64]
) -> None:
    """Write the quantities of the numbers of two pages."""
    one, other = ours[_SAMPLED_NUMBERS], theirs[_SAMPLED_NUMBERS]
    found[_FIGURES] = 1.0
    if not same_figures:
        count, other_count = ours[_NUMBER_COUNT], theirs[_NUMBER_COUNT]
        found[_FIGURES] = 0.0
        if count < other_count <= MAX_NUMBERS:
            found[_FIGURES] = 0.5 if is_among(mine[:one], others[:other]) else 0.0
        elif other_count < count <= MAX_NUMBERS:
            found[_FIGURES] = 0.5 if is_among(others[:other], mine[:one]) else 0.0
    end = common_end(mine[:one], others[:other], MAX_NUMBERS)
    fewer, both, conflicts = shared_numbers(mine[:one], others[:other], end)
    found[_NUMBERS] = both / fewer if fewer else 1.0
    found[_MISSING_NUMBERS] = (1.0 - found[_NUMBERS]) * min(ours[_NUMBER_COUNT], theirs[_NUMBER_COUNT])
    found[_SWAPPED_NUMBERS] = conflicts / (conflicts + both) if conflicts else 0.0


@kernel_inline
def write_shares(
    ours: Header,
    mine: Sample,
    theirs: Header,
    others: Sample,
    common: Sample,
    jaccard: float,
    found: npt.NDArray[np.float64],
) -> None:
    """Write what depends on the common sentences. mine, others: sentences. jaccard: of the whole sketches."""
    end = common_end(mine, others, MAX_SENTENCES)
    one_common = other_common = shared = 0.0
    if len(common):
        one_common = letters_of_common(mine, ours[_LETTERS], ours[_SENTENCE_COUNT] > MAX_SENTENCES, common)
        other_common = letters_of_common(others, theirs[_LETTERS], theirs[_SENTENCE_COUNT] > MAX_SENTENCES, common)
        if one_common or other_common:
            shared = shared_of_common(mine, others, end, common)
    one, other = shingles_of(ours, one_common), shingles_of(theirs, other_common)
    intersection, union = overlap(ours[_SHINGLES] + theirs[_SHINGLES], one, other, shared, max(0.0, jaccard))
    found[_JACCARD] = min(1.0, intersection / union) if union > 0 else 0.0
    fewer = min(ours[_SHINGLES] - one, theirs[_SHINGLES] - other)
    found[_CONTAINMENT] = min(1.0, intersection / fewer) if fewer > 0 else 0.0
    found[_MIN_LETTERS] = max(0.0, min(size_without(ours, one_common), size_without(theirs, other_common)))
    one, other = ours[_LETTERS] - one_common, theirs[_LETTERS] - other_common
    shorter = min(one, other)
    found[_LENGTH_RATIO] = max(one, other) / shorter if shorter > 0 else np.inf
    ours_left, theirs_left, both = shared_values(mine, others, end, common)
    fewer_sentences = min(ours_left, theirs_left)
    found[_SENTENCES] = both / fewer_sentences if fewer_sentences else 0.0


@kernel_inline
def shingles_of(header: Header, common: float) -> float:
    """Return how many shingles of a page so many letters of common sentences bring."""
    if header[_LETTERS] == 0:
        return 0.0
    return float(common * min(1.0, header[_SHINGLES] / header[_LETTERS]))


@kernel_inline
def size_without(header: Header, common: float) -> float:
    """Return the size of a page without so many letters of common sentences."""
    size = float(header[_SIZE])
    return size * (1.0 - common / header[_LETTERS]) if common else size


@kernel_inline
def alphabetic_share(header: Header) -> float:
    """Return the share of letters of an alphabet in a page."""
    if header[_LETTERS] == 0:
        return 0.0
    return float((header[_LETTERS] - header[_SIZE]) / header[_LETTERS] * 15 / 7)


@kernel_inline
def common_end(ours: Sample, theirs: Sample, limit: int) -> np.uint32:
    """Return the largest value up to which two samples of at most `limit` values are known."""
    end = _LARGEST
    if len(ours) == limit:
        end = ours[limit - 1]
    if len(theirs) == limit:
        end = min(end, theirs[limit - 1])
    return end


@kernel_inline
def shared_values(ours: Sample, theirs: Sample, end: np.uint32, common: Sample) -> tuple[int, int, int]:
    """Return how many values up to `end`, without common ones, two samples have: each, and both. All ascend."""
    one = other = both = i = k = at = 0
    while i < len(ours) or k < len(theirs):
        is_one = i < len(ours) and (k == len(theirs) or ours[i] <= theirs[k])
        is_other = k < len(theirs) and (i == len(ours) or theirs[k] <= ours[i])
        value = ours[i] if is_one else theirs[k]
        if value > end:
            break
        while at < len(common) and common[at] < value:
            at += 1
        if at == len(common) or common[at] != value:
            one += is_one
            other += is_other
            both += is_one and is_other
        i += is_one
        k += is_other
    return one, other, both


@kernel_inline_allocating
def shared_numbers(ours: Sample, theirs: Sample, end: np.uint32) -> tuple[int, int, int]:
    """Return of two samples of numbers up to `end` how many different ones the smaller has, and both; and conflicts.

    Conflicts are numbers that one of them lacks, as many of a unit as each of them has. Both samples ascend.
    """
    our_units, their_units = np.zeros(_UNITS, np.int64), np.zeros(_UNITS, np.int64)
    one = other = both = i = k = 0
    while i < len(ours) or k < len(theirs):
        is_one = i < len(ours) and (k == len(theirs) or ours[i] <= theirs[k])
        is_other = k < len(theirs) and (i == len(ours) or theirs[k] <= ours[i])
        number = ours[i] if is_one else theirs[k]
        if number > end:
            break
        one += is_one
        other += is_other
        both += is_one and is_other
        our_units[number & _UNIT] += is_one and not is_other
        their_units[number & _UNIT] += is_other and not is_one
        while i < len(ours) and ours[i] == number:
            i += 1
        while k < len(theirs) and theirs[k] == number:
            k += 1
    conflicts = 0
    for unit in range(_UNITS):
        conflicts += min(our_units[unit], their_units[unit])
    return min(one, other), both, conflicts


@kernel_inline
def is_among(fewer: Sample, more: Sample) -> bool:
    """Return whether a sample has each number of another one as often at least. Both ascend."""
    at = 0
    for number in fewer:
        while at < len(more) and more[at] < number:
            at += 1
        if at == len(more) or more[at] != number:
            return False
        at += 1
    return True
