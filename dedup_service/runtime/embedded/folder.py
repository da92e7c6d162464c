"""The state folder: created if it is missing, locked by one process, and of one kind.

`StateLock` is an exclusive lock (flock) on `DIR/lock`; the operating system releases it when the process dies, however
it dies. The process id is in `DIR/holder`, because taking the lock may truncate the lock file.

The embedded filter and the Kafka service keep different states. A folder of one, opened as the other, would look empty
and start from the beginning, so each refuses a folder that has the marker file of the other.
"""

import os
from enum import Enum
from pathlib import Path

from filelock import FileLock, Timeout

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.embedded.database import ForeignStateError, StateFullError, StateInUseError


class StateLock:
    """The exclusive right to write in `folder`, from `acquire` to `release`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / "lock", timeout=0, thread_local=False)

    def acquire(self) -> None:
        """Take the lock. StateInUseError names the process that has it; StateFullError if it cannot be written."""
        try:
            self._lock.acquire()
        except Timeout:
            if self._folder.resolve() in _locked_here:
                raise StateInUseError(
                    f"state folder {self._folder} is in use by process {os.getpid()}, which is this one: "
                    "use the filter that is open already, close it, or give another folder"
                ) from None
            raise StateInUseError(
                f"state folder {self._folder} is in use by process {self._holder()}, "
                f"this is process {os.getpid()}: wait for it, stop it, or give another folder"
            ) from None
        except OSError as error:
            raise StateFullError(f"cannot lock state folder {self._folder}: {error}; make it writable") from error
        _locked_here.add(self._folder.resolve())
        self._name_holder()

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._lock.is_locked:
            _locked_here.discard(self._folder.resolve())
        self._lock.release()

    def _name_holder(self) -> None:
        try:
            (self._folder / "holder").write_text(f"{os.getpid()}\n")
        except OSError:
            return  # the file only improves an error message; the lock itself is held

    def _holder(self) -> str:
        try:
            return (self._folder / "holder").read_text().strip() or "unknown"
        except OSError:
            return "unknown"


_locked_here: set[Path] = set()
"""The folders that this process has locked. A process id does not say so: two containers may have the same."""


class FolderKind(Enum):
    """Whose state a folder holds: its marker file, and its name in messages."""

    EMBEDDED = ("journal.sqlite", "the embedded filter (`filter`, `crawl`)")
    SERVICE = ("instance", "the Kafka service (`serve`)")

    @property
    def mark(self) -> str:
        """The file that is in every folder of this kind, and in no folder of another kind."""
        return self.value[0]

    def __str__(self) -> str:
        return self.value[1]


JOURNAL_FILE = FolderKind.EMBEDDED.mark
PAGES_FOLDER = "pages"
CRAWL_FOLDER = "twinsieve"
"""The state in a JOBDIR of Scrapy."""


def state_in(folder: str) -> str:
    """Return `folder`, or the state in it if it is a JOBDIR of Scrapy that has one."""
    of_crawl = Path(folder) / CRAWL_FOLDER
    is_state = any((Path(folder) / kind.mark).exists() for kind in FolderKind)
    return str(of_crawl) if not is_state and (of_crawl / JOURNAL_FILE).exists() else folder


def made_folder(folder: Path) -> Path:
    """Return `folder`, created if it is missing. ConfigurationError for a file, StateFullError for a full disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise ConfigurationError(
            f"the state must be a folder, {folder} is a file: give another --state (in Scrapy TWINSIEVE_STATE)"
        ) from error
    except OSError as error:
        raise StateFullError(
            f"cannot create state folder {folder}: {error}; free space, or give a path that can be written"
        ) from error
    return folder


def refuse_other_kind(folder: Path, mine: FolderKind) -> None:
    """Raise ForeignStateError if `folder` has a state of another kind. Call it with the lock held."""
    for kind in FolderKind:
        if kind is not mine and (folder / kind.mark).exists():
            raise ForeignStateError(
                f"{folder} holds a state of {kind} ({kind.mark} is in it), this is {mine}: "
                "give each of them another folder"
            )
