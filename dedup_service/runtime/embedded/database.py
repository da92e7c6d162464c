"""Open the SQLite file of a journal, and raise all of its errors as `StateError`s.

There is one error class for each reaction of a caller: open it with something else, restore it, open it again, wait,
free space. SQLite reports error codes; `translated` maps them at the one place where they occur.

What is deleted is overwritten with zeros (secure_delete), so that a page which was taken down is in no free page.
WAL mode, so that readers never wait. synchronous=FULL, so that a commit that returned is on the disk. A connection may
be used from any thread, one at a time: its owner holds the lock.
"""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from dedup_service.core.errors import StateError

_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_PRIMARY_CODE = 0xFF  # SQLite's extended codes carry the primary one in their low byte


class ForeignStateError(StateError):
    """The state is of another space, a newer version or the Kafka service. Open it with that, or elsewhere."""


class StateDamagedError(StateError):
    """The journal cannot be read. Restore the folder from a copy, or start a new one."""


class StateClosedError(StateError):
    """The filter is closed, or stopped at an earlier error. Open the state again."""


class StateInUseError(StateError):
    """Another process has the state open. Wait for it or stop it; then the same call succeeds."""

    retryable: ClassVar[bool] = True


class StateFullError(StateError):
    """The disk is full or not writable, or the system does not let a file be read.

    Nothing of the batch is stored: do what the message says, open again, and repeat the batch.
    """

    retryable: ClassVar[bool] = True


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise errors of SQLite on the journal at `path` as `StateError`s that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & _PRIMARY_CODE
        if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
            raise StateClosedError(f"{path} is closed: open the state again") from error
        if code in _NO_ROOM:
            raise StateFullError(
                f"disk full or not writable: {path}: {error}; free space there and open the state again"
            ) from error
        if code in _IN_USE:
            raise StateInUseError(f"another program holds {path}: {error}; close it and try again") from error
        raise StateDamagedError(
            f"{path} is not a readable journal: {error}; restore it from a copy or start a new folder"
        ) from error


# Digests are random, so a batch rewrites about one page of their index for each record. At 1.5 million records,
# 128 MiB between checkpoints and 256 MiB of cache reduced 118 µs a record to 77 (one run, a busy machine). What is
# between checkpoints is a half of that, to save disk. Less cache costs little, as the system caches the file, too: at
# a million records, 64, 16, 8 and 4 MiB took 51, 47, 53 and 57 µs of processor a record, then 54, 54, 59 and 61.
_CHECKPOINT_PAGES = 16 * 1024
_CACHE_KIB = 8 * 1024
VACUUM_SHARE = 20
"""A file of which less than one page in so many is free is left as it is: writing it costs more than that gives."""

_ROWS = 32, 8, 1
"""Rows of one INSERT, the largest first. The variables of 32 rows are below the limit of any SQLite, 999."""

WRITE_AHEAD, SHARED_MEMORY = "-wal", "-shm"
"""What the name of a file has behind it for its write-ahead file, and for what processes that have it open share."""

_STABLE_ATTEMPTS = 3
_WRITE_AHEAD_HEAD = 32
"""Bytes at the beginning of a write-ahead file that change when it begins again."""

_ROWS_AT_ONCE = 1 << 16
_BUSY_TIMEOUT_MS = 5000  # a program that copies the file may delay a commit


