"""What can be wrong with a state folder, one class for each thing that a caller would do about it.

SQLite reports by number; `translated` turns its errors into ours at the one edge where they occur.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from dedup_service.core.errors import StateError

__all__ = [
    "ForeignStateError",
    "StateClosedError",
    "StateDamagedError",
    "StateFullError",
    "StateInUseError",
    "translated",
]

_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_PRIMARY_CODE = 0xFF  # SQLite's extended codes carry the primary one in their low byte


class ForeignStateError(StateError):
    """The state is of another space or a newer version. Open it with those, or start a new folder."""


class StateDamagedError(StateError):
    """The journal cannot be read as one. Restore the folder from a copy, or start a new one."""


class StateClosedError(StateError):
    """The filter was closed, or stopped at an earlier error. Open the state again."""


class StateInUseError(StateError):
    """Another process works on the state. Wait for it, or stop it; then the same call succeeds."""

    retryable: ClassVar[bool] = True


class StateFullError(StateError):
    """The disk, full or not writable, did not take a batch. Free space, open again, give the batch again."""

    retryable: ClassVar[bool] = True


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise SQLite's errors on the journal at `path` as `StateError`s that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & _PRIMARY_CODE
        if code in _NO_ROOM:
            raise StateFullError(
                f"disk full or not writable: {path}: {error}; free space there and open the state again"
            ) from error
        if code in _IN_USE:
            raise StateInUseError(f"another program holds {path}: {error}; close it and try again") from error
        raise StateDamagedError(
            f"{path} is not a readable journal: {error}; restore it from a copy or start a new folder"
        ) from error
