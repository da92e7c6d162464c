"""The words of two pages by weight: what both have, and what one has alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dedup_service.core.fingerprinter import Feature

__all__ = ["FeatureComparison", "SharedFeature", "compare_features"]


@dataclass(frozen=True, slots=True)
class SharedFeature:
    """A word of both pages."""

    one: Feature
    other: Feature

    @property
    def weight(self) -> float:
        """What it weighs in both, at least."""
        return min(self.one.weight, self.other.weight)


@dataclass(frozen=True, slots=True)
class FeatureComparison:
    """The heaviest features, heaviest first. shared: by the smaller weight. one, other: in that page alone."""

    shared: tuple[SharedFeature, ...]
    one: tuple[Feature, ...]
    other: tuple[Feature, ...]


def compare_features(ones: Sequence[Feature], others: Sequence[Feature], most: int) -> FeatureComparison:
    """Return the `most` heaviest features of each kind; of pages with all of their features."""
    left, right = _by_word(ones), _by_word(others)
    shared = [SharedFeature(feature, right[word]) for word, feature in left.items() if word in right]
    shared.sort(key=lambda both: (-both.weight, both.one.word))
    return FeatureComparison(tuple(shared[:most]), _alone(left, right, most), _alone(right, left, most))


def _by_word(features: Sequence[Feature]) -> dict[str, Feature]:
    return {feature.word: feature for feature in features}


def _alone(ours: Mapping[str, Feature], theirs: Mapping[str, Feature], most: int) -> tuple[Feature, ...]:
    alone = [feature for word, feature in ours.items() if word not in theirs]
    return tuple(sorted(alone, key=lambda feature: (-feature.weight, feature.word))[:most])
