"""Brute force: what exact search must return, from a comparison with every entry.

Shares no code with the code under test.
"""


def hamming(one: int, other: int) -> int:
    """Return the number of differing bits.

    >>> hamming(0b1010, 0b0110)
    2
    """
    return (one ^ other).bit_count()


class BruteForceIndex:
    """Entries (sequence, fingerprint) in a set; a probe compares with every entry."""

    def __init__(self, radius: int) -> None:
        """Make an empty index that finds entries within `radius` bits."""
        self.radius = radius
        self.entries: set[tuple[int, int]] = set()

    def insert(self, sequence: int, fingerprint: int) -> None:
        """Add an entry; KeyError if it is present."""
        if (sequence, fingerprint) in self.entries:
            raise KeyError((sequence, fingerprint))
        self.entries.add((sequence, fingerprint))

    def remove(self, sequence: int, fingerprint: int) -> None:
        """Remove an entry; KeyError if it is absent."""
        self.entries.remove((sequence, fingerprint))

    def probe(self, fingerprint: int) -> list[tuple[int, int]]:
        """Return (distance, sequence) of every entry within the radius, sorted."""
        near = ((hamming(stored, fingerprint), sequence) for sequence, stored in self.entries)
        return sorted((distance, sequence) for distance, sequence in near if distance <= self.radius)
