"""The log on disk: every page with its verdict, retractions, corrections and policies, in one order.

`Journal` appends. It returns once the batch is on the disk, completely or not at all; a batch is one transaction,
because the fsync is the expensive part. `journal_reader` has the queries.

`log` is the total order: one row for each record, its sequence is the row id. Rows are deleted only by `deletion`, and
nothing of them is changed but what `erasure` takes down.
  page        digest of the delivery, names, verdict, fingerprints and hashes (unsigned 64-bit values stored as signed);
              `entry`: `flags` of the entry that it added, NULL if it added none; `repeats`: sequence of the page that
              the verdict names as `duplicate_of`; `removes`: sequence of the entry that an update replaced; `detail`:
              what a match added to the guard state (bytes, see `core.decision.guard_state`), NULL for a page without a
              match; `published`: day on which it was published (`core.dates`); `text_percent`: its share of main text;
              both NULL where that is not known.
  retraction  `removes`: sequence of the kept page that was removed; `detail`: the reason.
  correction  `detail`: the judgement as JSON (`corrections`); `removes`: sequence of the kept page that it removed,
              NULL if there was none.
  policy      `detail`: the match rule, and what else decides (layout, bounds of expiry), as JSON, in force from here
              on; `lowered` in it: the bounds that a limit on memory has lowered. The first one has sequence 0, or the
              one behind the last record of its bases (`bases`), whose corrections are before it.
              `original_id`, `original_url`: names of the page that an update replaced, whose row may be deleted.
A string that equals its neighbour is stored once: `id` is NULL if it is the URL, and so is `canonical_url`.

`name` is the index of ids and URLs: 32 bits of their hash → sequence. What it finds is compared with the strings.

`evidence` has the evidence and the keys of pages, until they are with the kept pages in `pages/` (`evidence`). A
journal in memory has none of pages that added an entry.

`hour` has, for each hour in which pages were appended, the last sequence before them. `deletion` uses it.

`time` has the time records of the log (`core.decision.expiry`), which have no sequence of their own: a minute, the
sequence of the last record before it, and up to where entries had expired by then.

`erasure` has the sequences of pages whose evidence is to be erased everywhere (`erasure`), until that is done.

`text` holds main texts, one zstd frame each. It is not part of the log and may lose rows (see `texts`).

`counter` holds running sums, updated in the transaction that changes them, so that the log need not be scanned:
`unique`, `duplicate`, `unchanged`, `updated`, `undecided` count pages; `guard_hosts` and its like those that a guard
left undecided, `claim_refused` those whose claim was refused; `entries` the live entries, against which a restore is
checked; `text_bytes` is the size of `text`; `expired_count` and `expired_age` count entries that expired, and none is
live up to the sequence `expired_up_to`; `deleted_up_to` is a sequence, too: rows up to it that nothing needs any more
are deleted (`deletion`), and `deleted_expired_up_to` is the same for the rows of entries that expired;
`evidence_moved` is a row of `pages/`: the journal has no evidence of pages in the rows before it; `evidence_erased`
counts pages whose evidence was taken down.

`meta` identifies the journal: format version, identity of this journal, space and space_id. While pages are being taken
down, it has their sequences and names, too.

Invariants: everything that later verdicts depend on is in the journal or, once rows are deleted, in it and the last
commit of `pages/`.
Sequences are consecutive over all kinds of records, from the first policy at 0. A digest occurs once.
"""

import json
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dedup_service.core.errors import StateError
from dedup_service.core.verdict import CLAIM_REFUSED, guard_counter
from dedup_service.runtime.embedded.base_labels import BASES, BaseLabel, encode_labels
from dedup_service.runtime.embedded.database import Database, ForeignStateError, StateDamagedError, insert_rows
from dedup_service.runtime.embedded.erasure import (
    Erased,
    erase_evidence,
    erase_mentions,
    erase_visits,
    forget_deliveries,
    take_noted,
)
from dedup_service.runtime.embedded.journal_reader import (
    INSERT_EVIDENCE,
    INSERT_NAME,
    INSERT_PAGE,
    DecidedPage,
    JournalReader,
    evidence_row,
    name_hash,
    name_rows,
    page_row,
    stored_text,
)
from dedup_service.runtime.embedded.texts import TextStore

