"""What a service process keeps in its folder: its name, names of pages, and a snapshot of its replica.

    local = LocalState.open("state")

`DIR/instance` is the name that the process has in its groups and transactions, made once. All else in the folder can be
lost: the log restores it. One process at a time works on a folder; its lock goes when the process does.
"""

import os
import re
import secrets
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.replica import Replica
from dedup_service.runtime.folder import FolderKind, made_folder, refuse_other_kind
from dedup_service.runtime.kafka.state.names import KeptNames
from dedup_service.runtime.kafka.state.snapshots import SNAPSHOT_EVERY, ServiceSnapshots
from dedup_service.runtime.kafka.steps.outcomes import Outcomes
from dedup_service.runtime.lock import StateLock
from dedup_service.runtime.snapshot import sync_folder
from dedup_service.runtime.state_errors import StateFullError

__all__ = ["NAMES_FILE", "SNAPSHOT_FILE", "LocalState"]

NAMES_FILE = "names.sqlite"
SNAPSHOT_FILE = "snapshot"

_LEGAL = re.compile(r"[A-Za-z0-9._-]{1,200}")
"""What Kafka takes in a member's name, which may have 249 characters; ours gets something in front."""
_HOST_CHARS = 40


class LocalState:
    """A folder in use; made by `open`. instance: this process's name."""

    def __init__(self, folder: Path, instance: str, lock: StateLock, snapshot_every: int) -> None:
        self.folder = folder
        self.instance = instance
        self.names = KeptNames(folder / NAMES_FILE)
        self.snapshots = ServiceSnapshots(folder / SNAPSHOT_FILE, snapshot_every)
        self._lock = lock

    @classmethod
    def open(cls, folder: str | Path, instance: str | None = None, *, snapshot_every: int = SNAPSHOT_EVERY) -> Self:
        """Take `folder` into use, made where it is missing.

        instance: another name than the folder's, which no two processes may share. snapshot_every: records between
        two snapshots, at least.
        Raises StateInUseError while another process has the folder; ForeignStateError where the embedded filter's
        state is in it; StateFullError where it cannot be written; ConfigurationError for a name Kafka does not take.
        """
        if instance is not None and not _LEGAL.fullmatch(instance):
            raise ConfigurationError(
                f"instance {instance!r} is no name for Kafka: use up to 200 of A-Z, a-z, 0-9, dot, underscore, hyphen"
            )
        folder = made_folder(Path(folder))
        lock = StateLock(folder)
        lock.acquire()
        try:
            refuse_other_kind(folder, FolderKind.SERVICE)
            named = _instance(folder / FolderKind.SERVICE.mark)
            return cls(folder, instance or named, lock, snapshot_every)
        except BaseException:
            lock.release()
            raise

    def snapshot_due(self, sequence: int, entries: int) -> bool:
        """Whether a snapshot should be taken at `sequence`, with so many entries."""
        return self.snapshots.due(sequence, entries)

    def take_snapshot(self, replica: Replica, outcomes: Outcomes, tail: str) -> None:
        """Export the state now and write it in the background; see `ServiceSnapshots.take`. Never raises."""
        if replica.log is not None:
            self.names.flush(replica.log)
        self.snapshots.take(replica, outcomes, tail)

    def close(self) -> None:
        """Finish what is being written and let go of the folder; a second call does nothing."""
        try:
            self.snapshots.wait()
            self.names.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _instance(path: Path) -> str:
    """Return the name in `path`, made where there is none: short host name and random digits."""
    try:
        name = path.read_text(encoding="utf-8").strip() if path.exists() else ""
        if _LEGAL.fullmatch(name):
            return name
        host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname().split(".")[0])[:_HOST_CHARS] or "host"
        name = f"{host}-{secrets.token_hex(4)}"
        _write_durably(path, name + "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise StateFullError(
            f"cannot keep this process's name in {path}: {error}; free space there, and make it a readable file"
        ) from error
    return name


def _write_durably(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)
