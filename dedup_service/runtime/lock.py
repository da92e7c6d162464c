"""One process at a time on a state folder.

An exclusive lock (flock) on `DIR/lock`; the operating system lets go of it when the holder dies, however
it dies. Who holds it stands in `DIR/holder`: taking a lock may truncate the lock file.
"""

import os
from pathlib import Path

from filelock import FileLock, Timeout

from dedup_service.runtime.state_errors import StateFullError, StateInUseError

__all__ = ["StateLock"]


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
