"""Views of the live entries, and the store that has the settled ones: those that have left the window, by row number.

A *row* is the number of a settled entry, a uint32: what all tables of an index hold instead of the entry. Rows ascend
in the order of the log and are never used again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from dedup_service._native import Entry, PageStore, TablesBuild


class HeldPart(Protocol):
    """Some of the live entries, as they were; any thread may read it."""

    def pieces(self) -> Iterator[Sequence[Entry]]:
        """Yield the live entries piece by piece, in order of sequence; may be repeated."""
        ...

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry among them; reads few entries."""
        ...

    def size(self) -> tuple[int, int]:
        """Return the number of live entries and the bytes of their evidence."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldEntries:
    """A view of all live entries, which any thread may read."""

    parts: tuple[HeldPart, ...] = ()

    def __iter__(self) -> Iterator[Sequence[Entry]]:
        """Yield the live entries piece by piece, in order of sequence; may be repeated."""
        return (piece for part in self.parts for piece in part.pieces() if len(piece))

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry; by bisection."""
        return any(part.has(sequence) for part in self.parts)

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their evidence."""
        sizes = [part.size() for part in self.parts]
        return sum(entries for entries, _ in sizes), sum(evidence for _, evidence in sizes)

    def entries(self) -> list[Entry]:
        """Return the live entries, in order of sequence."""
        return [entry for piece in self for entry in piece]


class EntryStore(Protocol):
    """Settled entries on disk, which a decider reads and changes."""

    @property
    def pages(self) -> PageStore:
        """The store."""
        ...

    @property
    def tables(self) -> TablesBuild:
        """The tables of its live rows, which a decider takes."""
        ...

    def held(self) -> HeldEntries:
        """Return a view of the settled entries."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldValues:
    """Entries that are values, as a part of a view."""

    entries: tuple[Entry, ...]

    def pieces(self) -> Iterator[Sequence[Entry]]:
        """Yield the entries in one piece."""
        yield self.entries

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` is among them."""
        return any(entry.sequence == sequence for entry in self.entries)

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their evidence."""
        return len(self.entries), bytes_of(self.entries)


def bytes_of(entries: Iterable[Entry]) -> int:
    """Return the bytes of the evidence of entries, with their keys."""
    return sum(len(entry.evidence) + len(entry.keys) for entry in entries)
