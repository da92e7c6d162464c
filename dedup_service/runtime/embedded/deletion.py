"""Delete what nothing needs any more from a journal: records of pages that have no entry.

Every page adds a row, but most of a long crawl are copies. Their rows are an audit trail, and they give a delivery that
is repeated the verdict that it had. `Deletion` ends both for rows that are old enough, some at a time, outside the
transaction that decides. What goes, up to a sequence that only grows (the counter `deleted_up_to`):

- rows of pages that added no entry: copies, `unchanged` pages, visits by claim, pages that a guard refused;
- rows of entries that a record up to there removed: earlier versions of an `updated` page, retracted pages;
- rows of entries that had expired by then (up to the counter `deleted_expired_up_to`);
- the texts, the evidence and the index entries of all of them.

Rows of live entries, retractions, corrections and policies stay. A state in memory keeps the latest MEMORY_RECORDS
records, so its memory grows with the kept pages only. A state in a folder keeps `days`, or everything. What had expired
by a record is known by the minute there (table `time`), in memory by the batch.

Invariants: a row that a restore needs is never deleted. A restore applies the records after the last commit of the kept
pages, so only rows before that go (`Commits.covers`). The effect of the copies on guards and on the hosts' own text is
in the commit from then on. The last row stays, so no sequence is given twice. One transaction deletes at
most STEP_RECORDS rows and stores how far it came, so a kill leaves a journal that opens and goes on. A row of an entry
that expired goes after those of all pages that name it.
"""

import sqlite3
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from dedup_service.runtime.embedded.journal import Journal, change_counters
from dedup_service.runtime.embedded.journal_reader import name_hash, name_of, text_of

MEMORY_RECORDS = 10_000
"""Records that a state in memory keeps of pages without an entry: about 8 MB."""

STEP_RECORDS = 1000
"""Sequences that one transaction goes through, in some milliseconds: two batches of `filter`, so it catches up."""

_MARK_RECORDS = 100
"""Records between two of which it is noted what had expired by them: a hundredth of MEMORY_RECORDS."""

HOUR_S = 3600
_DAY_S = 86400

_NAMES = "sequence, id, url, canonical_url"
_WITHOUT_ENTRY = f"SELECT {_NAMES} FROM log WHERE sequence > ? AND sequence <= ? AND kind = 'page' AND entry IS NULL"  # noqa: S608 - our own column names
_REMOVED = (
    f"SELECT {_NAMES} FROM log WHERE sequence IN "  # noqa: S608 - the same
    "(SELECT removes FROM log WHERE sequence > ? AND sequence <= ? AND removes IS NOT NULL)"
)
_EXPIRED = f"SELECT {_NAMES} FROM log WHERE sequence > ? AND sequence <= ? AND kind = 'page'"  # noqa: S608 - the same
_BEFORE_HOUR = "SELECT max(sequence) FROM hour WHERE hour <= ?"
_BEFORE_LATER_HOUR = "SELECT min(sequence) FROM hour WHERE hour > ? AND hour <= ?"


class Deletion:
    """Deletes rows of `journal`. days: how long they stay; None keeps all. records: the latest that stay in memory."""

    def __init__(self, journal: Journal, *, days: float | None = None, records: int | None = None) -> None:
        self._journal = journal
        self._days = days
        self._records = records
        first = journal.log.first_policy()  # records of bases before it were never in this journal
        self._done = max(first, journal.log.deleted_up_to())
        self._done_expired = max(first, journal.log.counter("deleted_expired_up_to"))
        self._expired_by: deque[tuple[int, int]] = deque([(0, 0)])  # a record, and up to where entries had expired
        self._hour = -1
        self._old = 0

    def step(self, taken_at: int) -> bool:
        """Delete some rows that are old enough; return whether there are more.

        taken_at: sequence of the last commit of the kept pages.
        """
        end = min(self._old_up_to(), taken_at - 1) if self._records is None else self._journal.sequence - self._records
        if end > self._done:
            last = min(end, self._done + STEP_RECORDS)
            self._delete(self._done, last)
            self._done = last
        return self._delete_expired(min(end, self._done)) or self._done < end

    def _delete_expired(self, end: int) -> bool:
        """Delete some rows of entries that had expired by the record at `end`; return whether there are more."""
        expired = self._expired(end) if self._journal.expired_up_to else 0
        if expired <= self._done_expired:
            return False
        last = min(expired, self._done_expired + STEP_RECORDS)
        with self._journal.database.transaction() as connection:
            rows = connection.execute(_EXPIRED, (self._done_expired, last)).fetchall()
            self._delete_rows(connection, rows, "deleted_expired_up_to", last)
        self._done_expired = last
        return last < expired

    def _expired(self, end: int) -> int:
        """Return up to where entries had expired by a record at or before `end`, as far as it is known."""
        if self._records is None:
            return self._journal.log.expired_by(end)
        known = self._expired_by
        if self._journal.sequence >= known[-1][0] + _MARK_RECORDS:
            known.append((self._journal.sequence, self._journal.expired_up_to))
        while len(known) > 1 and known[1][0] <= end:
            known.popleft()
        return known[0][1]

    def _old_up_to(self) -> int:
        """Return the sequence of the last record that is older than the days to keep; 0 if there is none.

        The clock may have been wrong for a while: what came before an hour that is too recent stays.
        """
        if self._days is None:
            return 0
        now = time.time()
        hour = int((now - self._days * _DAY_S) // HOUR_S)
        if hour != self._hour:
            self._hour = hour
            ((old,),) = self._journal.database.rows(_BEFORE_HOUR, hour)
            ((recent,),) = self._journal.database.rows(_BEFORE_LATER_HOUR, hour, int(now // HOUR_S))
            self._old = min(old or 0, old or 0 if recent is None else recent)
        return self._old

    def _delete(self, first: int, last: int) -> None:
        """Delete what nothing needs of the records after `first`, up to `last`."""
        with self._journal.database.transaction() as connection:
            rows = connection.execute(_WITHOUT_ENTRY, (first, last)).fetchall()
            rows += connection.execute(_REMOVED, (first, last)).fetchall()
            self._delete_rows(connection, rows, "deleted_up_to", last)

    def _delete_rows(
        self, connection: sqlite3.Connection, rows: list[tuple[Any, ...]], counter: str, last: int
    ) -> None:
        """Delete rows of _NAMES with their texts, and set a counter to `last`."""
        changes = Counter({counter: last - self._journal.log.counter(counter)})
        connection.executemany("DELETE FROM name WHERE hash = ? AND sequence = ?", _name_rows(rows))
        connection.executemany("DELETE FROM log WHERE sequence = ?", [row[:1] for row in rows])
        connection.executemany("DELETE FROM evidence WHERE sequence = ?", [row[:1] for row in rows])
        changes["text_bytes"] = sum(self._journal.texts.drop(row[0]) for row in rows)
        change_counters(connection, changes)


def _name_rows(rows: Iterable[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Return the rows of `name` of rows of _NAMES."""
    found = []
    for sequence, page_id, url, canonical_url in rows:
        own_id, own_url = name_of(page_id, url)
        canonical = own_url if canonical_url is None else text_of(canonical_url)
        found += [(name_hash(name), sequence) for name in {own_id, own_url, canonical}]
    return found
