"""How much of two pages is the same, without the sentences that are the own text of a host.

A sketch cannot be taken apart, but the sizes that it estimates can: of the shingles that two pages share,
those of common sentences in both are subtracted, and of the shingles that either has, those of common
sentences in either. A sentence brings as many shingles as its letters times the page's shingles a letter, which
is nearly 1, and less where sentences repeat each other's words.

Of a page with many sentences only those with the smallest hashes are known, the same part for each page. The
letters of all its common sentences are then estimated by their share of the letters that are known.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.sentences import LENGTH_BITS, LETTERS_A_QUARTER
from dedup_service.core.kernels import kernel, kernel_inline, popcount

Sentences = npt.NDArray[np.uint32]
"""Sentence values of a page, ascending and distinct: uint32[n]."""

NONE_COMMON = np.empty(0, np.uint32)
"""No common sentences: uint32[0]."""

_LENGTH = np.uint32((1 << LENGTH_BITS) - 1)


@kernel_inline
def letters_in(value: np.uint32) -> float:
    """Return the letters of a sentence, as its value has them."""
    return float(value & _LENGTH) * LETTERS_A_QUARTER


@kernel
def letters_of_common(sentences: Sentences, letters: int, cut: bool, common: Sentences) -> float:
    """Return the letters that the common sentences have in a page, at most all of them.

    letters: of the page. cut: whether it has more sentences than are known. common: ascending.
    """
    known = found = 0.0
    at = 0
    for value in sentences:
        known += letters_in(value)
        while at < len(common) and common[at] < value:
            at += 1
        if at < len(common) and common[at] == value:
            found += letters_in(value)
    if cut and known > 0.0:
        found *= max(1.0, letters / known)
    return min(found, float(letters))


@kernel
def shared_of_common(one: Sentences, other: Sentences, end: np.uint32, common: Sentences) -> float:
    """Return which share of the letters of common sentences of two pages is in both, 0 to 1.

    end: the largest value up to which the sentences of both are known.
    """
    both = either = 0.0
    ours = theirs = 0
    for value in common:
        if value > end:
            break
        while ours < len(one) and one[ours] < value:
            ours += 1
        while theirs < len(other) and other[theirs] < value:
            theirs += 1
        in_one = ours < len(one) and one[ours] == value
        in_other = theirs < len(other) and other[theirs] == value
        if in_one or in_other:
            either += letters_in(value)
        if in_one and in_other:
            both += letters_in(value)
    return both / either if either > 0.0 else 0.0


@kernel
def overlap(
    shingles: int, common_of_one: float, common_of_other: float, shared: float, jaccard: float
) -> tuple[float, float]:
    """Return the sizes of intersection and union of the shingles, without common sentences.

    shingles: of both pages together. common_of_one, common_of_other: shingles of common sentences in each.
    shared: share of these that is in both, 0 to 1. jaccard: of all shingles.
    |A ∩ B| = J·(|A| + |B|)/(1 + J).
    """
    union = shingles / (1.0 + jaccard)
    both = shared * (common_of_one + common_of_other) / (1.0 + shared)
    either = common_of_one + common_of_other - both
    intersection = max(0.0, jaccard * union - both)
    return intersection, max(intersection, union - either)


@kernel
def screened(
    sketch: npt.NDArray[np.uint64],
    shingles: int,
    letters: int,
    sentences: Sentences,
    common: Sentences,
    min_jaccard: float,
    rows: npt.NDArray[np.int64],
    sketches: npt.NDArray[np.uint64],
    other_shingles: npt.NDArray[np.int64],
    other_sentences: npt.NDArray[np.uint32],
    other_counts: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Return which rows may be so similar to a page without its host's own text: int64[m].

    The page: sketch uint64[words], its shingles and letters, its sentences, and those of them that are common
    on its host. rows: int64[n], to look at; sketches: uint64[pages, words]; other_shingles: int64[pages];
    other_sentences: uint32[pages, most], of which other_counts int64[pages] are used.
    Only what is common in both pages is known here, so a row that is kept may still be less similar.
    """
    kept = np.empty(len(rows), np.int64)
    count = 0
    bits = 64 * sketches.shape[1]
    mine = letters_of_common(sentences, letters, False, common)
    known = 0.0
    for value in sentences:
        known += letters_in(value)
    scale = shingles / letters if letters else 0.0
    if known > 0.0:
        scale *= max(1.0, letters / known)
    for row in rows:
        differing = 0
        for word in range(sketches.shape[1]):
            differing += popcount(sketch[word] ^ sketches[row, word])
        jaccard = max(0.0, 1.0 - 2.0 * differing / bits)
        union = (shingles + other_shingles[row]) / (1.0 + jaccard)
        intersection = jaccard * union
        both = 0.0
        theirs = 0
        for value in common:
            while theirs < other_counts[row] and other_sentences[row, theirs] < value:
                theirs += 1
            if theirs < other_counts[row] and other_sentences[row, theirs] == value:
                both += letters_in(value)
        rest = max(0.0, intersection - both * scale)
        if rest >= min_jaccard * max(rest, shingles - mine * scale) and jaccard >= min_jaccard:
            kept[count] = row
            count += 1
    return kept[:count]
