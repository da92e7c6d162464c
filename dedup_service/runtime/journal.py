"""The log on disk: every page with its verdict, retractions and changes of policy, in one order.

`append` returns once the batch is on the disk, all of it or none; one transaction a batch, because the
fsync is what costs. The tables are in `schema`, the questions to them in `log_reader`.
Invariant: sequences are consecutive from 1, whatever the kind of record; a digest occurs once.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dedup_service.runtime.counters import change_counters, changes_of, read_counters
from dedup_service.runtime.database import Database
from dedup_service.runtime.log_reader import LogReader
from dedup_service.runtime.page_row import INSERT_PAGE, DecidedPage, page_row
from dedup_service.runtime.schema import Header, open_header
from dedup_service.runtime.texts import TextStore

__all__ = ["Journal"]

_INSERT_RETRACTION = "INSERT INTO log (sequence, kind, removes, detail) VALUES (?, 'retraction', ?, ?)"
_INSERT_CORRECTION = "INSERT INTO log (sequence, kind, removes, detail) VALUES (?, 'correction', ?, ?)"
_INSERT_POLICY = "INSERT INTO log (sequence, kind, detail) VALUES (?, 'policy', ?)"


class Journal:
    """An open journal, for writing.

    path: the file, or None for one in memory that is gone at `close`.
    space_id, space: whose journal it must be, or becomes; ForeignStateError where it is another's.
    policy: in force from the start of a new journal. text_budget_bytes: see `texts`.
    """

    def __init__(
        self,
        path: Path | None,
        space_id: str,
        space: Mapping[str, Any],
        policy: Mapping[str, Any],
        text_budget_bytes: int,
    ) -> None:
        self.database = Database(path)
        try:
            with self.database.transaction() as connection:
                self.header: Header = open_header(connection, self.database.path, space_id, space, json.dumps(policy))
                counters = read_counters(connection)
            self.texts = TextStore(self.database.connection, text_budget_bytes, counters.get("text_bytes", 0))
            self.log = LogReader(self.database, space_id)
            self.entries: int = counters.get("entries", 0)
            self.sequence = self.log.last_sequence()
        except BaseException:
            self.database.close()
            raise

    def append(self, batch: Sequence[DecidedPage]) -> None:
        """Make `batch` durable; StateFullError, and nothing of it stored, where the disk refuses."""
        changes = changes_of(batch)
        with self.database.transaction() as connection:
            connection.executemany(INSERT_PAGE, map(page_row, batch))
            changes["text_bytes"] = self.texts.add(
                (at.decision.verdict.sequence, at.prepared.page.text) for at in batch
            )
            change_counters(connection, changes)
        self.sequence += len(batch)
        self.entries += changes["entries"]

    def retract(self, target: int, reason: str) -> int:
        """Record that the page at `target` left, forget its text, and return the record's sequence."""
        with self.database.transaction() as connection:
            connection.execute(_INSERT_RETRACTION, (self.sequence + 1, target, reason))
            change_counters(connection, Counter(entries=-1, text_bytes=self.texts.drop(target)))
        self.sequence += 1
        self.entries -= 1
        return self.sequence

    def correct(self, detail: str, target: int | None) -> int:
        """Record what a person said of two pages, and that the page at `target` left for it, if any did."""
        with self.database.transaction() as connection:
            connection.execute(_INSERT_CORRECTION, (self.sequence + 1, target, detail))
            change_counters(connection, Counter(entries=0 if target is None else -1))
        self.sequence += 1
        self.entries -= target is not None
        return self.sequence

    def change_policy(self, policy: Mapping[str, Any]) -> None:
        """Record that `policy` is in force from the next page on."""
        with self.database.transaction() as connection:
            connection.execute(_INSERT_POLICY, (self.sequence + 1, json.dumps(policy)))
        self.sequence += 1

    def close(self) -> None:
        """Release the file; SQLite folds what the write-ahead file still holds into it."""
        self.database.close()
