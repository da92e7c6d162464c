"""Folder of a service process: its name, the page names, and a snapshot of its deciding state.

    local = LocalState.open("state")

`DIR/instance` holds the name of the process in its groups and transactions; it is created once. The rest of
the folder may be lost: it is restored from the log. One process at a time works on a folder; the lock is
released when the process exits.

A snapshot is one file: the entries of the replica, and as its extra section the rest of the deciding state
(`DecidingState`: the replica's state, the pending outcomes, the offsets known to be written), as MessagePack
with a version. The file format is that of the embedded state (`runtime.embedded.snapshot`). Decoding ignores
unknown fields and gives missing ones their default; bytes that do not fit otherwise make the snapshot
unreadable, and the log rebuilds the state. The private `_…Fields` structs fix the field names as they are
written; they do not follow renames of the classes that they store.

The deciding thread only exports the state in pieces, which takes milliseconds; another thread joins and
writes the pieces. A snapshot is due after `snapshot_every` records and a quarter of the entries, so that
writing all entries again remains a constant share of the work (the rule of the embedded state).

Invariant: a snapshot only shortens a restore. Failing to write one never stops the service.
"""

import logging
import os
import re
import secrets
import socket
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import xxhash

from dedup_service.core.decision.entry_rows import EntryPieces
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.replica import Replica, ReplicaState
from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.log_records import Source
from dedup_service.core.rules.rule import DistanceBound
from dedup_service.core.verdict import Action
from dedup_service.runtime.embedded.database import StateFullError
from dedup_service.runtime.embedded.folder import FolderKind, StateLock, made_folder, refuse_other_kind
from dedup_service.runtime.embedded.snapshot import (
    SNAPSHOT_VERSION,
    SnapshotLabel,
    UnreadableSnapshotError,
    decode_state,
    encode_state,
    read_snapshot,
    write_snapshot,
)
from dedup_service.runtime.kafka.state.page_names import PageNameStore
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.store.manifest import sync_directory

__all__ = [
    "DECIDING_STATE_VERSION",
    "NAMES_FILE",
    "SNAPSHOT_EVERY",
    "SNAPSHOT_FILE",
    "DecidingState",
    "LocalState",
    "ServiceSnapshots",
    "StoredSnapshot",
    "UnreadableDecidingStateError",
    "decode_deciding_state",
    "encode_deciding_state",
    "pending_outcomes_of",
    "tail_of",
]

_LOG = logging.getLogger(__name__)

NAMES_FILE = "names.sqlite"
SNAPSHOT_FILE = "snapshot"

DECIDING_STATE_VERSION = 3

SNAPSHOT_EVERY = 100_000
"""Records between two snapshots: reading them from the log takes seconds (`benchmarks/restore.py`)."""

_GROWTH = 4

_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
"""Names that Kafka accepts for a member: up to 249 characters, of which a prefix needs some."""

_HOST_CHARS = 40


