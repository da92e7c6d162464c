"""The earliest entries of a store: those that expire next."""

from collections import deque
from collections.abc import Mapping
from itertools import islice

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_store import EntryStore, entries_at

_AHEAD = 256
"""Entries that are read at once."""


class OldestEntries:
    """The earliest live entries of a store, read some hundred at a time. The store only grows at its end.

    gone: rows that are removed, and that the store still has.
    """

    def __init__(self, store: EntryStore, gone: Mapping[int, Entry]) -> None:
        self._store, self._gone = store, gone
        self._ahead: deque[Entry] = deque()
        self._removed: set[int] = set()
        self._read = -1

    def first(self) -> Entry | None:
        """Return the earliest entry that was not removed, or None."""
        while True:
            while self._ahead and self._ahead[0].row in self._removed:
                self._removed.discard(self._ahead.popleft().row)
            if self._ahead:
                return self._ahead[0]
            if not self._read_on():
                return None

    def ahead(self, count: int) -> list[Entry]:
        """Return the earliest entries that were not removed, so many or all there are."""
        while True:
            found = [
                entry for entry in islice(self._ahead, count + len(self._removed)) if entry.row not in self._removed
            ]
            if len(found) >= count or not self._read_on():
                return found[:count]

    def _read_on(self) -> bool:
        """Read more entries; return whether there were any."""
        if not len(self._store):  # few pages are kept, and all of them are in the window
            return False
        rows = self._store.first(self._read, _AHEAD)
        if len(rows):
            self._read = int(rows[-1])
            self._removed.update(row for row in rows.tolist() if row in self._gone)
            self._ahead.extend(entries_at(self._store, rows))
        return len(rows) > 0

    def remove(self, row: int) -> None:
        """Remove a row; one that was not read yet is in `gone`, or the store does not have it any more."""
        if row <= self._read:
            self._removed.add(row)