def insert_rows(connection: sqlite3.Connection, insert: str, row: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows, many in a statement. insert: the statement up to VALUES. row: one with its variables, "(?, ?)".

    `executemany` gives the interpreter lock up for each row, and takes it back from threads that prepare pages: 18 µs a
    page of a batch where this takes 10, and 8 and 7 beside no other thread.
    """
    left = [*rows]
    start = 0
    for count in _ROWS:
        while len(left) - start >= count:
            values = tuple(chain.from_iterable(left[start : start + count]))
            connection.execute(_insertion(insert, row, count), values)
            start += count


@cache
def _insertion(insert: str, row: str, count: int) -> str:
    return f"{insert} VALUES {', '.join([row] * count)}"


def copy_database(path: Path, copy: Path) -> bool:
    """Copy a file with its write-ahead file, either of which may be missing or may be written meanwhile.

    A checkpoint in between may leave parts of different moments. That is tried again, a few times; False: the copy may
    be of several moments all the same.
    """
    ahead, ahead_copy = (one.with_name(one.name + WRITE_AHEAD) for one in (path, copy))
    for _ in range(_STABLE_ATTEMPTS):
        before = _moment(path, ahead)
        for one, into in ((path, copy), (ahead, ahead_copy)):
            into.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(one, into)
        if _moment(path, ahead) == before:
            return True
    return False


def _moment(path: Path, ahead: Path) -> tuple[Any, ...]:
    """Return what a checkpoint changes: size and time of the file, and the head of its write-ahead file."""
    with suppress(FileNotFoundError):
        status = path.stat()
        with suppress(FileNotFoundError), ahead.open("rb") as file:
            return status.st_size, status.st_mtime_ns, file.read(_WRITE_AHEAD_HEAD)
        return status.st_size, status.st_mtime_ns
    return ()


class Access(Enum):
    """How a database is opened; the value is what its address has.

    Attributes:
        WRITE: As the only writer; a file that is missing is created.
        READ: For reading, beside a writer.
        QUERY: For reading, by a connection that SQLite lets clean up behind it when it closes as the last one.
        UNCHANGING: For reading a file that nobody writes to, without a lock and without files beside it.
    """

    WRITE = ""
    READ = "mode=ro"
    QUERY = "mode=rw"
    UNCHANGING = "mode=ro&immutable=1"


class Database:
    """An open database. path: None is a database in memory."""

    def __init__(self, path: Path | None, access: Access = Access.WRITE) -> None:
        self.path = ":memory:" if path is None else str(path)
        is_address = path is not None and access is not Access.WRITE
        with translated(self.path):
            target = f"{path.absolute().as_uri()}?{access.value}" if path is not None and is_address else self.path
            self.connection = sqlite3.connect(
                target, isolation_level=None, check_same_thread=False, cached_statements=32, uri=is_address
            )
            try:
                self._set_up(access)
            except BaseException:
                self.connection.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction: what happens inside becomes durable at the end, completely or not at all."""
        with translated(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # after a full disk SQLite has rolled back already
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Begin a read transaction: all reads inside see the file as it was at the first of them."""
        with translated(self.path):
            self.connection.execute("BEGIN")
            try:
                yield self.connection
            finally:
                self.connection.execute("ROLLBACK")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of `query`."""
        with translated(self.path):
            return self.connection.execute(query, values).fetchall()

    def first(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        """Return the first row of `query`, or None."""
        with translated(self.path):
            row: tuple[Any, ...] | None = self.connection.execute(query, values).fetchone()
            return row

    def chunks(self, query: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of `query`, some at a time."""
        with translated(self.path):
            cursor = self.connection.execute(query, values)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield rows

    def free_bytes(self) -> int:
        """Return the bytes of pages in the file that have no content."""
        ((pages,),), ((page_bytes,),) = self.rows("PRAGMA freelist_count"), self.rows("PRAGMA page_size")
        return int(pages * page_bytes)

    def empty_write_ahead(self) -> bool:
        """Move the write-ahead file into the database and empty it; False while a reader needs its content."""
        with translated(self.path):
            busy: int = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            return not busy

    def vacuum(self) -> None:
        """Write the file without its free pages, if they are one in VACUUM_SHARE; StateFullError leaves it as it was.

        For a while this takes up to twice the size of the content, beside the file.
        """
        ((pages,),) = self.rows("PRAGMA page_count")
        ((page_bytes,),) = self.rows("PRAGMA page_size")
        if VACUUM_SHARE * self.free_bytes() >= pages * page_bytes:
            with translated(self.path):
                self.connection.execute("VACUUM")
        self.empty_write_ahead()

    def close(self) -> None:
        """Close the file; an open transaction is rolled back."""
        with translated(self.path):
            self.connection.close()

    def _set_up(self, access: Access) -> None:
        execute = self.connection.execute
        execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        if access is Access.QUERY:
            execute("PRAGMA query_only = ON")
        execute("SELECT count(*) FROM sqlite_master")  # fails here, translated, if the file is not a database
        if access is Access.WRITE:
            execute("PRAGMA journal_mode = WAL")
            execute("PRAGMA secure_delete = ON")
            execute("PRAGMA synchronous = FULL")
            execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
