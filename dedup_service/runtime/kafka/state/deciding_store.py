"""The kept pages of a service on disk, and its snapshots: commits of that store with the rest of the deciding state.

    stored = pages.stored()                          # the last snapshot, if it can be used
    pages.begin(stored)
    replica = Replica(names, state=..., entries=pages.entries)
    ...                                              # after each batch of records, on the deciding thread:
    pages.note_applied(records)
    pages.step()
    if pages.due:
        pages.take_snapshot(replica, outcomes, tail)

The folder is a `StoredEntries`. The deciding thread only notes what a snapshot has, which takes milliseconds; another
thread makes it durable. A snapshot costs what changed since the one before, so one is due after a number of records.

The log has everything, so a folder that cannot be used is emptied and filled again from the log: one that is damaged,
or whose log continued differently. It is emptied only once the log gives its first
policy, so a log that cannot be read deletes nothing. A service that finds damage while it runs condemns the folder and
ends; its next start builds it again.

Invariants: what a kill leaves is the last finished snapshot. After a failure of the disk the store is not used again:
the next `step` raises, and the service ends.
"""

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import xxhash

from dedup_service._native import StoreLabel, read_commit
from dedup_service.core.decision.entry_store import EntryStore
from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import Policy
from dedup_service.runtime.freed_memory import (
    keep_little_freed_memory,
    leave_out_of_collections,
    return_freed_memory,
)
from dedup_service.runtime.kafka.state.deciding_state import (
    DecidingState,
    decode_deciding_state,
    encode_deciding_state,
)
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.kafka.state.shard_state import ShardReplica
from dedup_service.runtime.store.decider_state import UnreadableStateError
from dedup_service.runtime.store.errors import (
    ForeignStoreError,
    StoreDamagedError,
    StoreFullError,
    StoreNumbersUsedError,
    translated_os_errors,
)
from dedup_service.runtime.store.page_files import MANIFEST, StoreSizes, has_other_files
from dedup_service.runtime.store.stored_entries import Finish, Report, StoredEntries

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

SNAPSHOT_EVERY = 100_000
"""Records between two snapshots: reading them from the log takes seconds (`benchmarks/restore.py`)."""

UNUSABLE = (StoreDamagedError, StoreNumbersUsedError)
"""Errors of a store that is built again from the log."""

_CONDEMNED = "manifest.damaged"


