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
"""Members of a metadata set up to which it is compared exactly."""

PERMUTATIONS = 128
"""Rows of the MinHash signature of a larger set."""

MAX_RADIUS = 7
"""The largest distance, in bits, at which the block index finds candidates."""

_SET, _SIGNATURE = b"S", b"M"
_STEPS = np.arange(1, PERMUTATIONS + 1, dtype=np.uint64) * GAMMA


def pack(members: Iterable[str]) -> bytes:
    """Return the set of `members`, folded and without empty ones, as bytes; b"" if there are none."""
    hashes = {xxhash.xxh3_64_intdigest(text.encode()) for member in members if (text := fold(member).strip())}
    if not hashes:
        return b""
    values = np.array(sorted(hashes), dtype=np.uint64)
    if len(values) <= EXACT_LIMIT:
        return _SET + values.tobytes()
    return _SIGNATURE + minhash(values).tobytes()


def minhash(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the smallest hash of each row, uint64[PERMUTATIONS], of member hashes uint64[n], n ≥ 1."""
    signature: npt.NDArray[np.uint64] = mix64(values[None, :] + _STEPS[:, None]).min(axis=1)
    return signature


def jaccard(a: bytes, b: bytes) -> Fraction | None:
    """Return the Jaccard similarity of two packed sets, exact if both are small; None if either is empty."""
    if not a or not b:
        return None
    left, right = np.frombuffer(a[1:], np.uint64), np.frombuffer(b[1:], np.uint64)
    if a[:1] == b[:1] == _SET:
        common = len(np.intersect1d(left, right, assume_unique=True))
        return Fraction(common, len(left) + len(right) - common)
    rows = [values if kind == _SIGNATURE else minhash(values) for kind, values in ((a[:1], left), (b[:1], right))]
    return Fraction(int((rows[0] == rows[1]).sum()), PERMUTATIONS)


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


_UNKNOWN = Distance()


@dataclass(frozen=True)
class Similarity:
    """The similarity of two pages; each quantity is computed when it is needed.

    one, other: their evidence. distance: of their fingerprints.
    """

    one: Evidence
    other: Evidence
    distance: Distance = _UNKNOWN

    @cached_property
    def jaccard(self) -> float:
        """Estimated Jaccard similarity of the shingles, 0 to 1; 0 if a page has none."""
        if not (self.one.shingles and self.other.shingles):
            return 0.0
        return estimated_jaccard(self.one.sketch, self.other.sketch)

    @cached_property
    def containment(self) -> float:
        """Estimated share of the smaller page's shingles that the larger one has, 0 to 1."""
        fewer = min(self.one.shingles, self.other.shingles)
        if not fewer:
            return 0.0
        common = self.jaccard * (self.one.shingles + self.other.shingles) / (1.0 + self.jaccard)
        return min(1.0, common / fewer)

    @property
    def min_letters(self) -> int:
        """Letters of the page with fewer, where 15 of an alphabet count as 8."""
        return min(self.one.size, self.other.size)

    @cached_property
    def length_ratio(self) -> float:
        """Letters of the longer page for each letter of the shorter, 1 or more; infinite if one has none."""
        shorter, longer = sorted((self.one.letters, self.other.letters))
        return longer / shorter if shorter else math.inf

    @cached_property
    def numbers(self) -> float:
        """Share of the numbers of the page with fewer that the other page has, 0 to 1; 1 if it has none."""
        return _share(self.one.numbers, self.other.numbers, MAX_NUMBERS)

    @cached_property
    def missing_numbers(self) -> float:
        """Numbers of the page with fewer that the other page lacks, estimated."""
        return (1.0 - self.numbers) * min(self.one.number_count, self.other.number_count)

    @cached_property
    def sentences(self) -> float:
        """Share of the sentences of the page with fewer that the other page has too; 0 if it has none."""
        if not (self.one.sentences and self.other.sentences):
            return 0.0
        return _share(self.one.sentences, self.other.sentences, MAX_SENTENCES)

    @cached_property
    def title(self) -> float:
        """Jaccard similarity of the terms of the titles, 0 to 1; 0 if one has no title."""
        one, other = set(self.one.terms), set(self.other.terms)
        if not (one and other):
            return 0.0
        return len(one & other) / len(one | other)

    @property
    def words_distance(self) -> float:
        """Differing bits in the `words` channel; infinite if one page has no fingerprint."""
        return math.inf if self.distance.words is None else self.distance.words

    @property
    def body_distance(self) -> float:
        """Differing bits in the `body` channel; infinite if one page has no fingerprint."""
        return math.inf if self.distance.body is None else self.distance.body

    @cached_property
    def metadata(self) -> float:
        """Jaccard similarity of keywords, tags and references, 0 to 1; 0 if one page states none."""
        return float(jaccard(self.one.metadata, self.other.metadata) or 0)

    @cached_property
    def combined(self) -> Fraction:
        """Wang & Wang's combined similarity of word distance and metadata for μ = .9, 0 to 1."""
        if self.distance.words is None:
            return Fraction(0)
        return Combined().similarity(self.distance.words, jaccard(self.one.metadata, self.other.metadata))


def _share(one: tuple[int, ...], other: tuple[int, ...], limit: int) -> float:
    """Return the share of the smaller of two ascending samples that the larger one has.

    A sample of `limit` values was cut off after its largest one. What follows is unknown, so it is not
    compared.
    """
    bounds = [values[-1] for values in (one, other) if len(values) == limit]
    if bounds:
        bound = min(bounds)
        one, other = (tuple(value for value in values if value <= bound) for values in (one, other))
    fewer = min(len(one), len(other))
    return len(set(one) & set(other)) / fewer if fewer else 1.0
