"""Two pages side by side: their fingerprints bit by bit, and their words by weight.

Fingerprints: which bits differ, and which table of the block index finds the pair. A fingerprint is cut into four
blocks of 16 bits, block 0 the lowest, with one table each (`native/src/tables/hamming.rs`). Table t finds a pair if
block t and the next one, which is block 0 for the last, differ in no more bits than that table tolerates; the first
table that finds it reports it. Further tables of a crowded bucket change how long a probe takes, never which table
finds a pair.

Words: what both pages have, and what only one has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dedup_service._native import block_bounds
from dedup_service.core.fingerprinter import Feature

_BLOCK_BITS, _BLOCKS = 16, 4


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block of both fingerprints, `size` bits each, and what its table tolerates.

    tolerance, next_tolerance: bits of the block and of the next one that may differ; -1: no such table.
    next_differing: bits of the next block that do.
    """

    block: int
    size: int
    one: int
    other: int
    tolerance: int
    next_tolerance: int
    next_differing: int

    @property
    def bits(self) -> tuple[int, int]:
        """The positions of its lowest and of its highest bit."""
        return self.size * self.block, self.size * (self.block + 1) - 1

    @property
    def differing(self) -> int:
        """The number of bits that differ."""
        return (self.one ^ self.other).bit_count()

    @property
    def agrees(self) -> bool:
        """Whether the table of this block finds the pair."""
        return self.differing <= self.tolerance and self.next_differing <= self.next_tolerance


@dataclass(frozen=True, slots=True)
class ChannelView:
    """One channel of two pages.

    one, other: fingerprints, None if absent. radius: of the block index, None if the rule has none.
    indexed: whether both pages have enough text for the block index.
    """

    channel: str
    one: int | None
    other: int | None
    radius: int | None
    indexed: bool = True

    @property
    def difference(self) -> int | None:
        """The bits that differ, as one number; None if a page has no fingerprint."""
        return None if self.one is None or self.other is None else self.one ^ self.other

    @property
    def distance(self) -> int | None:
        """The number of bits that differ."""
        return None if self.difference is None else self.difference.bit_count()

    @property
    def bits(self) -> tuple[int, ...]:
        """The positions of the bits that differ, ascending; 0 is the lowest bit."""
        difference = self.difference or 0
        return tuple(bit for bit in range(difference.bit_length()) if difference >> bit & 1)

    @property
    def blocks(self) -> tuple[BlockView, ...]:
        """The four blocks, the lowest first; empty if a page has no fingerprint."""
        return tuple(self._blocks())

    @property
    def found(self) -> bool:
        """Whether the block index finds the pair."""
        return self.indexed and self.radius is not None and self.distance is not None and self.distance <= self.radius

    @property
    def table(self) -> int | None:
        """The table that reports the pair, which is the first that finds it; None if none does."""
        return next((block.block for block in self._blocks() if block.agrees), None) if self.found else None

    def _blocks(self) -> Iterator[BlockView]:
        if self.one is None or self.other is None:
            return
        bounds = [(-1, -1)] * _BLOCKS if self.radius is None else block_bounds(self.radius)
        ones, others = _blocks_of(self.one), _blocks_of(self.other)
        differing = [(one ^ other).bit_count() for one, other in zip(ones, others, strict=True)]
        for block, (tolerance, behind) in enumerate(bounds):
            after = differing[(block + 1) % _BLOCKS]
            yield BlockView(block, _BLOCK_BITS, ones[block], others[block], tolerance, behind, after)


def _blocks_of(fingerprint: int) -> list[int]:
    return [fingerprint >> _BLOCK_BITS * block & ((1 << _BLOCK_BITS) - 1) for block in range(_BLOCKS)]


def compare_channel(
    channel: str, one: int | None, other: int | None, radius: int | None, *, indexed: bool = True
) -> ChannelView:
    """Return `channel` of two pages with these fingerprints: unsigned 64-bit, None if absent.

    >>> compare_channel("words", 0b1000, 0b1011, 3).bits
    (0, 1)
    """
    return ChannelView(channel, one, other, radius, indexed)


@dataclass(frozen=True, slots=True)
class SharedFeature:
    """A word that both pages have."""

    one: Feature
    other: Feature

    @property
    def weight(self) -> float:
        """The smaller of its two weights."""
        return min(self.one.weight, self.other.weight)


@dataclass(frozen=True, slots=True)
class FeatureComparison:
    """The heaviest features, heaviest first. shared: by the smaller weight. one, other: only in one page."""

    shared: tuple[SharedFeature, ...]
    one: tuple[Feature, ...]
    other: tuple[Feature, ...]


def compare_features(ones: Sequence[Feature], others: Sequence[Feature], limit: int) -> FeatureComparison:
    """Return the `limit` heaviest features of each kind. ones, others: all features of the two pages."""
    left, right = _by_word(ones), _by_word(others)
    shared = [SharedFeature(feature, right[word]) for word, feature in left.items() if word in right]
    shared.sort(key=lambda both: (-both.weight, both.one.word))
    return FeatureComparison(tuple(shared[:limit]), _alone(left, right, limit), _alone(right, left, limit))


def _by_word(features: Sequence[Feature]) -> dict[str, Feature]:
    return {feature.word: feature for feature in features}


def _alone(ours: Mapping[str, Feature], theirs: Mapping[str, Feature], limit: int) -> tuple[Feature, ...]:
    alone = [feature for word, feature in ours.items() if word not in theirs]
    return tuple(sorted(alone, key=lambda feature: (-feature.weight, feature.word))[:limit])
