"""The similarity of two pages, by their evidence: the quantities that a rule sets bounds on.

Containment follows from the Jaccard similarity J and the sizes: |A ∩ B| = J·(|A| + |B|)/(1 + J). Shares
refer to the page that has fewer, so a page that was cut or lengthened still shares everything it has. Every
quantity is the same in both orders, which is why the verdict on a pair does not depend on which page came
first.

Metadata: keywords, tags and references of a page are one set. A set of up to 64 members, which nearly every
page has, is stored as the hashes of its members and compared exactly. A larger one is reduced to a MinHash
signature of 128 independent permutations. The 100 functions (x + i) mod 100 of the paper are rotations of
one order, far from independent, so independent ones are used.

Combined similarity: μ/(H + 1) + (1 − μ)·J, of word distance H and metadata similarity J; pages are similar
from .25. The paper prints "smaller than", which its own figures contradict.

Source: Wang & Wang 2019 (metadata as one set, MinHash, combined similarity); Broder 1997 (MinHash).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import eq

from dedup_service._native import similarity
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.card import BUILT_IN, Card
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.splitmix import GAMMA, splitmix64
from dedup_service.core.verdict import Distance

PERMUTATIONS = 128
"""Rows of the MinHash signature of a larger set."""

MAX_RADIUS = 7
"""The largest distance, in bits, at which the block index finds candidates."""

_SET, _SIGNATURE = b"S", b"M"
_UNKNOWN = Distance()


def jaccard(a: bytes, b: bytes) -> Fraction | None:
    """Return the Jaccard similarity of two packed sets, exact if both are small; None if either is empty.

    A packed set is `S` and the hashes of its members, or `M` and its signature (`native/src/evidence/metadata.rs`).
    """
    if not a or not b:
        return None
    if a[:1] == b[:1] == _SET:
        ours, theirs = set(_values(a)), set(_values(b))
        return Fraction(len(ours & theirs), len(ours | theirs))
    return Fraction(sum(map(eq, _signature(a), _signature(b))), PERMUTATIONS)


def _values(packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(packed) // 8}Q", packed[1:])


def _signature(packed: bytes) -> Sequence[int]:
    """Return the smallest hash of the members in each permutation."""
    members = _values(packed)
    if packed[:1] == _SIGNATURE:
        return members
    return [min(splitmix64(member + row * GAMMA) for member in members) for row in range(PERMUTATIONS)]


@dataclass(frozen=True, slots=True)
class Combined:
    """Wang & Wang's combined similarity for one μ, in exact fractions.

    mu_thousandths: the weight μ of the text, in thousandths, so that .9/6 + .1 is exactly .25.
    With μ = .8 the formula would reach H = 15; candidates are found up to H = 7.
    """

    mu_thousandths: int = 900

    def __post_init__(self) -> None:
        if not 0 < self.mu_thousandths <= 1000:
            raise ConfigurationError(f"μ must be above 0 and at most 1, got {self.mu_thousandths / 1000}")

    def similarity(self, words_distance: int, jaccard: Fraction | None) -> Fraction:
        """Return the similarity, 0 to 1. jaccard: of the metadata; None if either page states none."""
        if jaccard is None:
            return Fraction(1, words_distance + 1)
        mu = Fraction(self.mu_thousandths, 1000)
        return mu / (words_distance + 1) + (1 - mu) * jaccard

    @property
    def threshold(self) -> Fraction:
        """The similarity from which pages are near-duplicates."""
        return Fraction(1, 4)

    @property
    def radius(self) -> int:
        """The largest word distance at which pages can be similar, at least 3 and at most MAX_RADIUS."""
        distances = range(MAX_RADIUS + 1)
        return max(h for h in distances if self.similarity(h, Fraction(1)) >= self.threshold or h <= 3)


class Similarity:
    """The similarity of two pages.

    one, other: their evidence. distance: of their fingerprints. common: values of sentences that a host of the
    two repeats, ascending and distinct. Jaccard similarity, containment and lengths are then those of the pages
    without these sentences; figures, titles and distances are not changed. card: of the score.

    Attributes:
        jaccard: Estimated Jaccard similarity of the shingles, 0 to 1; 0 if a page has none.
        whole_jaccard: The same of the whole pages, whatever sentences are common.
        containment: Estimated share of the smaller page's shingles that the larger one has, 0 to 1.
        min_letters: Letters of the page with fewer, where 15 of an alphabet count as 8.
        length_ratio: Letters of the longer page for each letter of the shorter, 1 or more; infinite if one has none.
        figures: 1 if both pages have the same figures; .5 if one has those of the other and more; else 0. A figure is
            a value with its sign and unit. Figures are compared as often as they occur and without their order, by a
            digest of all of them. Only pages of up to `packed.MAX_NUMBERS` numbers can have .5: of more, the evidence
            does not say which were added, so any difference counts as a changed figure.
        title: Jaccard similarity of the terms of the titles, 0 to 1; 0 if one has no title.
        title_on_host: The same for two pages of one host that have titles; 1 for any others.
        words_distance: Differing bits in the `words` channel; infinite if one page has no fingerprint.
        body_distance: Differing bits in the `body` channel; infinite if one page has no fingerprint.
        metadata: Jaccard similarity of keywords, tags and references, 0 to 1; 0 if one page states none.
        combined: Wang & Wang's combined similarity of word distance and metadata for μ = .9, 0 to 1.
        score: What the nine quantities of `points` add up to by the card; above 0, more such pairs are copies than
            not.
        series: 1 if the pages look like two items of a series: of one host, and either under one title, each with a
            number of its own at the beginning in the same words, or under titles that name what differs; else 0.
        points: Of each quantity of the score its name, its value, and its points; negative ones are against a match.
        common_letters: Letters of the common sentences in each page, at most all; estimated if its sentences were
            sampled.
    """

    jaccard: float
    whole_jaccard: float
    containment: float
    min_letters: float
    length_ratio: float
    figures: float
    title: float
    title_on_host: float
    words_distance: float
    body_distance: float
    metadata: float
    combined: Fraction
    score: float
    series: float
    points: list[tuple[str, float, float]]
    common_letters: tuple[float, float]

    def __init__(
        self,
        one: Evidence,
        other: Evidence,
        distance: Distance = _UNKNOWN,
        common: Sequence[int] = (),
        same_host: bool = False,
        card: Card = BUILT_IN,
    ) -> None:
        self.one, self.other, self.distance = one, other, distance
        pages, distances = (one.packed, other.packed), (distance.words, distance.body)
        self.__dict__.update(similarity(pages, distances, common, same_host, Combined().mu_thousandths, card))
