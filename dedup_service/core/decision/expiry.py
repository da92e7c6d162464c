"""Expiry: which entries leave by count and by age, decided by the log alone.

Time is what time records of the log say, in whole minutes since 1970; no reader looks at its clock. It only
advances: a record with an earlier minute, or the same, has no effect. A page came at the latest time that the
log had before it; pages before the first time record came with that record.

Entries leave in the order of the log, earliest first, so everything that expired is described by one sequence
(`up_to`): no entry up to it is live, and none comes back. An entry is beyond the bounds of `Keep` if

- there are more live entries than `max_pages`, and it is the earliest, or
- its page came more than `max_age_minutes` before the latest time of the log.

Before a page is decided, MAX_BEFORE_PAGE entries that are beyond the bounds leave at most, and one more after it.
So a backlog, after bounds were lowered or a long silence, is spread over the pages that follow, and the verdicts
are a function of the log however it is cut into batches.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_store import EntryStore, entries_at
from dedup_service.core.rules.keep import KEEP_ALL, Keep

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


MAX_BEFORE_PAGE = 8
"""Entries that expire before one page, at most: 0.3 ms of work (docs/performance.md)."""


_ANY_NUMBER = 1 << 62


class ExpiryBounds(NamedTuple):
    """What entries are beyond. max_pages: live ones. aged_up_to: sequence up to which they are too old, or -1."""

    max_pages: int
    aged_up_to: int


class ExpiryReason(StrEnum):
    """Why an entry expired."""

    COUNT = "count"
    AGE = "age"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryState:
    """The state of expiry at one place of a log.

    up_to: sequence of the last entry that expired, -1 before any. times: int64[n, 2], native: minute, and the
    sequence after which it is the latest time; as far as live entries need them. by_count, by_age: entries that
    expired so far.
    """

    up_to: int = -1
    times: bytes = b""
    by_count: int = 0
    by_age: int = 0


class Expiry:
    """Says which entry leaves next; its owner removes it. keep: bounds in force. state: to begin with."""

    def __init__(self, keep: Keep = KEEP_ALL, state: ExpiryState | None = None) -> None:
        state = state or ExpiryState()
        times = array("q", state.times)
        self._minutes, self._sequences = times[::2], times[1::2]
        self.expired = {ExpiryReason.COUNT: state.by_count, ExpiryReason.AGE: state.by_age}
        self.up_to = state.up_to
        self.keep = keep

    @property
    def keep(self) -> Keep:
        """The bounds in force."""
        return self._keep

    @keep.setter
    def keep(self, keep: Keep) -> None:
        self._keep = keep
        self._find_aged()

    @property
    def minute(self) -> int | None:
        """The latest time of the log, in minutes since 1970; None before any."""
        return self._minutes[-1] if self._minutes else None

    def advance(self, sequence: int, minute: int) -> bool:
        """Set the latest time for pages after `sequence`; False, and no effect, unless it is later than any before."""
        if self._minutes and minute <= self._minutes[-1]:
            return False
        unused = 0  # times that end before the first live entry
        while unused + 1 < len(self._sequences) and self._sequences[unused + 1] <= self.up_to:
            unused += 1
        del self._minutes[:unused], self._sequences[:unused]
        self._minutes.append(minute)
        self._sequences.append(sequence)
        self._find_aged()
        return True

    def reason(self, entries: int, first: int) -> ExpiryReason | None:
        """Return why the earliest entry leaves, None if it stays.

        entries: live ones, 1 or more. first: sequence of the earliest.
        """
        if self._keep.max_pages is not None and entries > self._keep.max_pages:
            return ExpiryReason.COUNT
        return ExpiryReason.AGE if first <= self._aged_up_to else None

    @property
    def bounds(self) -> ExpiryBounds | None:
        """The same for many pages; None if nothing expires."""
        if not self._keep:
            return None
        max_pages = self._keep.max_pages
        return ExpiryBounds(_ANY_NUMBER if max_pages is None else max_pages, self._aged_up_to)

    def count(self, sequence: int, reason: ExpiryReason) -> None:
        """Count the entry at `sequence`, which left for `reason`."""
        self.up_to = sequence
        self.expired[reason] += 1

    def state(self) -> ExpiryState:
        """Return the state."""
        times = array("q", bytes(16 * len(self._minutes)))
        times[::2], times[1::2] = self._minutes, self._sequences
        by_count, by_age = self.expired[ExpiryReason.COUNT], self.expired[ExpiryReason.AGE]
        return ExpiryState(up_to=self.up_to, times=times.tobytes(), by_count=by_count, by_age=by_age)

    def _find_aged(self) -> None:
        """Find the sequence up to which pages came too long ago; -1 if none did."""
        self._aged_up_to = -1
        age = self._keep.max_age_minutes
        if age is None or not self._minutes:
            return
        first_young = bisect_left(self._minutes, self._minutes[-1] - age)
        if first_young:
            self._aged_up_to = self._sequences[first_young]
