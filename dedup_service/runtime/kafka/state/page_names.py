"""Local cache of page names (id and URL of each kept page); rebuildable from the log.

The names of many million pages are not held in RAM, and a verdict needs one only if it names an earlier
page. They are stored in SQLite, written in batches. A name that is missing is read from the log, together
with those after it, and added. The file may therefore be lost, outdated or not writable: that costs time,
never a verdict.

Names of retracted pages are erased, also from the bytes of the file and its write-ahead file (`step`). Those of pages
that expired are deleted once no snapshot needs them (`forget`).

Invariants: the file has names of one log only, and none after the sequence at which a restore began, so it
cannot return names from a log that was replaced. WAL with synchronous=NORMAL: after a power cut the file is
consistent, but may lack the latest names. One thread at a time.
"""

import logging
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from dedup_service.runtime.embedded.database import insert_rows

_LOG = logging.getLogger(__name__)

PageNameReader = Callable[[int], Mapping[int, tuple[str, str]]]
"""Reads (id, url) of the page at a sequence, and of some after it, from the log.

Each read is a round trip, so it returns a batch.
"""

_FORMAT = 1
_BATCH_NAMES = 8192
"""Names written in one transaction: about 2 µs each, 15 ms a batch."""
_FORGOTTEN_NAMES = 2 * _BATCH_NAMES
"""Names deleted with each batch that is written, at most: so a backlog is gone after as many names again."""
_FORGET = "DELETE FROM name WHERE sequence IN (SELECT sequence FROM name WHERE sequence <= ? ORDER BY sequence LIMIT ?)"
_BETWEEN = "SELECT sequence, id, url FROM name WHERE sequence BETWEEN ? AND ?"
_CHECKPOINT_PAGES = 4096
_CACHE_KIB = 16 << 10
_TABLES = f"""
CREATE TABLE of (log TEXT NOT NULL);
CREATE TABLE name (sequence INTEGER PRIMARY KEY, id TEXT, url TEXT NOT NULL);
PRAGMA user_version = {_FORMAT};
"""