FORMAT_VERSION = 4

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE text (sequence INTEGER PRIMARY KEY, frame BLOB NOT NULL);
CREATE TABLE log (
    sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, record BLOB,
    id TEXT, url TEXT, canonical_url TEXT, claimed_url TEXT, title TEXT,
    verdict TEXT, repeats INTEGER,
    distance_words INTEGER, distance_body INTEGER, score REAL, reason TEXT,
    words INTEGER, body INTEGER, body_hash INTEGER, text_hash INTEGER, entry INTEGER,
    removes INTEGER, detail TEXT, original_id TEXT, original_url TEXT,
    published INTEGER, text_percent INTEGER
);
CREATE UNIQUE INDEX log_record ON log (record) WHERE record IS NOT NULL;
CREATE INDEX log_rare ON log (kind) WHERE kind <> 'page';
CREATE INDEX log_removes ON log (removes) WHERE removes IS NOT NULL;
CREATE TABLE name (hash INTEGER, sequence INTEGER, PRIMARY KEY (hash, sequence)) WITHOUT ROWID;
CREATE TABLE hour (hour INTEGER PRIMARY KEY, sequence INTEGER NOT NULL);
CREATE TABLE time (sequence INTEGER PRIMARY KEY, minute INTEGER NOT NULL, expired_up_to INTEGER NOT NULL);
CREATE TABLE evidence (sequence INTEGER PRIMARY KEY, evidence BLOB, keys BLOB);
CREATE TABLE erasure (sequence INTEGER PRIMARY KEY);
"""


@dataclass(frozen=True, slots=True)
class Header:
    """What identifies a journal. identity: drawn once, so that pages of another journal are recognised."""

    format_version: int
    identity: str
    space_id: str
    space: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """How a journal begins that goes on where those of its bases ended.

    sequence: of its first policy. entries: of the bases. corrections: theirs, with their sequences. expired_up_to: as
    in `BatchExpiry`.
    """

    bases: Sequence[BaseLabel] = ()
    sequence: int = 0
    entries: int = 0
    expired_up_to: int = 0
    corrections: Sequence[tuple[int, str]] = ()


def open_header(
    connection: sqlite3.Connection,
    path: str,
    space_id: str,
    space: Mapping[str, Any],
    policy: str,
    *,
    may_create: bool = True,
    beginning: Beginning | None = None,
) -> Header:
    """Return the header of the journal of `space_id`; create the journal, with `policy`, if the file is empty.

    ForeignStateError if it belongs to another space or a newer format; StateDamagedError if it is empty and must not be
    created. Runs in the open transaction.
    """
    header = read_header(connection, path)
    if header is None and not may_create:
        raise StateDamagedError(
            f"{path} is missing or empty, and the kept pages beside it are there: the journal was lost. Restore it "
            "from a copy, with its files -wal and -shm if the copy has them, or start a new folder"
        )
    if header is None:
        header = Header(FORMAT_VERSION, uuid.uuid4().hex, space_id, space)
        return _create(connection, header, policy, beginning or Beginning())
    if header.space_id != space_id:
        raise ForeignStateError(
            f"{path} was made in space {header.space_id}, the pages would come in space {space_id}. "
            f"{_differences(header.space, space)}Fingerprints of two spaces cannot be compared: open it with the "
            "space and the release that it was made in, or start a new state folder"
        )
    return header


def read_header(connection: sqlite3.Connection, path: str) -> Header | None:
    """Return the header; None if the journal is still empty. ForeignStateError for a newer format."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return None
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    try:
        version = int(meta["format_version"])
        if version < FORMAT_VERSION:
            raise ForeignStateError(
                f"{path} has format version {version}, this twinsieve reads {FORMAT_VERSION}: start a new state folder "
                "and filter the same input again"
            )
        if version > FORMAT_VERSION:
            raise ForeignStateError(
                f"{path} has format version {version}, this twinsieve reads {FORMAT_VERSION}: "
                "update twinsieve, or start a new state folder"
            )
        return Header(version, meta["identity"], meta["space_id"], json.loads(meta["space"]))
    except (KeyError, ValueError) as error:
        raise StateDamagedError(
            f"the header of {path} cannot be read ({error!r}): restore it from a copy or start a new folder"
        ) from error


def require_header(connection: sqlite3.Connection, path: str) -> Header:
    """Return the header; StateError if the journal is still empty, ForeignStateError for a newer format."""
    header = read_header(connection, path)
    if header is None:
        raise StateError(f"{path} is empty: its creation was interrupted; delete it, or open the state for writing")
    return header


