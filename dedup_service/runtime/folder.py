"""A state folder: made where it is missing, and of one kind for good.

The embedded filter and the Kafka service each keep a state of their own shape; a folder of one, opened as the
other, would look empty and start all over. So each refuses a folder that has the other's mark in it.
"""

from enum import Enum
from pathlib import Path

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.state_errors import ForeignStateError, StateFullError

__all__ = ["FolderKind", "made_folder", "refuse_other_kind"]


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
