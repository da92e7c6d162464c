"""Views of the live entries, and the store that has the settled ones: those that have left the window, by row number.

A *row* is the number of a settled entry, a uint32: what all tables of an index hold instead of the entry. Rows ascend
in the order of the log and are never used again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dedup_service._native import PageStore, TablesBuild
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows

Numbers = npt.NDArray[np.integer[Any]]


class HeldPart(Protocol):
    """Some of the live entries, as they were; any thread may read it."""

    def pieces(self) -> Iterator[EntryRows]:
        """Yield copies of the live entries piece by piece, in order of sequence; may be repeated."""
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

    def __iter__(self) -> Iterator[EntryRows]:
        """Yield copies of the live entries piece by piece, in order of sequence; may be repeated."""
        return (piece for part in self.parts for piece in part.pieces() if len(piece))

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` has a live entry; by bisection."""
        return any(part.has(sequence) for part in self.parts)

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their evidence."""
        sizes = [part.size() for part in self.parts]
        return sum(entries for entries, _ in sizes), sum(evidence for _, evidence in sizes)

    def rows(self) -> EntryRows:
        """Return the live entries in one piece, in order of sequence."""
        parts = list(self)
        if not parts:
            return EntryRows.none()
        return EntryRows(np.concatenate([part.rows for part in parts]), b"".join(part.evidence for part in parts))


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

    def pieces(self) -> Iterator[EntryRows]:
        """Yield the entries in one piece."""
        yield EntryRows.from_entries(self.entries)

    def has(self, sequence: int) -> bool:
        """Return whether the page at `sequence` is among them."""
        return any(entry.sequence == sequence for entry in self.entries)

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of their evidence."""
        return len(self.entries), sum(len(entry.evidence) + len(entry.keys) for entry in self.entries)
