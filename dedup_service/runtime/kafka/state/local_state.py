"""All that a deciding step remembers beside its entries and names, as bytes: the snapshot's extra section.

MessagePack of the values themselves, by field name, with a version in front. A field that later versions add with a
default can be missing; anything else that does not fit makes the snapshot unreadable, and the log has it all.

The service's snapshot: a replica, its outcomes that wait and the end of the log it read, in one file.

The file format is the embedded state's (`runtime.embedded.snapshot`); what is not an entry stands in its extra
section. Taking
one costs the deciding thread an export in pieces, milliseconds; a thread of its own joins and writes them meanwhile.
When due: after `every` records and a quarter of the entries, so that writing them all again stays a constant share of
the work (the embedded state's rule). Invariant: a snapshot is a shortcut; writing one never stops the service.

What a service process keeps in its folder: its name, names of pages, and a snapshot of its replica.

    local = LocalState.open("state")

`DIR/instance` is the name that the process has in its groups and transactions, made once. All else in the folder can be
lost: the log restores it. One process at a time works on a folder; its lock goes when the process does.
"""

import logging
import os
import re
import secrets
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import xxhash

from dedup_service.core.decision.entry_arrays import HeldEntries
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.replica import Replica, ReplicaState
from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.core.log_records import Source
from dedup_service.runtime.embedded.database import StateFullError
from dedup_service.runtime.embedded.folder import FolderKind, StateLock, made_folder, refuse_other_kind
from dedup_service.runtime.embedded.snapshot import (
    SNAPSHOT_VERSION,
    SnapshotLabel,
    UnreadableSnapshotError,
    read_snapshot,
    sync_folder,
    write_snapshot,
)
from dedup_service.runtime.kafka.state.page_names import PageNameStore
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes

__all__ = [
    "DECIDING_STATE_VERSION",
    "NAMES_FILE",
    "SNAPSHOT_EVERY",
    "SNAPSHOT_FILE",
    "DecidingState",
    "LocalState",
    "ServiceSnapshots",
    "Stored",
    "UnreadableDecidingStateError",
    "decode_deciding_state",
    "encode_deciding_state",
    "outcomes_of",
    "tail_of",
]

DECIDING_STATE_VERSION = 1


class UnreadableDecidingStateError(Exception):
    """The bytes are no memory of a known version; the log has all they held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingState:
    """A replica's memory, and the outcomes that were not written yet, at its sequence.

    written: (topic, partition) → offset below which all outputs are known to be written.
    """

    replica: ReplicaState
    pending: tuple[tuple[Source, PendingOutcome], ...] = ()
    written: dict[tuple[str, int], int] = field(default_factory=dict)


class _Head(msgspec.Struct):
    version: int


class _Whole(msgspec.Struct):
    version: int
    memory: DecidingState


_encoder = msgspec.msgpack.Encoder()
_head = msgspec.msgpack.Decoder(_Head)
_whole = msgspec.msgpack.Decoder(_Whole)


def encode_deciding_state(replica: ReplicaState, outcomes: PendingOutcomes) -> bytes:
    """Return the bytes of a replica's memory and of the outcomes that wait."""
    memory = DecidingState(replica=replica, pending=tuple(outcomes.items()), written=dict(outcomes.written))
    return _encoder.encode(_Whole(DECIDING_STATE_VERSION, memory))


def decode_deciding_state(value: bytes) -> DecidingState:
    """Return the encoded state; UnreadableDecidingStateError for other bytes or a newer version."""
    try:
        version = _head.decode(value).version
        if version > DECIDING_STATE_VERSION:
            raise UnreadableDecidingStateError(
                f"its memory has version {version}, this twinsieve reads {DECIDING_STATE_VERSION}"
            )
        return _whole.decode(value).memory
    except (ValueError, msgspec.MsgspecError, TwinsieveError) as error:
        raise UnreadableDecidingStateError(f"its memory cannot be read: {error}") from error


def outcomes_of(memory: DecidingState, topic: str | None = None) -> PendingOutcomes:
    """Return the outcomes that waited, as they go on waiting; topic: see PendingOutcomes."""
    return PendingOutcomes(dict(memory.pending), memory.written, topic)