def _differences(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return a sentence with the fields in which two spaces differ, and both values; "" if they do not."""
    given = json.loads(json.dumps(given))
    fields = [name for name in sorted({*stored, *given}) if stored.get(name) != given.get(name)]
    parts = [f"{name} (stored {stored.get(name)!r}, given {given.get(name)!r})" for name in fields]
    return f"They differ in {', '.join(parts)}. " if parts else ""


def _create(connection: sqlite3.Connection, header: Header, policy: str, beginning: Beginning) -> Header:
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    meta = {
        "format_version": str(header.format_version),
        "identity": header.identity,
        "space_id": header.space_id,
        "space": json.dumps(header.space, ensure_ascii=False, sort_keys=True),
    }
    if beginning.bases:
        meta[BASES] = encode_labels(beginning.bases)
        counters = Counter(entries=beginning.entries, expired_up_to=beginning.expired_up_to)
        change_counters(connection, counters)
        connection.executemany(
            _INSERT_CORRECTION, [(sequence, None, detail) for sequence, detail in beginning.corrections]
        )
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    connection.execute(_INSERT_POLICY, (beginning.sequence, policy))
    return header


def read_counters(connection: sqlite3.Connection) -> dict[str, int]:
    """Return all counters by name, without those that never changed."""
    return dict(connection.execute("SELECT name, value FROM counter"))


def changes_of(batch: Iterable[DecidedPage]) -> Counter[str]:
    """Return what `batch` adds to the counters."""
    changes: Counter[str] = Counter()
    for decided in batch:
        changes[decided.decision.verdict.kind.value] += 1
        if decided.decision.verdict.guard is not None:
            changes[guard_counter(decided.decision.verdict.guard)] += 1
        if decided.decision.verdict.claim_refused:
            changes[CLAIM_REFUSED] += 1
        changes["entries"] += decided.decision.kept - (decided.decision.replaces is not None)
    return changes


def change_counters(connection: sqlite3.Connection, changes: Counter[str]) -> None:
    """Add `changes` to the stored counters, in the open transaction."""
    connection.executemany(
        "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        changes.items(),
    )


_INSERT_TIME = "INSERT OR REPLACE INTO time VALUES (?, ?, ?)"
_INSERT_HOUR = "INSERT OR IGNORE INTO hour VALUES (?, ?)"
_INSERT_RETRACTION = "INSERT INTO log (sequence, kind, removes, detail) VALUES (?, 'retraction', ?, ?)"
_INSERT_CORRECTION = "INSERT INTO log (sequence, kind, removes, detail) VALUES (?, 'correction', ?, ?)"
_INSERT_POLICY = "INSERT INTO log (sequence, kind, detail) VALUES (?, 'policy', ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchExpiry:
    """What expired with a batch.

    up_to: sequence up to which no entry is live by then. expired: entries by reason. minute: the time that the log
    has from this batch on, None if it is as before.
    """

    up_to: int
    expired: Mapping[str, int] = field(default_factory=dict)
    minute: int | None = None


class Journal:
    """An open journal, for writing.

    path: the file; None for a journal in memory. space_id, space: of the journal; ForeignStateError if it belongs to
    another space. policy: of a new journal, and `beginning`, None without bases. text_budget_bytes: see `texts`.
    may_create: False refuses a file that is empty or missing.
    """

    def __init__(
        self,
        path: Path | None,
        space_id: str,
        space: Mapping[str, Any],
        policy: Mapping[str, Any],
        text_budget_bytes: int,
        *,
        may_create: bool = True,
        beginning: Beginning | None = None,
    ) -> None:
        self.database = Database(path)
        self._hour: int | None = None
        self._has_evidence_of_entries = path is not None
        try:
            with self.database.transaction() as connection:
                is_new = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
                self.header: Header = open_header(
                    connection,
                    self.database.path,
                    space_id,
                    space,
                    json.dumps(policy),
                    may_create=may_create,
                    beginning=beginning,
                )
                counters = read_counters(connection)
            if is_new:  # so that the file can be told from an empty one without its write-ahead file
                self.database.empty_write_ahead()
            self.texts = TextStore(self.database.connection, text_budget_bytes, counters.get("text_bytes", 0))
            self.log = JournalReader(self.database, space_id)
            self.entries: int = counters.get("entries", 0)
            self.expired_up_to: int = counters.get("expired_up_to", 0)
            self.sequence = self.log.last_sequence()
        except BaseException:
            self.database.close()
            raise

    def append(
        self, batch: Sequence[DecidedPage], hour: int | None = None, expiry: "BatchExpiry | None" = None
    ) -> None:
        """Make `batch` durable; StateFullError, and nothing of it is stored, if the disk does not take it.

        hour: of the present, counted from 1970; None leaves it out. expiry: what expired with the batch.
        """
        expiry = expiry or BatchExpiry(up_to=self.expired_up_to)
        changes = changes_of(batch)
        changes["entries"] -= sum(expiry.expired.values())
        changes.update({f"expired_{reason}": count for reason, count in expiry.expired.items()})
        changes["expired_up_to"] = expiry.up_to - self.expired_up_to
        with self.database.transaction() as connection:
            if expiry.minute is not None:
                connection.execute(_INSERT_TIME, (self.sequence, expiry.minute, self.expired_up_to))
            if hour is not None and hour != self._hour:
                connection.execute(_INSERT_HOUR, (hour, self.sequence))
            insert_rows(connection, *INSERT_PAGE, map(page_row, batch))
            insert_rows(connection, *INSERT_EVIDENCE, self._evidence_rows(batch))
            insert_rows(connection, *INSERT_NAME, (row for decided in batch for row in name_rows(decided)))
            changes["text_bytes"] = self.texts.add(
                (decided.decision.verdict.sequence, decided.prepared.page.text) for decided in batch
            )
            change_counters(connection, changes)
        self._hour = hour
        self.expired_up_to = expiry.up_to
        self.sequence += len(batch)
        self.entries += changes["entries"]

    def retract(self, target: int, reason: str, *, erase: bool = True) -> Erased:
        """Record that the page at `target` was removed, drop its text, and forget the deliveries of its URL.

        erase: also what else is known of its visits; return what that was.
        """
        with self.database.transaction() as connection:
            connection.execute(_INSERT_RETRACTION, (self.sequence + 1, target, stored_text(reason)))
            if erase:
                erased = erase_visits(connection, self.texts, target)
            else:
                forget_deliveries(connection, target)
                erased = Erased(text_bytes=self.texts.drop(target))
            change_counters(connection, Counter(entries=-1, text_bytes=erased.text_bytes))
            names = [(name_hash(name), self.sequence + 1) for name in erased.names]
            insert_rows(connection, *INSERT_NAME, names)  # who asks for the page again is told of the retraction
        self.sequence += 1
        self.entries -= 1
        return erased

    def erase(self, target: int) -> Erased:
        """Erase what is known of the visits of a page that has no entry, and return what that was."""
        with self.database.transaction() as connection:
            erased = erase_visits(connection, self.texts, target)
            change_counters(connection, Counter(text_bytes=erased.text_bytes))
        return erased

    def erase_mentions(self) -> bool:
        """Erase what other rows say of pages erased since the last call, and leave no bytes of either on the disk.

        Reads the whole log. The evidence of both goes, too: a commit of `pages/` has to cover them. Return False if a
        reader kept the write-ahead file: its bytes go with the next checkpoint.
        """
        with self.database.transaction() as connection:
            more = erase_mentions(connection, self.texts, take_noted(connection))
            changes = Counter(text_bytes=more.text_bytes, evidence_erased=erase_evidence(connection))
            change_counters(connection, changes)
        return self.database.empty_write_ahead()

    def correct(self, detail: str, target: int | None) -> int:
        """Record a correction and the removal of the page at `target`, if any; return the sequence of the record."""
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

    def lose_entries(self, count: int) -> None:
        """Record that entries are gone which a base has retracted."""
        with self.database.transaction() as connection:
            change_counters(connection, Counter(entries=-count))
        self.entries -= count

    def rename_bases(self, bases: Sequence[BaseLabel]) -> None:
        """Record that bases are elsewhere, or have other names."""
        with self.database.transaction() as connection:
            connection.execute("UPDATE meta SET value = ? WHERE name = ?", (encode_labels(bases), BASES))
        self.log = JournalReader(self.database, self.header.space_id)

    def _evidence_rows(self, batch: Sequence[DecidedPage]) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        for decided in batch:
            has_any = decided.prepared.evidence or decided.prepared.keys
            if has_any and (self._has_evidence_of_entries or not decided.decision.kept):
                yield evidence_row(decided)

    def close(self) -> None:
        """Close the file; SQLite merges the write-ahead file into it."""
        self.database.close()
