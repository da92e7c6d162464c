"""The live entries by sequence: those of a restore as arrays, those since then as values.

A restored state of many million pages costs its arrays and no object a page; only what is asked for,
a candidate or an earlier visit, becomes an `Entry`.
"""

from dedup_service.core.entries import Entry
from dedup_service.core.entry_rows import EntryRows

__all__ = ["EntryTable"]


class EntryTable:
    """Entries that can be looked up, added and removed. restored: the ones to begin with."""

    def __init__(self, restored: EntryRows) -> None:
        self._restored = restored
        self._gone: set[int] = set()
        self._added: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self._restored) - len(self._gone) + len(self._added)

    def rows(self) -> EntryRows:
        """Return all entries, in order of sequence; from here on they are held as arrays."""
        self._restored = self._restored.followed_by(EntryRows.of(list(self._added.values())), self._gone)
        self._gone, self._added = set(), {}
        return self._restored

    def get(self, sequence: int) -> Entry | None:
        """The entry at `sequence`, or None."""
        entry = self._added.get(sequence)
        if entry is None and sequence not in self._gone:
            entry = self._restored.at(sequence)
        return entry

    def __getitem__(self, sequence: int) -> Entry:
        entry = self.get(sequence)
        if entry is None:
            raise KeyError(sequence)
        return entry

    def add(self, entry: Entry) -> None:
        """Add an entry whose sequence is larger than any before."""
        self._added[entry.sequence] = entry

    def remove(self, sequence: int) -> None:
        """Take one out; KeyError where it is not there."""
        entry = self[sequence]
        if self._added.pop(sequence, None) is None:
            self._gone.add(entry.sequence)