_LOG = logging.getLogger(__name__)

SNAPSHOT_EVERY = 100_000
"""Records; reading that many from the log takes seconds (`python -m benchmarks.restore`)."""
_GROWTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A snapshot that was read: what it is of, its entries, and the rest."""

    label: SnapshotLabel
    rows: EntryRows
    memory: DecidingState


def tail_of(value: bytes | None) -> str:
    """Return the digest by which a record of the log is known again: xxh3_64 of its value, in hexadecimal."""
    return xxhash.xxh3_64_hexdigest(value or b"")


class ServiceSnapshots:
    """The snapshot at `path`. every: records between two, at least."""

    def __init__(self, path: Path, every: int = SNAPSHOT_EVERY) -> None:
        self.path = path
        self._every = every
        self._taken_at = -1
        self._writing: threading.Thread | None = None

    def load(self) -> Stored | None:
        """Return the snapshot; None where there is none, or, with a warning, where it is no whole one."""
        if not self.path.exists():
            return None
        try:
            snapshot = read_snapshot(self.path)
            return Stored(snapshot.label, snapshot.rows, decode_deciding_state(snapshot.extra))
        except (UnreadableSnapshotError, UnreadableDecidingStateError) as error:
            self.ignore(str(error))
            return None

    def ignore(self, reason: str) -> None:
        """Say that the snapshot is not used, and why."""
        _LOG.warning("snapshot %s is not used: %s; the log rebuilds the state, which takes longer", self.path, reason)

    def begin(self, sequence: int) -> None:
        """Count from `sequence`, where a restore found the snapshot; -1 without one."""
        self._taken_at = sequence

    def due(self, sequence: int, entries: int) -> bool:
        """Whether the log has grown enough since the last one, and that one is written."""
        if sequence - self._taken_at < max(self._every, entries // _GROWTH):
            return False
        return self._writing is None or not self._writing.is_alive()

    def take(self, replica: Replica, outcomes: PendingOutcomes, tail: str) -> None:
        """Export the state and write it in the background, unless nothing came since the last. Never raises.

        tail: `tail_of` the record at the replica's sequence.
        """
        if replica.sequence == self._taken_at:
            return
        self.wait()
        self._taken_at = replica.sequence
        try:
            export = _Export.of(replica, outcomes, tail)
            self._writing = threading.Thread(target=self._write, args=(export,), name="snapshot")
            self._writing.start()
        except (MemoryError, RuntimeError) as error:  # no memory for the export, no thread
            self._writing = None
            self._missed(error)

    def wait(self) -> None:
        """Return once nothing is being written."""
        if self._writing is not None:
            self._writing.join()
            self._writing = None

    def _write(self, export: "_Export") -> None:
        try:
            write_snapshot(self.path, export.label(), export.entries, export.extra)
        except (OSError, MemoryError) as error:
            self._missed(error)

    def _missed(self, error: Exception) -> None:
        _LOG.warning("no snapshot written to %s: %s; the next start reads more of the log instead", self.path, error)


@dataclass(frozen=True, slots=True, eq=False)
class _Export:
    """A state at one moment; what takes long is done by whoever writes it."""

    memory: ReplicaState
    entries: HeldEntries
    extra: bytes
    tail: str

    @classmethod
    def of(cls, replica: Replica, outcomes: PendingOutcomes, tail: str) -> "_Export":
        memory = replica.state()
        return cls(memory, replica.held(), encode_deciding_state(memory, outcomes), tail)

    def label(self) -> SnapshotLabel:
        memory, sizes = self.memory, [(len(piece), len(piece.evidence)) for piece in self.entries]
        return SnapshotLabel(
            version=SNAPSHOT_VERSION,
            journal=memory.log or "",
            space_id="" if memory.policy is None else memory.policy.space_id,
            sequence=memory.sequence,
            tail=self.tail,
            entries=sum(entries for entries, _ in sizes),
            evidence_bytes=sum(evidence for _, evidence in sizes),
            extra_bytes=len(self.extra),
        )


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
        self.names = PageNameStore(folder / NAMES_FILE)
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

    def take_snapshot(self, replica: Replica, outcomes: PendingOutcomes, tail: str) -> None:
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
