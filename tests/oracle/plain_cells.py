"""The cell index in dictionaries and sets: what it must find, slot by slot, and what it must count.

Shares no code with the code under test. A page's keys are eight lists of integers, in the order in which they
are tried.
"""

from collections import defaultdict
from dataclasses import dataclass, field

PARTS, LEVELS = 8, 8
SIEVE_BITS, MIN_EQUAL = 128, 0.58

Keys = list[list[int]]
Cell = tuple[int, int, int]
"""Part, key, slot."""


def keys_of(packed: bytes, levels: int = LEVELS) -> Keys:
    """Return the keys of each part, without missing ones; eight empty lists if the bytes are no keys."""
    if len(packed) != 4 * PARTS * levels:
        return [[] for _ in range(PARTS)]
    values = [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)]
    rows = [values[levels * part : levels * (part + 1)] for part in range(PARTS)]
    return [row[: row.index(0)] if 0 in row else row for row in rows]


def passes(one: bytes, other: bytes) -> bool:
    """Whether the first 128 bits of two sketches are equal in at least the share that the sieve asks for."""
    differing = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    return 1 - differing.bit_count() / SIEVE_BITS >= MIN_EQUAL


@dataclass(frozen=True, slots=True)
class _Stored:
    """Where an entry is. took: its cells. turned_away: the cells that it was turned away from."""

    sieve: bytes
    took: list[Cell] = field(default_factory=list)
    turned_away: list[Cell] = field(default_factory=list)


class PlainCells:
    """Entries by their keys. slots: a page belongs to that of its ordinal modulo their number."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._holders: dict[Cell, int] = {}
        self._turned_away: defaultdict[Cell, set[int]] = defaultdict(set)
        self._stored: dict[int, _Stored] = {}

    def insert(self, sequence: int, ordinal: int, keys: Keys, sieve: bytes) -> None:
        """Store an entry, in each part in the first of its cells that is free."""
        stored = self._stored[sequence] = _Stored(sieve)
        for part, values in enumerate(keys):
            for key in values:
                cell = (part, key, ordinal % self.slots)
                if cell not in self._holders:
                    self._holders[cell] = sequence
                    stored.took.append(cell)
                    break
                self._turned_away[cell].add(sequence)
                stored.turned_away.append(cell)

    def remove(self, sequence: int) -> None:
        """Remove an entry; KeyError if it is not stored."""
        stored = self._stored.pop(sequence)
        for cell in stored.took:
            del self._holders[cell]
        for cell in stored.turned_away:
            self._turned_away[cell].remove(sequence)

    def probe(self, keys: Keys, sieve: bytes, slots: range | None = None) -> set[int]:
        """Return the entries that the keys lead to in these slots (all, without any) and that pass the sieve."""
        found: set[int] = set()
        for slot in range(self.slots) if slots is None else slots:
            for part, values in enumerate(keys):
                for key in values:
                    cell = (part, key, slot)
                    if cell in self._holders:
                        found.add(self._holders[cell])
                    if not self._turned_away.get(cell):
                        break
        return {sequence for sequence in found if passes(self._stored[sequence].sieve, sieve)}

    def counts(self) -> tuple[int, int, int]:
        """Return how many entries are in a cell, cells hold or have turned away an entry, and have turned some away."""
        overflowed = {cell for cell, turned_away in self._turned_away.items() if turned_away}
        return len(set(self._holders.values())), len(overflowed | set(self._holders)), len(overflowed)
