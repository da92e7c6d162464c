"""The tables of a journal, and whose journal it is.

`log` is the total order: one row a record, its sequence the row id, never changed once written.
  page        the delivery's digest, names, verdict, fingerprints and hashes (unsigned 64-bit values stored
              as signed); `entry` holds the flags of the entry that it added (see `entry_rows`), NULL where it
              added none; `repeats` the sequence of the page that the verdict names as `duplicate_of`;
              `removes` the sequence of the entry that an update replaced; `detail` what a page that matched
              added to what the guards have seen (bytes, see `core.groups`), NULL for any other.
  retraction  `removes` the sequence of the kept page that left, `detail` why.
  correction  `detail` what a person said of two pages as JSON (`corrections`), `removes` the sequence of the kept page
              that left for it, NULL where none did.
  policy      `detail` the match rule as JSON, in force from here on. The first one has sequence 0.
A text that equals its neighbour is stored once: `id` is NULL where it is the URL, `canonical_url` likewise.
`text` holds main texts, one zstd frame each, and is no part of the log: it may lose rows (see `texts`).
`counter` holds running sums, written with the batch that changes them, so that nobody has to scan the log.
`meta` says whose journal it is: format version, identity of this journal, space and space_id.

Invariant: whatever decides a later verdict is in `log`. Everything else can be lost or made again.
"""

import json
import sqlite3
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dedup_service.runtime.state_errors import ForeignStateError, StateDamagedError

__all__ = ["FORMAT_VERSION", "Header", "open_header", "read_header"]

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
