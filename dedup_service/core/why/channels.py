"""Two fingerprints of a channel beside each other: which bits differ, and which table of the block index finds them.

A fingerprint is cut into four blocks of 16 bits, block 0 the lowest, one table each; table t finds a pair whose block t
differs in no more bits than its tolerance, and the first that finds it reports it (`core.index.layout`). A crowded
bucket is split once more; that changes how long a probe takes, never which table finds a pair.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dedup_service.core.index.layout import BLOCK_BITS

__all__ = ["BLOCKS", "BlockView", "ChannelView", "compare_channel", "tolerance_of"]

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
