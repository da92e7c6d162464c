"""How two pages are alike, by what is kept of each: the quantities that a rule sets bounds to.

Containment follows from the Jaccard similarity and the sizes: |A ∩ B| = J·(|A| + |B|)/(1 + J). Shares are of the page
that has fewer, so a page that was cut or lengthened still shares all of what it has.
Every quantity is the same in both orders, which is why a verdict on a pair does not depend on who came first.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dedup_service.core.combined import Combined
from dedup_service.core.evidence.packed import MOST_NUMBERS, MOST_SENTENCES, Evidence
from dedup_service.core.evidence.sketch import estimated_jaccard
from dedup_service.core.metadata import jaccard
from dedup_service.core.verdict import Distance

__all__ = ["Likeness"]


_UNKNOWN = Distance()


@dataclass(frozen=True)
class Likeness:
    """Of two pages; each quantity is worked out when it is asked for. distance: of their fingerprints."""

    one: Evidence
    other: Evidence
    distance: Distance = _UNKNOWN

    @cached_property
    def jaccard(self) -> float:
        """Estimated Jaccard similarity of the shingles, 0 to 1; 0 where a page has none."""
        if not (self.one.shingles and self.other.shingles):
            return 0.0
        return estimated_jaccard(self.one.sketch, self.other.sketch)

    @cached_property
    def containment(self) -> float:
        """Estimated share of the smaller page's shingles that the larger one has, 0 to 1."""
        least = min(self.one.shingles, self.other.shingles)
        if not least:
            return 0.0
        common = self.jaccard * (self.one.shingles + self.other.shingles) / (1.0 + self.jaccard)
        return min(1.0, common / least)

    @property
    def least_letters(self) -> int:
        """Letters of the page with fewer, 15 of an alphabet counting as 8."""
        return min(self.one.size, self.other.size)

    @cached_property
    def length_ratio(self) -> float:
        """Letters of the longer page for one of the shorter, 1 and more; infinite where one has none."""
        least, most = sorted((self.one.letters, self.other.letters))
        return most / least if least else math.inf

    @cached_property
    def numbers(self) -> float:
        """Share of the numbers of the page with fewer that the other has, 0 to 1; 1 where it has none."""
        return _share(self.one.numbers, self.other.numbers, MOST_NUMBERS)

    @cached_property
    def missing_numbers(self) -> float:
        """How many numbers of the page with fewer the other lacks."""
        return (1.0 - self.numbers) * min(self.one.number_count, self.other.number_count)

    @cached_property
    def sentences(self) -> float:
        """Share of the sentences of the page with fewer that stand word for word in the other; 0 where it has none."""
        if not (self.one.sentences and self.other.sentences):
            return 0.0
        return _share(self.one.sentences, self.other.sentences, MOST_SENTENCES)

    @cached_property
    def title(self) -> float:
        """Jaccard similarity of the terms of the titles, 0 to 1; 0 where one has no title."""
        one, other = set(self.one.terms), set(self.other.terms)
        if not (one and other):
            return 0.0
        return len(one & other) / len(one | other)

    @property
    def words_distance(self) -> float:
        """Differing bits of the `words` channel; infinite where one has no fingerprint."""
        return math.inf if self.distance.words is None else self.distance.words

    @property
    def body_distance(self) -> float:
        """Differing bits of the `body` channel; infinite where one has no fingerprint."""
        return math.inf if self.distance.body is None else self.distance.body

    @cached_property
    def metadata(self) -> float:
        """Jaccard similarity of keywords, tags and references, 0 to 1; 0 where one states none."""
        return float(jaccard(self.one.metadata, self.other.metadata) or 0)

    @cached_property
    def combined(self) -> Fraction:
        """Wang & Wang's similarity of word distance and metadata for μ = .9, 0 to 1."""
        if self.distance.words is None:
            return Fraction(0)
        return Combined().similarity(self.distance.words, jaccard(self.one.metadata, self.other.metadata))


def _share(one: tuple[int, ...], other: tuple[int, ...], most: int) -> float:
    """Return the share of the smaller of two ascending samples that the larger one has.

    A sample of `most` values is cut off at its largest one; beyond it nothing is known, so nothing is compared.
    """
    bounds = [values[-1] for values in (one, other) if len(values) == most]
    if bounds:
        bound = min(bounds)
        one, other = (tuple(value for value in values if value <= bound) for values in (one, other))
    least = min(len(one), len(other))
    return len(set(one) & set(other)) / least if least else 1.0