class UnreadableDecidingStateError(Exception):
    """The bytes are not a deciding state of a known version. The log rebuilds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingState:
    """State of the deciding step without entries and page names, at the replica's sequence.

    pending: outcomes that are not yet written. written: (topic, partition) → offset below which all outputs
    are known to be written.
    """

    replica: ReplicaState
    pending: tuple[tuple[Source, PendingOutcome], ...] = ()
    written: dict[tuple[str, int], int] = field(default_factory=dict)


class _MatchRowFields(msgspec.Struct, kw_only=True, rename={"min_letters": "least_letters"}):
    name: str
    min_letters: int = 0
    jaccard: float
    containment: float | None = None
    title: float | None = None
    title_on_host: float | None = None
    sentences: float | None = None
    numbers: float | None = None
    missing_numbers: float | None = None
    swapped_numbers: float | None = None
    figures: float | None = None
    alphabetic: float | None = None
    unspaced: float | None = None
    length_ratio: float | None = None
    metadata: float | None = None
    combined: float | None = None
    words_distance: int | None = None
    body_distance: int | None = None


_GUARD_NAMES = {
    "max_pages": "most_pages",
    "max_hosts": "most_hosts",
    "max_titles": "most_titles",
    "surge_percent": "jump_percent",
}


class _GuardsFields(msgspec.Struct, frozen=True, rename=_GUARD_NAMES):
    max_pages: int
    max_hosts: int
    max_titles: int
    surge_percent: int


class _RuleFields(msgspec.Struct):
    conditions: tuple[DistanceBound, ...] = ()
    combined: Combined | None = None
    keys: bool = False
    verified: tuple[_MatchRowFields, ...] = ()
    guards: _GuardsFields = _GuardsFields(0, 0, 0, 0)


class _LayoutFields(msgspec.Struct):
    slots: int
    window: int


class _KeepFields(msgspec.Struct, frozen=True):
    max_pages: int | None = None
    max_age_minutes: int | None = None


class _PolicyFields(msgspec.Struct):
    rule: _RuleFields
    action: Action
    space_id: str
    layout: _LayoutFields
    keep: _KeepFields = _KeepFields()


class _CorrectionFields(msgspec.Struct, rename={"original": "of"}):
    url: str
    original: str
    duplicate: bool
    reason: str


class _ReplicaFields(msgspec.Struct):
    sequence: int = -1
    log: str | None = None
    policy: _PolicyFields | None = None
    policy_sequence: int = -1
    seen: dict[tuple[str, int], bytes] = {}
    counts: dict[str, int] = {}
    corrections: tuple[_CorrectionFields, ...] = ()


class _PendingFields(msgspec.Struct, gc=False, rename={"original_url": "of_url"}):
    sequence: int
    kind: str | None
    value: bytes
    key: bytes = b""
    original_url: str | None = None
    drop: bool = False
    end: int | None = None


class _StateFields(msgspec.Struct):
    replica: _ReplicaFields
    pending: tuple[tuple[Source, _PendingFields], ...] = ()
    written: dict[tuple[str, int], int] = {}
    decider: bytes = b""


class _VersionField(msgspec.Struct):
    version: int


class _SnapshotFields(msgspec.Struct, rename={"state": "memory"}):
    version: int
    state: _StateFields


_encoder = msgspec.msgpack.Encoder()
_version_decoder = msgspec.msgpack.Decoder(_VersionField)
_decoder = msgspec.msgpack.Decoder(_SnapshotFields)


def encode_deciding_state(replica: ReplicaState, outcomes: PendingOutcomes) -> bytes:
    """Return the replica's state and the pending outcomes as bytes."""
    fields = msgspec.convert(
        DecidingState(replica=replica, pending=tuple(outcomes.items()), written=dict(outcomes.written)),
        _StateFields,
        from_attributes=True,
    )
    fields.decider = encode_state(replica.decider)
    return _encoder.encode(_SnapshotFields(DECIDING_STATE_VERSION, fields))


def decode_deciding_state(value: bytes) -> DecidingState:
    """Return the encoded state; UnreadableDecidingStateError for other bytes or a newer version."""
    try:
        version = _version_decoder.decode(value).version
        if version != DECIDING_STATE_VERSION:
            raise UnreadableDecidingStateError(
                f"its state has version {version}, this twinsieve reads {DECIDING_STATE_VERSION}"
            )
        fields = _decoder.decode(value).state
        state = msgspec.convert(fields, DecidingState, from_attributes=True)
        return replace(state, replica=replace(state.replica, decider=decode_state(fields.decider)))
    except (ValueError, RecursionError, msgspec.MsgspecError, TwinsieveError, UnreadableSnapshotError) as error:
        raise UnreadableDecidingStateError(f"its state cannot be read: {error}") from error


def pending_outcomes_of(state: DecidingState, topic: str | None = None) -> PendingOutcomes:
    """Return the pending outcomes of a decoded state; topic: see PendingOutcomes."""
    return PendingOutcomes(dict(state.pending), state.written, topic)


@dataclass(frozen=True, slots=True, eq=False)
class StoredSnapshot:
    """A snapshot that was read: its label, its entries, and the rest of the deciding state."""

    label: SnapshotLabel
    rows: EntryPieces
    state: DecidingState


def tail_of(value: bytes | None) -> str:
    """Return a digest that identifies a record of the log: xxh3_64 of its value, in hexadecimal."""
    return xxhash.xxh3_64_hexdigest(value or b"")


