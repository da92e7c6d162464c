"""Errors of a store, one class for each reaction of a caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from dedup_service.core.errors import StateError


class StoreDamagedError(StateError):
    """A file of the store is missing, too short or altered. Delete the store and rebuild it from the log."""

    HINT: ClassVar[str] = "; restore the folder from a copy, or delete it and build it again from the log"

    @property
    def problem(self) -> str:
        """The message without what to do, for those who say that otherwise."""
        return str(self).removesuffix(self.HINT)


class ForeignStoreError(StateError):
    """The store belongs to another log, space or version. Open it with that, or read the input again."""


class StoreNumbersUsedError(StateError):
    """All 2^32 row numbers are used. Delete the store and rebuild it from the log, which numbers from 0."""


class StoreFullError(StateError):
    """The disk is full or not writable, or the system does not let a file be read: rights, open files, memory.

    What was committed before is unchanged: do what the message says, and open it again.
    """

    retryable: ClassVar[bool] = True


@contextmanager
def translated_os_errors(path: Path) -> Iterator[None]:
    """Raise an OSError of a write to `path` as StoreFullError."""
    try:
        yield
    except OSError as error:
        raise StoreFullError(f"disk full or not writable: {path}: {error}; free space and open it again") from error
