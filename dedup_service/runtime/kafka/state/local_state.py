"""Folder of a service process: its name, the page names, and its kept pages with the rest of its deciding state.

    local = LocalState.open("state")

`DIR/instance` holds the name of the process in its groups and transactions; it is created once. The rest of
the folder may be lost: it is restored from the log. One process at a time works on a folder; the lock is
released when the process exits.
"""

import logging
import os
import re
import secrets
import socket
from pathlib import Path
from typing import Self

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.embedded.database import Database, StateFullError
from dedup_service.runtime.embedded.folder import FolderKind, StateLock, made_folder, refuse_other_kind
from dedup_service.runtime.kafka.state.deciding_store import SNAPSHOT_EVERY, DecidingStore
from dedup_service.runtime.kafka.state.page_names import PageNameStore
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.kafka.state.shard_state import ShardReplica
from dedup_service.runtime.store.page_files import sync_directory
from dedup_service.runtime.store.stored_entries import Report

_LOG = logging.getLogger(__name__)

NAMES_FILE = "names.sqlite"
PAGES_FOLDER = "pages"

_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
"""Names that Kafka accepts for a member: up to 249 characters, of which a prefix needs some."""

_HOST_CHARS = 40


class LocalState:
    """A folder in use, returned by `open`. instance: the name of this process."""

    def __init__(self, folder: Path, instance: str, lock: StateLock, snapshot_every: int, pages: str) -> None:
        self.folder = folder
        self.instance = instance
        self.names = PageNameStore(folder / NAMES_FILE)
        self.pages = DecidingStore(folder / pages, snapshot_every)
        self._expired_up_to = -1
        self._lock = lock

    @classmethod
    def open(
        cls,
        folder: str | Path,
        instance: str | None = None,
        *,
        snapshot_every: int = SNAPSHOT_EVERY,
        pages: str = PAGES_FOLDER,
    ) -> Self:
        """Lock `folder` and open it; create it if it is missing.

        instance: a name to use instead of the folder's; no two processes may share one. snapshot_every:
        minimum number of records between two snapshots. pages: the folder inside with the kept pages.
        Raises StateInUseError if another process uses the folder; ForeignStateError if it holds the state of
        an embedded filter; StateFullError if it cannot be written; ConfigurationError for a name that Kafka
        refuses.
        """
        if instance is not None and not _LEGAL_NAME.fullmatch(instance):
            raise ConfigurationError(
                f"Kafka does not accept the instance name {instance!r}: use up to 200 of A-Z, a-z, 0-9, dot, "
                "underscore, hyphen"
            )
        folder = made_folder(Path(folder))
        lock = StateLock(folder)
        lock.acquire()
        try:
            refuse_other_kind(folder, FolderKind.SERVICE)
            own_name = _folder_instance(folder / FolderKind.SERVICE.mark)
            return cls(folder, instance or own_name, lock, snapshot_every, pages)
        except BaseException:
            lock.release()
            raise

    def step(self) -> None:
        """Do a little of what kept pages and names need; call it in each turn. StoreFullError as `DecidingStore`."""
        self.pages.step()
        self.names.step()

    def take_snapshot(
        self, replica: Replica | ShardReplica, outcomes: PendingOutcomes, tail: str, *, nameless_to: int | None = None
    ) -> None:
        """Note the state and make it durable in the background; see `DecidingStore.take_snapshot`.

        nameless_to: sequence up to which no name is needed; None: up to which all entries have expired.
        """
        if replica.log is not None:
            self.names.flush(replica.log)
        self.names.forget(self._expired_up_to)  # no snapshot from here on, and none on the disk, has older entries
        self._expired_up_to = replica.expired_up_to if nameless_to is None else nameless_to
        self.pages.take_snapshot(replica, outcomes, tail)

    def compact(self, report: Report) -> None:
        """Give back disk space of pages that left the index; see `DecidingStore.compact`. For a folder not in use."""
        self.pages.compact(report)
        report("names", 0, 0)
        names = Database(self.folder / NAMES_FILE)
        try:
            names.vacuum()
        finally:
            names.close()

    def close(self, timeout_s: float | None = None) -> None:
        """Finish a snapshot, for `timeout_s` at most, and release the folder; a second call does nothing.

        A folder that a thread still uses stays open, and locked, until the process ends.
        """
        if not self.pages.close(timeout_s):
            _LOG.warning(
                "%s is still in use as the process ends; the next start continues from its snapshot", self.folder
            )
            return
        try:
            self.names.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _folder_instance(path: Path) -> str:
    """Return the name in the file `path`; if there is none, create it: short host name and random digits."""
    try:
        name = path.read_text(encoding="utf-8").strip() if path.exists() else ""
        if _LEGAL_NAME.fullmatch(name):
            return name
        host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname().split(".")[0])[:_HOST_CHARS] or "host"
        name = f"{host}-{secrets.token_hex(4)}"
        _write_durably(path, name + "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise StateFullError(
            f"cannot store the name of this process in {path}: {error}; free some space, and make sure that it is a "
            "readable file"
        ) from error
    return name


def _write_durably(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)
