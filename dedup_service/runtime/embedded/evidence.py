"""Where the evidence of pages is: in the journal until a commit of the kept pages has it, then there alone.

Every page has a row in `evidence` of the journal when its batch is durable, so that a restore can apply it again. Once
a finished commit of `pages/` has an entry with its evidence, `Move` deletes that row, some at a time, outside of the
transaction that decides. Pages without an entry keep theirs as long as their log row (`deletion`).

The counter `evidence_moved` is the row of `pages/` up to which that is done. While it is 0, the journal alone can build
the kept pages again.

Invariants: a row of `evidence` is deleted after the commit that has its content is durable, so a kill at any instant
leaves the evidence in one place at least. One transaction deletes at most STEP_ROWS rows and stores how far it came.
"""

from collections import Counter

from dedup_service.runtime.embedded.journal import Journal, change_counters
from dedup_service.runtime.store.stored_entries import StoredEntries

MOVED = "evidence_moved"

STEP_ROWS = 1000
"""Rows that one transaction deletes, some 3 MB: with batches of 512 pages it catches up between two commits."""


class Move:
    """Deletes rows of evidence from `journal` that `entries` has durably."""

    def __init__(self, journal: Journal, entries: StoredEntries) -> None:
        self._journal = journal
        self._entries = entries
        self._counted = self._done = journal.log.counter(MOVED)
        if not self._done:  # rows of bases were never in this journal
            self._done = entries.pages.first_own_row

    def step(self) -> bool:
        """Delete some rows; return whether there are more."""
        end = self._entries.pages.manifest.next_row
        if self._done >= end:
            return False
        numbers = [row for row in self._entries.pages.live_rows(self._done, STEP_ROWS) if row < end]
        last = numbers[-1] + 1 if len(numbers) == STEP_ROWS else end
        entries = self._entries.pages.entries(numbers, with_evidence=False)
        with self._journal.database.transaction() as connection:
            connection.executemany("DELETE FROM evidence WHERE sequence = ?", [(one.sequence,) for one in entries])
            change_counters(connection, Counter({MOVED: last - self._counted}))
        self._counted = self._done = last
        return last < end
