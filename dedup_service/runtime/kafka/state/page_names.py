"""What the kept pages were called: a file beside the log, which has it all.

Names of many million pages do not belong into memory, and a verdict needs one only where it names an earlier page.
So they stand in SQLite, written in batches. Whatever is missing there is read from the log, with what stands behind it,
and remembered; so the file may be lost, old, or refuse to take more, and what it costs is time.

Invariants: the file has names of one log only, and none from after the sequence at which a restore began, so it can
never tell of a log that went on otherwise. WAL with synchronous=NORMAL: after a power cut the file is whole, if
shorter. One thread at a time.
"""

import logging
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

__all__ = ["PageNameReader", "PageNameStore", "temporary_page_names"]

_LOG = logging.getLogger(__name__)

PageNameReader = Callable[[int], Mapping[int, tuple[str, str]]]
"""Reads (id, url) of the page at a sequence from the log, and, since that is a journey, of pages after it."""

_FORMAT = 1
_AT_ONCE = 8192
"""About 2 µs a name; a batch takes 15 ms."""
_CHECKPOINT_PAGES = 4096
_CACHE_KIB = 16 << 10
_TABLES = f"""
CREATE TABLE of (log TEXT NOT NULL);
CREATE TABLE name (sequence INTEGER PRIMARY KEY, id TEXT, url TEXT NOT NULL);
PRAGMA user_version = {_FORMAT};
"""


class PageNameStore:
    """The names in the file `path`; `begin` says of which log, before anything is asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._latest: dict[int, tuple[str, str]] = {}
        self._read: PageNameReader | None = None
        self._failing = False

    def begin(self, log: str, sequence: int, read: PageNameReader) -> None:
        """Keep what the file has of `log` up to `sequence` (-1: nothing); `read` finds what is missing in the log."""
        self._let_go()
        self._read = read
        self._latest.clear()
        try:
            self._connection = self._opened(log, sequence)
        except (sqlite3.Error, OSError) as error:
            self._warn(error)
            self._start_over(log)

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`. Raises what the reader of the log raises."""
        found = self._latest.get(sequence) or self._stored(sequence)
        if found is None:
            assert self._read is not None, "begin() comes first"
            near = self._read(sequence)
            for at, names in near.items():
                self.add(at, *names)
            found = near[sequence]
        return found

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Remember the kept page at `sequence`."""
        self._latest[sequence] = page_id, url
        if len(self._latest) >= _AT_ONCE:
            self.flush()

    def flush(self, log: str | None = None) -> None:
        """Write what was added, and of which log it is where that was not known; what the file refuses is left out."""
        rows = [(sequence, None if name == url else name, url) for sequence, (name, url) in self._latest.items()]
        self._latest.clear()
        if self._connection is None:
            return
        try:
            with self._connection:  # one transaction
                if log is not None:
                    self._connection.execute("UPDATE of SET log = ? WHERE log <> ?", (log, log))
                self._connection.executemany("INSERT OR REPLACE INTO name VALUES (?, ?, ?)", rows)
            self._failing = False
        except sqlite3.Error as error:
            self._warn(error)

    def close(self) -> None:
        """Write what was added, and let go of the file; a second call does nothing."""
        self.flush()
        self._let_go()

    def _stored(self, sequence: int) -> tuple[str, str] | None:
        if self._connection is None:
            return None
        try:
            row = self._connection.execute("SELECT id, url FROM name WHERE sequence = ?", (sequence,)).fetchone()
        except sqlite3.Error as error:
            self._warn(error)
            return None
        return None if row is None else (row[1] if row[0] is None else row[0], row[1])

    def _opened(self, log: str, sequence: int) -> sqlite3.Connection:
        """Return the file of `log` with nothing after `sequence` in it; one that does not fit is made anew."""
        connection = self._connected()
        try:
            if sequence >= 0 and _is_of(connection, log):
                with connection:
                    connection.execute("DELETE FROM name WHERE sequence > ?", (sequence,))
                return connection
        except sqlite3.Error as error:
            self._warn(error)
        connection.close()
        self._delete()
        return _laid_out(self._connected(), log)

    def _start_over(self, log: str) -> None:
        """Make the file anew; where even that fails, go on without one."""
        self._let_go()
        try:
            self._delete()
            self._connection = _laid_out(self._connected(), log)
        except (sqlite3.Error, OSError) as error:
            self._warn(error)

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # a look-up in half the time: it locks nothing
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _delete(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _warn(self, error: Exception) -> None:
        """Say once that the file fails, and again only after it worked."""
        if not self._failing:
            _LOG.warning(
                "%s does not serve: %s; what it lacks is read from the log instead, which takes longer",
                self._path,
                error,
            )
        self._failing = True


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


def _laid_out(connection: sqlite3.Connection, log: str) -> sqlite3.Connection:
    try:
        connection.executescript(_TABLES)
        with connection:
            connection.execute("INSERT INTO of VALUES (?)", (log,))
    except sqlite3.Error:
        connection.close()
        raise
    return connection
