"""Wang & Wang's combined similarity: μ/(H + 1) + (1 − μ)·J, of word distance H and metadata Jaccard J.

Pages are similar from .25. Source: Wang & Wang 2019. The paper prints "smaller than", which its own figures contradict.
"""

from dataclasses import dataclass
from fractions import Fraction

from dedup_service.core.errors import ConfigurationError

__all__ = ["MAX_RADIUS", "Combined"]

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
