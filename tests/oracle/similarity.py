"""The similarity of two pages in plain Python, as the documentation of `Similarity` says it: what it must equal."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from dedup_service.core.evidence.card import BUILT_IN, Card
from dedup_service.core.evidence.packed import (
    BINS,
    LENGTH_BITS,
    LETTERS_A_QUARTER,
    MAX_NUMBERS,
    MAX_SENTENCES,
    Evidence,
)
from dedup_service.core.evidence.similarity import Combined, Similarity, jaccard
from dedup_service.core.verdict import Distance

T = TypeVar("T", int, tuple[int, int])


def estimated_jaccard(a: bytes, b: bytes) -> float:
    """Return the estimate for two sketches of SKETCH_BYTES each, 0 to 1; equal sketches give exactly 1."""
    differing = (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).bit_count()
    return max(0.0, 1.0 - 2.0 * differing / BINS)


@dataclass
class PlainSimilarity:
    """Sums and sets. The names are those of `core.evidence.similarity.Similarity`."""

    one: Evidence
    other: Evidence
    distance: Distance = field(default_factory=Distance)
    common: Sequence[int] = ()
    same_host: bool = False
    card: Card = BUILT_IN

    def __post_init__(self) -> None:
        pages, distance = (self.one, self.other), self.distance
        self.words_distance = math.inf if distance.words is None else distance.words
        self.body_distance = math.inf if distance.body is None else distance.body
        # What tokens say has its plain definition in the tests of the crate: native/src/stream/tests.rs.
        said = Similarity(self.one, self.other, self.distance, self.common, self.same_host, self.card)
        self.score, self.series, self.points = said.score, said.series, said.points
        self.whole_jaccard = said.whole_jaccard
        self._compare_texts(pages, set(self.common))
        self._compare_figures(pages)
        terms = [set(page.terms) for page in pages]
        self.title = len(terms[0] & terms[1]) / len(terms[0] | terms[1]) if all(terms) else 0.0
        self.title_on_host = self.title if self.same_host and all(terms) else 1.0
        metadata = jaccard(self.one.metadata, self.other.metadata)
        self.metadata = float(metadata or 0)
        words = distance.words
        self.combined = Fraction(0) if words is None else Combined().similarity(words, metadata)

    def _compare_texts(self, pages: tuple[Evidence, Evidence], common: set[int]) -> None:
        """Compare letters and shingles, without common sentences."""
        lost = [_letters_of_common(page, common) for page in pages]
        self.common_letters = (lost[0], lost[1])
        lengths = sorted(page.letters - gone for page, gone in zip(pages, lost, strict=True))
        self.length_ratio = lengths[1] / lengths[0] if lengths[0] > 0 else math.inf
        left = [1.0 - gone / page.letters if gone else 1.0 for page, gone in zip(pages, lost, strict=True)]
        self.min_letters = max(0.0, min(page.size * share for page, share in zip(pages, left, strict=True)))

        ours, theirs = _as_far_as_both(*(page.sentence_values for page in pages), most=MAX_SENTENCES)
        either = letters_of((ours | theirs) & common)
        shared = letters_of(ours & theirs & common) / either if either else 0.0

        # |A ∩ B| = J·(|A| + |B|)/(1 + J), of which that of common sentences is taken away.
        brought = [
            gone * min(1.0, page.shingles / page.letters) if page.letters else 0.0
            for page, gone in zip(pages, lost, strict=True)
        ]
        union = (self.one.shingles + self.other.shingles) / (1.0 + self.whole_jaccard)
        both = shared * sum(brought) / (1.0 + shared)
        intersection = max(0.0, self.whole_jaccard * union - both)
        union = max(intersection, union - (sum(brought) - both))
        self.jaccard = min(1.0, intersection / union) if union > 0 else 0.0
        smaller = min(page.shingles - common for page, common in zip(pages, brought, strict=True))
        self.containment = min(1.0, intersection / smaller) if smaller > 0 else 0.0

    def _compare_figures(self, pages: tuple[Evidence, Evidence]) -> None:
        """Compare figures by their digest, and by the sample of the numbers."""
        less, more = sorted(pages, key=lambda page: page.number_count)
        if less.figures == more.figures:
            self.figures = 1.0
        elif more.number_count > MAX_NUMBERS or less.number_count == more.number_count:
            self.figures = 0.0
        else:  # counted, since two numbers of a page may have the same hashes
            self.figures = 0.0 if Counter(less.numbers) - Counter(more.numbers) else 0.5


def letters_of(sentences: Iterable[int]) -> int:
    """Return the letters of sentences, as their values have them."""
    return sum((value & ((1 << LENGTH_BITS) - 1)) * LETTERS_A_QUARTER for value in sentences)


def _letters_of_common(page: Evidence, common: set[int]) -> float:
    """Return the letters of the common sentences of a page, at most all; estimated if not all of them are known."""
    known, found = page.sentence_values, float(letters_of(common & set(page.sentence_values)))
    if page.sentence_count > MAX_SENTENCES and letters_of(known):
        found *= max(1.0, page.letters / letters_of(known))
    return min(found, float(page.letters))


def _as_far_as_both(one: Iterable[T], other: Iterable[T], *, most: int) -> tuple[set[T], set[T]]:
    """Return two samples as far as both reach: one of `most` values was cut off after its largest."""
    samples = list(one), list(other)
    ends = [sample[-1] for sample in samples if len(sample) == most]
    ours, theirs = ({value for value in sample if all(value <= end for end in ends)} for sample in samples)
    return ours, theirs
