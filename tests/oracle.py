"""Brute force: what exact search must return, by comparing with everything.

Nothing here is shared with the code under test but the answer.
"""

__all__ = ["BruteForceIndex", "hamming"]


def hamming(one: int, other: int) -> int:
    """Return the number of differing bits.

    >>> hamming(0b1010, 0b0110)
    2
    """
    return (one ^ other).bit_count()


class BruteForceIndex:
    """Entries (sequence, fingerprint) in a set; a probe compares with every one."""

    def __init__(self, radius: int) -> None:
        """Make an empty index that finds distances up to `radius`."""
        self.radius = radius
        self.entries: set[tuple[int, int]] = set()

    def insert(self, sequence: int, fingerprint: int) -> None:
        """Add an entry; KeyError where it is there."""
        if (sequence, fingerprint) in self.entries:
            raise KeyError((sequence, fingerprint))
        self.entries.add((sequence, fingerprint))

    def remove(self, sequence: int, fingerprint: int) -> None:
        """Remove an entry; KeyError where it is not there."""
        self.entries.remove((sequence, fingerprint))

    def probe(self, fingerprint: int) -> list[tuple[int, int]]:
        """Return (distance, sequence) of every entry within the radius, sorted."""
        near = ((hamming(stored, fingerprint), sequence) for sequence, stored in self.entries)
        return sorted((distance, sequence) for distance, sequence in near if distance <= self.radius)