class ServiceSnapshots:
    """The snapshot file at `path`. every: minimum number of records between two snapshots."""

    def __init__(self, path: Path, every: int = SNAPSHOT_EVERY) -> None:
        self.path = path
        self._every = every
        self._taken_at = -1
        self._writing: threading.Thread | None = None

    def load(self) -> StoredSnapshot | None:
        """Return the snapshot; None if there is no file, or, with a warning, if it is unreadable."""
        if not self.path.exists():
            return None
        try:
            snapshot = read_snapshot(self.path)
            return StoredSnapshot(snapshot.label, snapshot.rows, decode_deciding_state(snapshot.extra))
        except (UnreadableSnapshotError, UnreadableDecidingStateError) as error:
            self.ignore(str(error))
            return None

    def ignore(self, reason: str) -> None:
        """Warn that the snapshot is not used, and why."""
        _LOG.warning(
            "snapshot %s is not used: %s; the state is rebuilt from the log, which takes longer", self.path, reason
        )

    def begin(self, sequence: int) -> None:
        """Set the sequence of the restored snapshot, -1 without one: records are counted from there."""
        self._taken_at = sequence

    def due(self, sequence: int, entries: int) -> bool:
        """Whether the log has grown enough since the last snapshot, and that one has been written."""
        if sequence - self._taken_at < max(self._every, entries // _GROWTH):
            return False
        return self._writing is None or not self._writing.is_alive()

    def take(self, replica: Replica, outcomes: PendingOutcomes, tail: str) -> None:
        """Export the state and write it in the background, unless the sequence is unchanged. Never raises.

        tail: `tail_of` the record at the replica's sequence.
        """
        if replica.sequence == self._taken_at:
            return
        self.wait()
        self._taken_at = replica.sequence
        try:
            export = _Export.from_replica(replica, outcomes, tail)
            self._writing = threading.Thread(target=self._write, args=(export,), name="snapshot", daemon=True)
            self._writing.start()
        except (MemoryError, RuntimeError) as error:  # no memory for the export, or no thread
            self._writing = None
            self._warn(error)

    def wait(self, timeout_s: float | None = None) -> None:
        """Return once the snapshot under way, if any, is written, or after `timeout_s`: then the old one stays."""
        if self._writing is not None:
            self._writing.join(timeout_s)
            self._writing = None

    def _write(self, export: "_Export") -> None:
        try:
            write_snapshot(self.path, export.label(), export.entries, export.extra)
        except (OSError, MemoryError) as error:
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        _LOG.warning("no snapshot written to %s: %s; the next start reads more of the log instead", self.path, error)


@dataclass(frozen=True, slots=True, eq=False)
class _Export:
    """A state at one moment. The writing thread does what takes long."""

    state: ReplicaState
    entries: HeldEntries
    extra: bytes
    tail: str

    @classmethod
    def from_replica(cls, replica: Replica, outcomes: PendingOutcomes, tail: str) -> "_Export":
        state = replica.state()
        return cls(state, replica.held(), encode_deciding_state(state, outcomes), tail)

    def label(self) -> SnapshotLabel:
        state, sizes = self.state, [(len(piece), len(piece.evidence)) for piece in self.entries]
        return SnapshotLabel(
            version=SNAPSHOT_VERSION,
            journal=state.log or "",
            space_id="" if state.policy is None else state.policy.space_id,
            sequence=state.sequence,
            tail=self.tail,
            entries=sum(entries for entries, _ in sizes),
            evidence_bytes=sum(evidence for _, evidence in sizes),
            extra_bytes=len(self.extra),
        )


class LocalState:
    """A folder in use, returned by `open`. instance: the name of this process."""

    def __init__(self, folder: Path, instance: str, lock: StateLock, snapshot_every: int) -> None:
        self.folder = folder
        self.instance = instance
        self.names = PageNameStore(folder / NAMES_FILE)
        self.snapshots = ServiceSnapshots(folder / SNAPSHOT_FILE, snapshot_every)
        self._expired_up_to = -1
        self._lock = lock

    @classmethod
    def open(cls, folder: str | Path, instance: str | None = None, *, snapshot_every: int = SNAPSHOT_EVERY) -> Self:
        """Lock `folder` and open it; create it if it is missing.

        instance: a name to use instead of the folder's; no two processes may share one. snapshot_every:
        minimum number of records between two snapshots.
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
            return cls(folder, instance or own_name, lock, snapshot_every)
        except BaseException:
            lock.release()
            raise

    def snapshot_due(self, sequence: int, entries: int) -> bool:
        """Whether to take a snapshot at `sequence`, with `entries` in the index."""
        return self.snapshots.due(sequence, entries)

    def take_snapshot(self, replica: Replica, outcomes: PendingOutcomes, tail: str) -> None:
        """Export the state and write it in the background; see `ServiceSnapshots.take`. Never raises."""
        if replica.log is not None:
            self.names.flush(replica.log)
        self.names.forget(self._expired_up_to)  # no snapshot from here on, and none on the disk, has older entries
        self._expired_up_to = replica.expired_up_to
        self.snapshots.take(replica, outcomes, tail)

    def close(self, timeout_s: float | None = None) -> None:
        """Finish writing, for `timeout_s` at most, and release the folder; a second call does nothing."""
        try:
            self.snapshots.wait(timeout_s)
            self.names.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
