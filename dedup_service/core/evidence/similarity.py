"""Keywords, tags and references of a page as one set, and the Jaccard similarity of two such sets.

Small sets (up to 64 members, nearly all pages) are kept as the hashes of their members and compared
exactly. A larger one is reduced to a MinHash signature of 128 independent permutations.

Source: Wang & Wang 2019 (metadata as one set, MinHash); Broder 1997. The paper's 100 functions
(x + i) mod 100 are rotations of one order and far from independent, so independent ones are used.

Wang & Wang's combined similarity: μ/(H + 1) + (1 − μ)·J, of word distance H and metadata Jaccard J.

Pages are similar from .25. Source: Wang & Wang 2019. The paper prints "smaller than", which its own figures contradict.

How two pages are alike, by what is kept of each: the quantities that a rule sets bounds to.

Containment follows from the Jaccard similarity and the sizes: |A ∩ B| = J·(|A| + |B|)/(1 + J). Shares are of the page
that has fewer, so a page that was cut or lengthened still shares all of what it has.
Every quantity is the same in both orders, which is why a verdict on a pair does not depend on who came first.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.packed import MAX_NUMBERS, MAX_SENTENCES, Evidence
from dedup_service.core.evidence.sketch import estimated_jaccard
from dedup_service.core.splitmix import GAMMA, mix64
from dedup_service.core.text.normalise import fold
from dedup_service.core.verdict import Distance

__all__ = ["EXACT_LIMIT", "MAX_RADIUS", "PERMUTATIONS", "Combined", "Similarity", "jaccard", "minhash", "pack"]

EXACT_LIMIT = 64
PERMUTATIONS = 128

_SET, _SIGNATURE = b"S", b"M"
_rows = np.arange(1, PERMUTATIONS + 1, dtype=np.uint64)
_STEPS = _rows * GAMMA


def pack(members: Iterable[str]) -> bytes:
    """Return the set of `members` (normalised, empty ones dropped) as bytes; no members give no bytes."""
    hashes = {xxhash.xxh3_64_intdigest(text.encode()) for member in members if (text := fold(member).strip())}
    if not hashes:
        return b""
    values = np.array(sorted(hashes), dtype=np.uint64)
    if len(values) <= EXACT_LIMIT:
        return _SET + values.tobytes()
    return _SIGNATURE + minhash(values).tobytes()


def minhash(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the signature uint64[PERMUTATIONS] of member hashes uint64[n], n ≥ 1: the least mixed hash of each row."""
    minimum: npt.NDArray[np.uint64] = mix64(values[None, :] + _STEPS[:, None]).min(axis=1)
    return minimum


def jaccard(a: bytes, b: bytes) -> Fraction | None:
    """Return the similarity of two packed sets, exact where both are small; None where either is empty."""
    if not a or not b:
        return None
    left, right = np.frombuffer(a[1:], np.uint64), np.frombuffer(b[1:], np.uint64)
    if a[:1] == b[:1] == _SET:
        common = len(np.intersect1d(left, right, assume_unique=True))
        return Fraction(common, len(left) + len(right) - common)
    rows = [values if kind == _SIGNATURE else minhash(values) for kind, values in ((a[:1], left), (b[:1], right))]
    return Fraction(int((rows[0] == rows[1]).sum()), PERMUTATIONS)


MAX_RADIUS = 7
"""The largest distance, in bits, at which the block index finds candidates."""


@dataclass(frozen=True, slots=True)
class Combined:
    """The similarity for one μ, compared exactly.

    mu: share of the text, in thousandths, so that .9/6 + .1 is .25 and not a little less.
    With μ = .8 the formula reaches H = 15; candidates end at H = 7.
    """

    mu_thousandths: int = 900

    def __post_init__(self) -> None:
        if not 0 < self.mu_thousandths <= 1000:
            raise ConfigurationError(f"μ must be above 0 and at most 1, got {self.mu_thousandths / 1000}")

    def similarity(self, words_distance: int, jaccard: Fraction | None) -> Fraction:
        """Return the similarity, 0 to 1; `jaccard` is None where either page states no metadata."""
        if jaccard is None:
            return Fraction(1, words_distance + 1)
        mu = Fraction(self.mu_thousandths, 1000)
        return mu / (words_distance + 1) + (1 - mu) * jaccard

    @property
    def threshold(self) -> Fraction:
        """Near-duplicates from here on."""
        return Fraction(1, 4)

    @property
    def radius(self) -> int:
        """The largest word distance that the formula can still call similar, cut at what the index finds."""
        distances = range(MAX_RADIUS + 1)
        return max(h for h in distances if self.similarity(h, Fraction(1)) >= self.threshold or h <= 3)


_UNKNOWN = Distance()


@dataclass(frozen=True)
class Similarity:
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
        minimum = min(self.one.shingles, self.other.shingles)
        if not minimum:
            return 0.0
        common = self.jaccard * (self.one.shingles + self.other.shingles) / (1.0 + self.jaccard)
        return min(1.0, common / minimum)

    @property
    def min_letters(self) -> int:
        """Letters of the page with fewer, 15 of an alphabet counting as 8."""
        return min(self.one.size, self.other.size)

    @cached_property
    def length_ratio(self) -> float:
        """Letters of the longer page for one of the shorter, 1 and more; infinite where one has none."""
        minimum, maximum = sorted((self.one.letters, self.other.letters))
        return maximum / minimum if minimum else math.inf

    @cached_property
    def numbers(self) -> float:
        """Share of the numbers of the page with fewer that the other has, 0 to 1; 1 where it has none."""
        return _share(self.one.numbers, self.other.numbers, MAX_NUMBERS)

    @cached_property
    def missing_numbers(self) -> float:
        """How many numbers of the page with fewer the other lacks."""
        return (1.0 - self.numbers) * min(self.one.number_count, self.other.number_count)

    @cached_property
    def sentences(self) -> float:
        """Share of the sentences of the page with fewer that stand word for word in the other; 0 where it has none."""
        if not (self.one.sentences and self.other.sentences):
            return 0.0
        return _share(self.one.sentences, self.other.sentences, MAX_SENTENCES)

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


def _share(one: tuple[int, ...], other: tuple[int, ...], maximum: int) -> float:
    """Return the share of the smaller of two ascending samples that the larger one has.

    A sample of `maximum` values is cut off at its largest one; beyond it nothing is known, so nothing is compared.
    """
    bounds = [values[-1] for values in (one, other) if len(values) == maximum]
    if bounds:
        bound = min(bounds)
        one, other = (tuple(value for value in values if value <= bound) for values in (one, other))
    minimum = min(len(one), len(other))
    return len(set(one) & set(other)) / minimum if minimum else 1.0
