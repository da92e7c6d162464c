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
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.overlap import NONE_COMMON, letters_of_common, overlap, shared_of_common
from dedup_service.core.evidence.packed import MAX_NUMBERS, MAX_SENTENCES, Evidence
from dedup_service.core.evidence.sketch import estimated_jaccard
from dedup_service.core.splitmix import GAMMA, mix64
from dedup_service.core.text.normalise import fold
from dedup_service.core.verdict import Distance

__all__ = [
    "EXACT_LIMIT",
    "MAX_RADIUS",
    "NONE_COMMON",
    "PERMUTATIONS",
    "Combined",
    "Similarity",
    "jaccard",
    "minhash",
    "pack",
]

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
_LARGEST_VALUE = (1 << 32) - 1


@dataclass(frozen=True)
class Similarity:
    """The similarity of two pages; each quantity is computed when it is needed.

    one, other: their evidence. distance: of their fingerprints. common: values of sentences that a host of the
    two repeats, ascending and distinct: uint32[n]. Jaccard similarity, containment, sentences and lengths are
    then those of the pages without these sentences; numbers, titles and distances are not changed.
    """

    one: Evidence
    other: Evidence
    distance: Distance = _UNKNOWN
    common: npt.NDArray[np.uint32] = field(default_factory=lambda: NONE_COMMON)
    same_host: bool = False

    @cached_property
    def jaccard(self) -> float:
        """Estimated Jaccard similarity of the shingles, 0 to 1; 0 if a page has none."""
        common, union = self._overlap
        return min(1.0, common / union) if union > 0 else 0.0

    @cached_property
    def containment(self) -> float:
        """Estimated share of the smaller page's shingles that the larger one has, 0 to 1."""
        one, other = self._common_shingles
        fewer = min(self.one.shingles - one, self.other.shingles - other)
        return min(1.0, self._overlap[0] / fewer) if fewer > 0 else 0.0

    @cached_property
    def min_letters(self) -> float:
        """Letters of the page with fewer, where 15 of an alphabet count as 8."""
        sizes = (
            page.size * (1.0 - common / page.letters) if common else page.size
            for page, common in zip((self.one, self.other), self.common_letters, strict=True)
        )
        return max(0, min(sizes))

    @cached_property
    def length_ratio(self) -> float:
        """Letters of the longer page for each letter of the shorter, 1 or more; infinite if one has none."""
        one, other = self.common_letters
        shorter, longer = sorted((self.one.letters - one, self.other.letters - other))
        return longer / shorter if shorter > 0 else math.inf

    @cached_property
    def figures(self) -> float:
        """1 if both pages have the same figures; .5 if one has those of the other and more; else 0.

        A figure is a value with its sign and unit. Figures are compared as often as they occur and without their
        order, by a digest of all of them. Only pages of up to MAX_NUMBERS numbers can have .5: of more, the
        evidence does not say which were added, so any difference counts as a changed figure.
        """
        if self.one.figures == self.other.figures:
            return 1.0
        fewer, more = sorted((self.one, self.other), key=lambda page: page.number_count)
        if more.number_count > MAX_NUMBERS or fewer.number_count == more.number_count:
            return 0.0
        # Counted, since two numbers of a page may have the same hashes.
        return 0.0 if Counter(fewer.numbers) - Counter(more.numbers) else 0.5

    @cached_property
    def numbers(self) -> float:
        """Share of the numbers of the page with fewer that the other page has, with unit; 1 if it has none."""
        one, other = self._numbers
        fewer = min(len(one), len(other))
        return len(one & other) / fewer if fewer else 1.0

    @cached_property
    def missing_numbers(self) -> float:
        """Numbers of the page with fewer that the other page lacks, estimated."""
        return (1.0 - self.numbers) * min(self.one.number_count, self.other.number_count)

    @cached_property
    def swapped_numbers(self) -> float:
        """Share of numbers that stand under the same unit as another value in the other page, 0 to 1.

        A yearly event changes its numbers and keeps their units; a repost drops some and changes none. Under
        each unit, conflicts are the numbers of the page with fewer that the other page lacks there:
        swapped = conflicts / (conflicts + numbers in common), and 0 without a conflict.
        """
        one, other = self._numbers
        common = one & other
        ours, theirs = (Counter(unit for _, unit in numbers - common) for numbers in (one, other))
        conflicts = (ours & theirs).total()
        return conflicts / (conflicts + len(common)) if conflicts else 0.0

    @cached_property
    def alphabetic(self) -> float:
        """Share of letters of an alphabet, in the page that has the larger share; 0 to 1.

        It follows from the sizes: 15 letters of an alphabet count as 8.
        """
        shares = (
            (page.letters - page.size) / page.letters * 15 / 7 if page.letters else 0.0
            for page in (self.one, self.other)
        )
        return min(1.0, max(shares))

    @property
    def unspaced(self) -> float:
        """Share of letters of scripts without spaces, in the page that has the smaller share; 0 to 1."""
        return 1.0 - self.alphabetic

    @cached_property
    def sentences(self) -> float:
        """Share of the sentences of the page with fewer that the other page has too; 0 if it has none."""
        one, other = self._sentences
        fewer = min(len(one), len(other))
        return len(np.intersect1d(one, other, assume_unique=True)) / fewer if fewer else 0.0

    @cached_property
    def title(self) -> float:
        """Jaccard similarity of the terms of the titles, 0 to 1; 0 if one has no title."""
        one, other = set(self.one.terms), set(self.other.terms)
        if not (one and other):
            return 0.0
        return len(one & other) / len(one | other)

    @property
    def title_on_host(self) -> float:
        """The same for two pages of one host that have titles; 1 for any others."""
        return self.title if self.same_host and self.one.terms and self.other.terms else 1.0

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

    @cached_property
    def _overlap(self) -> tuple[float, float]:
        """Estimated sizes of intersection and union of the shingles, without common sentences."""
        one, other = self.one.shingles, self.other.shingles
        if not (one and other):
            return 0.0, one + other
        jaccard = estimated_jaccard(self.one.sketch, self.other.sketch)
        shared = 0.0
        if any(self.common_letters):
            values = self.one.sentence_values, self.other.sentence_values
            ends = [int(sample[-1]) for sample in values if len(sample) == MAX_SENTENCES]
            end = min(ends, default=_LARGEST_VALUE)
            shared = shared_of_common(*values, np.uint32(end), self.common)
        return overlap(one + other, *self._common_shingles, shared, jaccard)

    @cached_property
    def common_letters(self) -> tuple[float, float]:
        """Letters of the common sentences in each page, at most all; estimated if its sentences were sampled."""
        if not len(self.common):
            return 0.0, 0.0
        one, other = (
            letters_of_common(page.sentence_values, page.letters, page.sentence_count > MAX_SENTENCES, self.common)
            for page in (self.one, self.other)
        )
        return one, other

    @property
    def _common_shingles(self) -> tuple[float, float]:
        """Shingles that the common sentences bring to each page."""
        if not len(self.common):
            return 0.0, 0.0
        one, other = (
            letters * min(1.0, page.shingles / page.letters) if page.letters else 0.0
            for page, letters in zip((self.one, self.other), self.common_letters, strict=True)
        )
        return one, other

    @cached_property
    def _sentences(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The samples of sentences as far as both reach, without common ones."""
        one, other = _sampled_alike(self.one.sentence_values, self.other.sentence_values, MAX_SENTENCES)
        if not len(self.common):
            return one, other
        return np.setdiff1d(one, self.common, assume_unique=True), np.setdiff1d(other, self.common, assume_unique=True)

    @cached_property
    def _numbers(self) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
        """The samples of numbers as far as both reach."""
        one, other = self.one.numbers, self.other.numbers
        ends = [numbers[-1] for numbers in (one, other) if len(numbers) == MAX_NUMBERS]
        if not ends:
            return set(one), set(other)
        end = min(ends)
        return {number for number in one if number <= end}, {number for number in other if number <= end}


def _sampled_alike(
    one: npt.NDArray[np.uint32], other: npt.NDArray[np.uint32], limit: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return two ascending samples as far as both reach.

    A sample of `limit` values was cut off after its largest one. What follows is unknown, so it is not
    compared.
    """
    ends = [int(values[-1]) for values in (one, other) if len(values) == limit]
    if not ends:
        return one, other
    end = min(ends)
    return one[: np.searchsorted(one, end, side="right")], other[: np.searchsorted(other, end, side="right")]