class FirstPages(Protocol):
    """What a log with bases begins with: those of all bases (`MountedBases`), or those of a shard."""

    def make(self, pages: Path, label: StoreLabel, policy: Policy) -> None:
        """Make the kept pages before the first record of the log, in the folder `pages`, which is not there."""
        ...

    def adopt(self, pages: Path) -> None:
        """Let kept pages that `make` has made before be usable where the bases are now."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class StoredSnapshot:
    """What a snapshot has beside the settled entries.

    log: identity of its log; tail: of its last record.
    """

    log: str
    sequence: int
    tail: str
    state: DecidingState
    sizes: StoreSizes | None = None


def tail_of(value: bytes | None) -> str:
    """Return a digest that identifies a record of the log: xxh3_64 of its value, in hexadecimal."""
    return xxhash.xxh3_64_hexdigest(value or b"")


class DecidingStore:
    """The kept pages in `folder`. every: minimum number of records between two snapshots.

    The deciding thread alone calls this; `close` may come from another one.
    """

    def __init__(self, folder: Path, every: int = SNAPSHOT_EVERY) -> None:
        self.folder = folder
        self._every = every
        self._bases: FirstPages | None = None
        self.report: Report = lambda *_: None
        """Is told how far `entries` is."""
        self._stored: StoredSnapshot | None = None
        self._entries: StoredEntries | None = None
        self._taken_at = -1
        self._applied = 0
        self._writing: threading.Thread | None = None
        self._failure: StoreFullError | None = None
        self._deciding = threading.Lock()

    def stored(self) -> StoredSnapshot | None:
        """Return the last snapshot; None if there is none, or, with a warning, if it cannot be read."""
        self._end()
        if (self.folder / _CONDEMNED).exists():
            self.ignore("a file of it is damaged")
        elif (self.folder / MANIFEST).exists():
            return self._read()
        elif has_other_files(self.folder):
            self.ignore(f"it has no {MANIFEST}")
        return None

    def _read(self) -> StoredSnapshot | None:
        try:
            found = read_commit(self.folder)
            if found is None or not found[1] or found[0].sequence < 0:  # a kill before the first snapshot
                return None
            manifest, extra = found
            state = decode_deciding_state(extra)
        except (StoreDamagedError, ForeignStoreError, UnreadableStateError) as error:
            self.ignore(str(error))
            return None
        return StoredSnapshot(manifest.label.log, manifest.sequence, manifest.tail, state, StoreSizes.of(manifest))

    def ignore(self, reason: str) -> None:
        """Warn that the folder is not used, and why."""
        _LOG.warning(
            "snapshot %s is not used: %s; the folder is emptied, and the state built again from the log, which takes "
            "longer",
            self.folder,
            reason,
        )

    def go_on(self, stored: StoredSnapshot | None, restored: Callable[[StoredSnapshot | None], T]) -> T:
        """Return what is restored from a snapshot; from the log alone, None, if its kept pages cannot be used."""
        try:
            return restored(stored)
        except UNUSABLE as error:
            if stored is None:
                raise
            self.ignore(str(error))
            return restored(None)

    def begin(self, stored: StoredSnapshot | None, *, bases: FirstPages | None = None) -> None:
        """Go on from a snapshot that `stored` returned, or, with None, from the beginning of the log.

        bases: of the log, whose kept pages it begins with; None: without any.
        """
        self._end()
        self._stored, self._bases = stored, bases
        self._taken_at, self._applied = -1 if stored is None else stored.sequence, 0

    def entries(self, log: str, policy: Policy) -> EntryStore:
        """Open the entries of a log with a policy, for its replica.

        Without a snapshot to go on from they are those of the log's bases, or none. Raises StoreDamagedError if a file
        is altered, and StoreFullError.
        """
        keep_little_freed_memory()
        leave_out_of_collections()
        stored, label = self._stored, StoreLabel(log, policy.space_id)
        if stored is None:
            self._empty()
            if self._bases is not None:
                self._bases.make(self.folder, label, policy)
        elif self._bases is not None:
            self._bases.adopt(self.folder)
        self._entries = StoredEntries.open(
            self.folder,
            label,
            policy.rule,
            policy.layout,
            report=self.report,
        )
        self._stored = None
        return_freed_memory()
        return self._entries

    def step(self) -> None:
        """Do a little of what has to be done from time to time; call it after each batch of records.

        StoreFullError if the disk did not take something, the last snapshot included.
        """
        if self._failure is not None:
            raise self._failure
        if self._entries is not None and not self.is_writing():  # what waits for the disk is for that thread
            self._entries.step()

    def note_applied(self, records: int) -> None:
        """Count records of the log that were applied."""
        self._applied += records

    @property
    def due(self) -> bool:
        """Whether enough records were applied since the last snapshot, and that one is durable."""
        return self._applied >= self._every and not self.is_writing()

    def take_snapshot(self, replica: Replica | ShardReplica, outcomes: PendingOutcomes, tail: str) -> None:
        """Note the state and make it durable in the background, unless the sequence is unchanged.

        A disk that does not take it is a warning; the next `step` raises. tail: `tail_of` the record at the replica's
        sequence.
        """
        sizes = replica.sizes()
        if self._entries is None or self._failure is not None or replica.sequence == self._taken_at or sizes is None:
            return
        self.wait()
        self._taken_at, self._applied = replica.sequence, 0
        try:
            encoded = partial(encode_deciding_state, replica.state(), outcomes.copy())
            finish = self._entries.begin_commit(replica.sequence, tail, encoded, sizes)
        except StoreFullError as error:
            self._fail(error)
            return
        self._writing = threading.Thread(target=self._finish, args=(finish,), name="snapshot", daemon=True)
        self._writing.start()

    def compact(self, report: Report) -> None:
        """Give back the space of all dead rows, as of the last snapshot, which is all that is read.

        StateError if there is none; StoreDamagedError, StoreFullError.
        """
        stored = self.stored()
        policy = None if stored is None else stored.state.replica.policy
        if stored is None or policy is None:
            raise StateError(f"{self.folder} has no snapshot: there is nothing to compact before the first one")
        self.begin(stored)
        self.entries(stored.log, policy)
        entries = self._entries
        assert entries is not None
        extra, sizes = entries.take_extra(), stored.sizes or StoreSizes({}, len(entries), 0, 0)
        entries.compact(lambda: entries.begin_commit(stored.sequence, stored.tail, extra, sizes), report)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the snapshot under way, if any, for `timeout_s` at most; return whether none is left."""
        if self._writing is not None:
            self._writing.join(timeout_s)
        return not self.is_writing()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Decide with the entries: inside, `close` from another thread leaves them open.

        Damage that is found inside condemns the folder, so that the next start builds it again.
        """
        with self._deciding:
            try:
                yield
            except UNUSABLE as error:
                self._condemn()
                raise type(error)(f"{error}; start again: the state is then built again from the log") from error

    def close(self, timeout_s: float | None = None) -> bool:
        """Finish a snapshot, for `timeout_s` at most, and close all files; False if a thread still uses them."""
        if not self.wait(timeout_s) or not self._deciding.acquire(blocking=False):
            return False
        try:
            self._end()
        finally:
            self._deciding.release()
        return True

    def is_writing(self) -> bool:
        """Whether a snapshot is under way, which takes memory for a while."""
        return self._writing is not None and self._writing.is_alive()

    def _finish(self, finish: Finish) -> None:
        try:
            finish()
            return_freed_memory()
        except StoreFullError as error:
            self._fail(error)

    def _fail(self, error: StoreFullError) -> None:
        self._failure = error
        _LOG.warning("no snapshot in %s: %s; a start reads more of the log instead", self.folder, error)

    def _condemn(self) -> None:
        """Let no start use the folder: without a manifest it is no store. A rename needs no space."""
        self.wait()
        with suppress(OSError):
            (self.folder / MANIFEST).replace(self.folder / _CONDEMNED)

    def _end(self) -> None:
        """Close the entries. What is in no snapshot is lost."""
        self.wait()
        entries, self._entries, self._failure = self._entries, None, None
        if entries is not None:
            with suppress(StoreFullError):  # of a snapshot, of which a warning told
                entries.close()

    def _empty(self) -> None:
        with translated_os_errors(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)
