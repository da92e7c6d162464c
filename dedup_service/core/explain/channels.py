"""Two pages side by side: their fingerprints bit by bit, and their words by weight.

Fingerprints: which bits differ, and which table of the block index finds the pair. A fingerprint is cut into blocks of
equal size, block 0 the lowest, with one table each: two halves up to radius 3 (`core.index.block_halves_write`), else
four blocks of 16 bits (`core.index.block_layout`). Table t finds a pair whose block t differs in no more bits than its
tolerance, and the first table that finds it reports it. Further tables of a crowded bucket change how long a probe
takes, never which block finds a pair.

Words: what both pages have, and what only one has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dedup_service.core.fingerprinter import Feature
from dedup_service.core.index.block_halves_write import MAX_COMPACT_RADIUS

_BITS = 64


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block of both fingerprints, `size` bits each. tolerance: bits that may differ, -1: no such table."""

    block: int
    size: int
    one: int
    other: int
    tolerance: int

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
        return self.differing <= self.tolerance


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
        """The two or four blocks, the lowest first; empty if a page has no fingerprint."""
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
        tolerances = tolerances_of(self.radius)
        size = _BITS // len(tolerances)
        for block, tolerance in enumerate(tolerances):
            one, other = (value >> size * block & ((1 << size) - 1) for value in (self.one, self.other))
            yield BlockView(block, size, one, other, tolerance)


def compare_channel(
    channel: str, one: int | None, other: int | None, radius: int | None, *, indexed: bool = True
) -> ChannelView:
    """Return `channel` of two pages with these fingerprints: unsigned 64-bit, None if absent.

    >>> compare_channel("words", 0b1000, 0b1011, 3).bits
    (0, 1)
    """
    return ChannelView(channel, one, other, radius, indexed)


def tolerances_of(radius: int | None) -> tuple[int, ...]:
    """Return in how many bits a key of each table may differ, -1 if the radius does not need it.

    Two, like `block_halves_write.half_tolerance`, or four, like `block_layout.tolerance`. radius: 0 to 7; None: no
    table.
    """
    if radius is None:
        return -1, -1
    if radius <= MAX_COMPACT_RADIUS:
        return radius >> 1, ((radius + 1) >> 1) - 1
    return tuple(1 if block < radius - 3 else 0 for block in range(4))


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