class PageNameStore:
    """Names in the SQLite file `path`. `begin` opens it for a log, before any other call.

    Never raises for a file that fails: it warns once, and reads from the log instead.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._latest: dict[int, tuple[str, str]] = {}
        self._read: PageNameReader | None = None
        self._failing = self._erased = False
        self._forgotten = -1

    def begin(self, log: str, sequence: int, read: PageNameReader) -> None:
        """Open the file for `log` and delete names after `sequence` (-1: all of them).

        log: identity of the log. read: finds missing names in the log.
        """
        self._disconnect()
        self._read = read
        self._latest.clear()
        self._forgotten = -1
        try:
            self._connection = self._open(log, sequence)
        except (sqlite3.Error, OSError) as error:
            self._warn(error)
            self._recreate(log)

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`. Raises what the reader of the log raises."""
        name = self._latest.get(sequence) or self._stored(sequence)
        if name is None:
            assert self._read is not None, "begin() comes first"
            names = self._read(sequence)
            for read_at, (page_id, url) in names.items():
                self.add(read_at, page_id, url)
            name = names[sequence]
        return name

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Add the kept page at `sequence`."""
        self._latest[sequence] = page_id, url
        if len(self._latest) >= _BATCH_NAMES:
            self.flush()

    def erase(self, sequence: int) -> None:
        """Erase the name of a page that was retracted; nothing of it is left in the file after the next `step`."""
        self._latest.pop(sequence, None)
        if self._connection is None:
            return
        try:
            with self._connection:
                self._connection.execute("DELETE FROM name WHERE sequence = ?", (sequence,))
            self._erased = True
        except sqlite3.Error as error:
            self._warn(error)

    def forget(self, sequence: int) -> None:
        """Delete the names of pages up to a sequence: some now, and some with each batch that is written."""
        self._forgotten = sequence
        if self._connection is None:
            return
        try:
            with self._connection:
                self._connection.execute(_FORGET, (sequence, _FORGOTTEN_NAMES))
        except sqlite3.Error as error:
            self._warn(error)

    def step(self) -> None:
        """Empty the write-ahead file if names were erased since the last call: it and the file have their bytes."""
        if self._connection is None or not self._erased:
            return
        try:
            self._erased = bool(self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        except sqlite3.Error as error:
            self._warn(error)

    def flush(self, log: str | None = None) -> None:
        """Write the added names; those that the file refuses are dropped.

        log: sets the identity of a log that had none when the file was opened.
        """
        rows = [(sequence, None if name == url else name, url) for sequence, (name, url) in self._latest.items()]
        self._latest.clear()
        if self._connection is None:
            return
        try:
            with self._connection:  # one transaction
                if log is not None:
                    self._connection.execute("UPDATE of SET log = ? WHERE log <> ?", (log, log))
                insert_rows(self._connection, "INSERT OR REPLACE INTO name", "(?, ?, ?)", rows)
                self._connection.execute(_FORGET, (self._forgotten, _FORGOTTEN_NAMES))
            self._failing = False
        except sqlite3.Error as error:
            self._warn(error)

    def close(self) -> None:
        """Write the added names and close the file; a second call does nothing."""
        self.flush()
        self._disconnect()

    def _stored(self, sequence: int) -> tuple[str, str] | None:
        if self._connection is None:
            return None
        try:
            row = self._connection.execute("SELECT id, url FROM name WHERE sequence = ?", (sequence,)).fetchone()
        except sqlite3.Error as error:
            self._warn(error)
            return None
        return None if row is None else (row[1] if row[0] is None else row[0], row[1])

    def _open(self, log: str, sequence: int) -> sqlite3.Connection:
        """Open the file without names after `sequence`; replace a file of another log or format."""
        connection = self._connect()
        try:
            if sequence >= 0 and _is_of(connection, log):
                with connection:
                    connection.execute("DELETE FROM name WHERE sequence > ?", (sequence,))
                return connection
        except sqlite3.Error as error:
            self._warn(error)
        connection.close()
        self._delete()
        return _create_tables(self._connect(), log)

    def _recreate(self, log: str) -> None:
        """Replace the file; continue without one if that fails too."""
        self._disconnect()
        try:
            self._delete()
            self._connection = _create_tables(self._connect(), log)
        except (sqlite3.Error, OSError) as error:
            self._warn(error)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False)
        try:
            connection.execute(
                "PRAGMA locking_mode = EXCLUSIVE"
            )  # halves the time of a look-up: no file lock each time
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _delete(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _warn(self, error: Exception) -> None:
        """Warn that the file fails, once until it works again."""
        if not self._failing:
            _LOG.warning(
                "page names in %s cannot be used: %s; they are read from the log instead, which takes longer",
                self._path,
                error,
            )
        self._failing = True


class PageNameFile:
    """Names of a log in a copy of the file of a `PageNameStore`, which no process writes.

    Like the store, it never raises for a file that fails: it warns once, and has no names from then on.
    """

    def __init__(self, path: Path, log: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        if not path.exists():
            return
        try:
            self._connection = sqlite3.connect(path)
            if not _is_of(self._connection, log):
                self._end("it is of another log or format")
        except sqlite3.Error as error:
            self._end(str(error))

    def between(self, first: int, last: int) -> dict[int, tuple[str, str]]:
        """Return (id, url) by sequence, of the pages from sequence `first` to `last`."""
        if self._connection is None:
            return {}
        try:
            names = self._connection.execute(_BETWEEN, (first, last)).fetchall()
        except sqlite3.Error as error:
            self._end(str(error))
            return {}
        return {sequence: (url if page_id is None else page_id, url) for sequence, page_id, url in names}

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _end(self, reason: str) -> None:
        _LOG.warning("no more page names are read from %s: %s", self._path, reason)
        self.close()


@contextmanager
def temporary_page_names() -> Iterator[PageNameStore]:
    """Yield an empty store in a temporary folder, for a replay that begins with the first record of a log."""
    with (
        tempfile.TemporaryDirectory(prefix="twinsieve-") as folder,
        closing(PageNameStore(Path(folder) / "names.sqlite")) as names,
    ):
        names.begin("", -1, _no_name)
        yield names


def _no_name(sequence: int) -> NoReturn:
    """There is no second place to read a name from."""
    raise OSError(f"the name of page {sequence} could not be kept in a temporary file: free space in TMPDIR")


def _is_of(connection: sqlite3.Connection, log: str) -> bool:
    if connection.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
        return False
    return bool(connection.execute("SELECT count(*) FROM of WHERE log = ?", (log,)).fetchone()[0])


def _create_tables(connection: sqlite3.Connection, log: str) -> sqlite3.Connection:
    try:
        connection.executescript(_TABLES)
        with connection:
            connection.execute("INSERT INTO of VALUES (?)", (log,))
    except sqlite3.Error:
        connection.close()
        raise
    return connection
