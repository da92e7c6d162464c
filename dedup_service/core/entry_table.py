"""The live entries by sequence: the latest as values, all others as arrays.

A state of many million pages costs its arrays and no object a page; only what is asked for, a candidate or an
earlier visit, becomes an `Entry`. The latest wait as values until there are enough to append at once.
"""

from dedup_service.core.entries import Entry
from dedup_service.core.entry_arrays import EntryArrays, HeldEntries
from dedup_service.core.entry_rows import EntryRows

__all__ = ["EntryTable"]

_AT_ONCE = 4096
"""About 1 µs an entry; a batch takes 5 ms."""


class EntryTable:
    """Entries that can be looked up, added and removed. restored: the ones to begin with."""

    def __init__(self, restored: EntryRows) -> None:
        self._arrays = EntryArrays(restored)
        self._latest: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self._arrays) + len(self._latest)

    def get(self, sequence: int) -> Entry | None:
        """The entry at `sequence`, or None."""
        entry = self._latest.get(sequence)
        if entry is not None:
            return entry
        return self._arrays.get(sequence)

    def __getitem__(self, sequence: int) -> Entry:
        entry = self.get(sequence)
        if entry is None:
            raise KeyError(sequence)
        return entry

    def add(self, entry: Entry) -> None:
        """Add an entry whose sequence is larger than any before."""
        self._latest[entry.sequence] = entry
        if len(self._latest) >= _AT_ONCE:
            self._append_latest()

    def held(self) -> HeldEntries:
        """Return all entries in pieces, within milliseconds; later changes do not show in them."""
        self._append_latest()
        return self._arrays.held()

    def rows(self) -> EntryRows:
        """Return all entries in order of sequence; later changes do not show in them."""
        return self.held().rows()

    def remove(self, sequence: int) -> None:
        """Take one out; KeyError where it is not there."""
        if self._latest.pop(sequence, None) is not None:
            return
        if not self._arrays.remove(sequence):
            raise KeyError(sequence)

    def _append_latest(self) -> None:
        if self._latest:
            self._arrays.append(EntryRows.of(list(self._latest.values())))
            self._latest.clear()
