"""The tables of a journal, and whose journal it is.

`log` is the total order: one row a record, its sequence the row id, never changed once written.
  page        the delivery's digest, names, verdict, fingerprints and hashes (unsigned 64-bit values stored
              as signed); `entry` holds the flags of the entry that it added (see `entry_rows`), NULL where it
              added none; `repeats` the sequence of the page that the verdict names as `duplicate_of`;
              `removes` the sequence of the entry that an update replaced; `detail` what a page that matched
              added to what the guards have seen (bytes, see `core.decision.duplicate_clusters`), NULL for any other.
  retraction  `removes` the sequence of the kept page that left, `detail` why.
  correction  `detail` what a person said of two pages as JSON (`corrections`), `removes` the sequence of the kept page
              that left for it, NULL where none did.
  policy      `detail` the match rule as JSON, in force from here on. The first one has sequence 0.
A text that equals its neighbour is stored once: `id` is NULL where it is the URL, `canonical_url` likewise.
`text` holds main texts, one zstd frame each, and is no part of the log: it may lose rows (see `texts`).
`counter` holds running sums, written with the batch that changes them, so that nobody has to scan the log.
`meta` says whose journal it is: format version, identity of this journal, space and space_id.

Invariant: whatever decides a later verdict is in `log`. Everything else can be lost or made again.

Running sums over the log, stored with the batch that changes them.

`unique`, `duplicate`, `unchanged`, `updated`, `undecided` count pages, `guard_hosts` and the like those of them that a
guard left undecided; `entries` the live entries (a restore
is checked against it); `text_bytes` is what `texts` holds.

The log on disk: every page with its verdict, retractions and changes of policy, in one order.

`append` returns once the batch is on the disk, all of it or none; one transaction a batch, because the
fsync is what costs. The tables are in `schema`, the questions to them in `log_reader`.
Invariant: sequences are consecutive from 1, whatever the kind of record; a digest occurs once.
"""

import json
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dedup_service.core.verdict import Guard
from dedup_service.runtime.embedded.database import Database, ForeignStateError, StateDamagedError
from dedup_service.runtime.embedded.journal_reader import INSERT_PAGE, DecidedPage, JournalReader, page_row
from dedup_service.runtime.embedded.texts import TextStore

__all__ = [
    "FORMAT_VERSION",
    "Header",
    "Journal",
    "change_counters",
    "changes_of",
    "guard_counter",
    "open_header",
    "read_counters",
    "read_header",
]

FORMAT_VERSION = 1

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE text (sequence INTEGER PRIMARY KEY, frame BLOB NOT NULL);
CREATE TABLE log (
    sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, record BLOB,
    id TEXT, url TEXT, canonical_url TEXT, title TEXT,
    verdict TEXT, repeats INTEGER,
    distance_words INTEGER, distance_body INTEGER, score REAL, reason TEXT,
    words INTEGER, body INTEGER, body_hash INTEGER, url_hash INTEGER, entry INTEGER, evidence BLOB,
    removes INTEGER, detail TEXT
);
CREATE UNIQUE INDEX log_record ON log (record) WHERE record IS NOT NULL;
CREATE INDEX log_rare ON log (kind) WHERE kind <> 'page';
"""


@dataclass(frozen=True, slots=True)
class Header:
    """Whose journal it is: `identity` is drawn once, so that a snapshot of another journal is told apart."""

    format_version: int
    identity: str
    space_id: str
    space: Mapping[str, Any]


def open_header(
    connection: sqlite3.Connection, path: str, space_id: str, space: Mapping[str, Any], policy: str
) -> Header:
    """Return the header of the journal of `space_id`; where the file is empty, make it, with `policy`.

    ForeignStateError where it is of another space or a newer format. In the transaction that is open.
    """
    header = read_header(connection, path)
    if header is None:
        return _create(connection, Header(FORMAT_VERSION, uuid.uuid4().hex, space_id, space), policy)
    if header.space_id != space_id:
        raise ForeignStateError(
            f"{path} was made in space {header.space_id}, the pages would come in space {space_id}. "
            f"{_differences(header.space, space)}Fingerprints of two spaces cannot be compared: open it with the "
            "space it was made in, or start a new state folder"
        )
    return header


def read_header(connection: sqlite3.Connection, path: str) -> Header | None:
    """Return the header, None where the journal is still empty; ForeignStateError for a newer format."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return None
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    try:
        version = int(meta["format_version"])
        if version > FORMAT_VERSION:
            raise ForeignStateError(
                f"{path} has format version {version}, this twinsieve reads up to {FORMAT_VERSION}: "
                "update twinsieve, or start a new state folder"
            )
        return Header(version, meta["identity"], meta["space_id"], json.loads(meta["space"]))
    except (KeyError, ValueError) as error:
        raise StateDamagedError(
            f"the header of {path} cannot be read ({error!r}): restore it from a copy or start a new folder"
        ) from error


def _differences(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Name the fields in which two spaces differ, with both values, or say nothing."""
    given = json.loads(json.dumps(given))
    fields = [name for name in sorted({*stored, *given}) if stored.get(name) != given.get(name)]
    parts = [f"{name} (stored {stored.get(name)!r}, given {given.get(name)!r})" for name in fields]
    return f"They differ in {', '.join(parts)}. " if parts else ""


def _create(connection: sqlite3.Connection, header: Header, policy: str) -> Header:
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    meta = {
        "format_version": str(header.format_version),
        "identity": header.identity,
        "space_id": header.space_id,
        "space": json.dumps(header.space, ensure_ascii=False, sort_keys=True),
    }
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    connection.execute("INSERT INTO log (sequence, kind, detail) VALUES (0, 'policy', ?)", (policy,))
    return header


def guard_counter(guard: Guard) -> str:
    """Return the counter of the pages that `guard` left undecided."""
    return f"guard_{guard}"


def read_counters(connection: sqlite3.Connection) -> dict[str, int]:
    """Return all counters by name; one that never changed is missing."""
    return dict(connection.execute("SELECT name, value FROM counter"))


def changes_of(batch: Iterable[DecidedPage]) -> Counter[str]:
    """Return what `batch` adds to the counters."""
    changes: Counter[str] = Counter()
    for decided in batch:
        changes[decided.decision.verdict.kind.value] += 1
        if decided.decision.verdict.guard is not None:
            changes[guard_counter(decided.decision.verdict.guard)] += 1
        changes["entries"] += (decided.decision.entry is not None) - (decided.decision.replaces is not None)
    return changes


def change_counters(connection: sqlite3.Connection, changes: Counter[str]) -> None:
    """Add `changes` to the stored counters, in the open transaction."""
    connection.executemany(
        "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        changes.items(),
    )


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
            self.log = JournalReader(self.database, space_id)
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
