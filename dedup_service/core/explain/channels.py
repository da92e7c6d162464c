"""Two fingerprints of a channel beside each other: which bits differ, and which table of the block index finds them.

A fingerprint is cut into four blocks of 16 bits, block 0 the lowest, one table each; table t finds a pair whose block t
differs in no more bits than its tolerance, and the first that finds it reports it (`core.index.block_layout`). A
crowded
bucket is split once more; that changes how long a probe takes, never which table finds a pair.

The words of two pages by weight: what both have, and what one has alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dedup_service.core.fingerprinter import Feature
from dedup_service.core.index.block_layout import BLOCK_BITS

__all__ = [
    "BLOCKS",
    "BlockView",
    "ChannelView",
    "FeatureComparison",
    "SharedFeature",
    "compare_channel",
    "compare_features",
    "tolerance_of",
]

BLOCKS = 4
_BLOCK = (1 << BLOCK_BITS) - 1


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block of both, 16 bits each. tolerance: bits that may differ, -1 where the radius needs no such table."""

    block: int
    one: int
    other: int
    tolerance: int

    @property
    def differing(self) -> int:
        """How many bits differ."""
        return (self.one ^ self.other).bit_count()

    @property
    def agrees(self) -> bool:
        """Whether the table of this block finds the pair."""
        return self.differing <= self.tolerance


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel of two pages.

    one, other: fingerprints, None where a page has none. radius: of its block index, None where the rule has none.
    judged: whether both pages have enough text for the index to be asked.
    """

    channel: str
    one: int | None
    other: int | None
    radius: int | None
    judged: bool = True

    @property
    def difference(self) -> int | None:
        """The bits that differ, as one number; None where a page has no fingerprint."""
        return None if self.one is None or self.other is None else self.one ^ self.other

    @property
    def distance(self) -> int | None:
        """How many bits differ."""
        return None if self.difference is None else self.difference.bit_count()

    @property
    def bits(self) -> tuple[int, ...]:
        """The positions that differ, ascending, 0 the lowest."""
        difference = self.difference or 0
        return tuple(bit for bit in range(difference.bit_length()) if difference >> bit & 1)

    @property
    def blocks(self) -> tuple[BlockView, ...]:
        """The four blocks, the lowest first; none where a page has no fingerprint."""
        return tuple(self._blocks())

    @property
    def found(self) -> bool:
        """Whether the block index brings the two together."""
        return self.judged and self.radius is not None and self.distance is not None and self.distance <= self.radius

    @property
    def table(self) -> int | None:
        """The table that reports the pair: the first that finds it; None where it is not found."""
        return next((block.block for block in self._blocks() if block.agrees), None) if self.found else None

    def _blocks(self) -> Iterator[BlockView]:
        if self.one is None or self.other is None:
            return
        for block in range(BLOCKS):
            one, other = (value >> BLOCK_BITS * block & _BLOCK for value in (self.one, self.other))
            yield BlockView(block, one, other, tolerance_of(self.radius, block))


def compare_channel(
    channel: str, one: int | None, other: int | None, radius: int | None, *, judged: bool = True
) -> ChannelView:
    """Return `channel` of two pages with these fingerprints (unsigned 64-bit, None for none).

    >>> compare_channel("words", 0b1000, 0b1011, 3).bits
    (0, 1)
    """
    return ChannelView(channel, one, other, radius, judged)


def tolerance_of(radius: int | None, block: int) -> int:
    """Return in how many bits keys of the table of `block` may differ: what `layout.tolerance` says to the kernels."""
    if radius is None or block > radius:
        return -1
    return 1 if block < radius - 3 else 0


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


def compare_features(ones: Sequence[Feature], others: Sequence[Feature], maximum: int) -> FeatureComparison:
    """Return the `maximum` heaviest features of each kind; of pages with all of their features."""
    left, right = _by_word(ones), _by_word(others)
    shared = [SharedFeature(feature, right[word]) for word, feature in left.items() if word in right]
    shared.sort(key=lambda both: (-both.weight, both.one.word))
    return FeatureComparison(tuple(shared[:maximum]), _alone(left, right, maximum), _alone(right, left, maximum))


def _by_word(features: Sequence[Feature]) -> dict[str, Feature]:
    return {feature.word: feature for feature in features}


def _alone(ours: Mapping[str, Feature], theirs: Mapping[str, Feature], maximum: int) -> tuple[Feature, ...]:
    alone = [feature for word, feature in ours.items() if word not in theirs]
    return tuple(sorted(alone, key=lambda feature: (-feature.weight, feature.word))[:maximum])
