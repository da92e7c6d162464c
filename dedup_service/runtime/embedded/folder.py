"""One process at a time on a state folder.

An exclusive lock (flock) on `DIR/lock`; the operating system lets go of it when the holder dies, however
it dies. Who holds it stands in `DIR/holder`: taking a lock may truncate the lock file.

A state folder: made where it is missing, and of one kind for good.

The embedded filter and the Kafka service each keep a state of their own shape; a folder of one, opened as the
other, would look empty and start all over. So each refuses a folder that has the other's mark in it.
"""

import os
from enum import Enum
from pathlib import Path

from filelock import FileLock, Timeout

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.embedded.database import ForeignStateError, StateFullError, StateInUseError

__all__ = ["FolderKind", "StateLock", "made_folder", "refuse_other_kind"]


class StateLock:
    """The right to write in `folder`, held from `acquire` to `release`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / "lock", timeout=0, thread_local=False)

    def acquire(self) -> None:
        """Take the lock; StateInUseError, which names the holder, where another has it."""
        try:
            self._lock.acquire()
        except Timeout:
            raise StateInUseError(
                f"state folder {self._folder} is in use by process {self._holder()}, "
                f"this is process {os.getpid()}: "
                "wait for it, stop it, or give another folder"
            ) from None
        except OSError as error:
            raise StateFullError(f"cannot lock state folder {self._folder}: {error}; make it writable") from error
        self._name_holder()

    def release(self) -> None:
        """Let go of the lock; a second call does nothing."""
        self._lock.release()

    def _name_holder(self) -> None:
        try:
            (self._folder / "holder").write_text(f"{os.getpid()}\n")
        except OSError:
            return  # only a courtesy to whoever comes second; the lock itself is held

    def _holder(self) -> str:
        try:
            return (self._folder / "holder").read_text().strip() or "unknown"
        except OSError:
            return "unknown"


class FolderKind(Enum):
    """Who keeps a state there: the file that marks it, and its name for people."""

    EMBEDDED = ("journal.sqlite", "the embedded filter (`filter`, `crawl`)")
    SERVICE = ("instance", "the Kafka service (`serve`)")

    @property
    def mark(self) -> str:
        """The file that is in every folder of this kind, and in none of another."""
        return self.value[0]

    def __str__(self) -> str:
        return self.value[1]


def made_folder(folder: Path) -> Path:
    """Return `folder`, made where it is missing; ConfigurationError for a file, StateFullError for a full disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise ConfigurationError(f"the state must be a folder, {folder} is a file: give another path") from error
    except OSError as error:
        raise StateFullError(
            f"cannot make state folder {folder}: {error}; free space, or give a path that can be written"
        ) from error
    return folder


def refuse_other_kind(folder: Path, mine: FolderKind) -> None:
    """Raise ForeignStateError where `folder` has the state of another kind. Its lock is held."""
    for kind in FolderKind:
        if kind is not mine and (folder / kind.mark).exists():
            raise ForeignStateError(
                f"{folder} holds a state of {kind} ({kind.mark} is in it), this is {mine}: "
                "give each a folder of its own"
            )
