"""Open a journal for reading and leave its folder as it was: the same files, and what is in the write-ahead file.

A database in WAL mode is read through two files beside it, and who opens it makes them. What removes them again:

- Neither is there: a connection that could write, but may not (`query_only`), is a full member. If it is the last one,
  SQLite removes both when it closes, under the lock that says so; if a writer came meanwhile, it does when that closes.
- Both are there: a process has the state open, or one was killed. A read-only connection reads what is in the
  write-ahead file and never moves it into the database, nor deletes it.
- One of them is there, as in a copy of a folder: SQLite would make the other one, so a copy is read.
- Nothing can be written, as on a read-only mount, and neither is there: nobody has the state open, so that the database
  has everything. It is read without a lock, and what was read counts only if the database did not change meanwhile.

A process that is killed while it reads may leave both files, empty.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dedup_service.runtime.embedded.database import (
    SHARED_MEMORY,
    WRITE_AHEAD,
    Access,
    Database,
    StateFullError,
    StateInUseError,
    copy_database,
)


def open_untouched(journal: Path) -> Database:
    """Open a journal that exists for reading; its folder is the same when it is closed.

    Raises as `Database`; StateInUseError or StateFullError if it has to be copied and cannot be.
    """
    ahead, shared = (journal.with_name(journal.name + suffix).exists() for suffix in (WRITE_AHEAD, SHARED_MEMORY))
    if ahead and shared:
        return Database(journal, Access.READ)
    if ahead or shared:
        return _Copied(journal)
    if os.access(journal.parent, os.W_OK) and os.access(journal, os.W_OK):
        return Database(journal, Access.QUERY)
    return _Unlocked(journal)


def open_copy(journal: Path, folder: Path) -> Database:
    """Copy a journal with its write-ahead file into `folder`, and open that for reading.

    StateInUseError if it is written too fast to be copied; StateFullError if there is no room.
    """
    try:
        is_stable = copy_database(journal, folder / journal.name)
    except OSError as error:
        raise StateFullError(f"cannot copy {journal} to {folder}: {error}; free space") from error
    if not is_stable:
        raise StateInUseError(f"{journal} is written too fast to be copied: try again, or stop its writer")
    return Database(folder / journal.name, Access.READ)


class _Copied(Database):
    """A copy of a journal, which is deleted when it is closed."""

    def __init__(self, journal: Path) -> None:
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="twinsieve-"))
        except OSError as error:
            raise StateFullError(f"cannot copy {journal}: {error}; free space, or set TMPDIR") from error
        try:
            copied = open_copy(journal, self._folder)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self.path, self.connection = str(journal), copied.connection

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Unlocked(Database):
    """A journal that nobody has open. What is read from it counts only if it did not change meanwhile."""

    def __init__(self, journal: Path) -> None:
        self._file = journal
        self._before = self._now()
        super().__init__(journal, Access.UNCHANGING)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """As of any database. StateInUseError if it was written meanwhile, whatever was read."""
        try:
            with super().reading() as connection:
                yield connection
        finally:
            if self._now() != self._before:
                raise StateInUseError(f"{self.path} was written while it was read: try again")

    def _now(self) -> tuple[int, int, int]:
        status = self._file.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
