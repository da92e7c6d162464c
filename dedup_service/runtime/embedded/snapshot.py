"""The live entries and the state of a decider at one sequence, in one file that is either complete or not there.

The embedded state, whose log is its journal, and the Kafka service both write such files.

Layout: 8 bytes of magic, uint32 size of the header, the header as JSON, rows, evidence, extra, then xxh3_128 of
everything before it. The file is written under a temporary name, fsynced and renamed over the old one, and the folder
is fsynced: a crash leaves the old snapshot or the new one. `tail` is a digest of the log's record at `sequence`, so
that a snapshot of a copy of this log that continued differently does not fit. `extra` is other state of the writer, in
its own format; version 1 had none.

Entries are written and read in pieces, so that neither takes the memory of all entries again.

The embedded state stores the rest of its decider as `extra` (`encode_state`): MessagePack of the fields, with a version
in front. After the snapshot the decider is continued from the journal, without comparing pages again.

Invariant: a snapshot is a shortcut. If it cannot be read or does not fit, the log alone rebuilds the same entries.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import xxhash

from dedup_service.core.decision.candidates import RemovedEntry
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.entry_rows import ROW, EntryPieces, EntryRows
from dedup_service.core.decision.entry_store import CHUNK_ROWS
from dedup_service.core.decision.expiry import ExpiryState
from dedup_service.core.decision.guard_tracker import GuardState
from dedup_service.runtime.store.manifest import sync_directory

__all__ = [
    "SNAPSHOT_VERSION",
    "Snapshot",
    "SnapshotLabel",
    "UnreadableSnapshotError",
    "decode_state",
    "encode_state",
    "read_label",
    "read_snapshot",
    "write_snapshot",
]

SNAPSHOT_VERSION = 3
_MAGIC = b"twinsnap"
_DIGEST_BYTES = 16
_LARGEST_HEADER_BYTES = 1 << 16


class UnreadableSnapshotError(Exception):
    """The file is not a complete snapshot of a known version. Rebuild the entries from the log."""


@dataclass(frozen=True, slots=True)
class SnapshotLabel:
    """What a snapshot contains. journal: identity of the log; sequence: last record applied; tail: its digest."""

    version: int
    journal: str
    space_id: str
    sequence: int
    tail: str
    entries: int
    evidence_bytes: int
    extra_bytes: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A label, the entries that it describes, in pieces of 65,536, and other state of the writer."""

    label: SnapshotLabel
    rows: tuple[EntryRows, ...] = ()
    extra: bytes = b""


def write_snapshot(path: Path, label: SnapshotLabel, pieces: EntryPieces, extra: bytes = b"") -> None:
    """Write a snapshot to `path` atomically; OSError leaves the old one in place.

    pieces: the entries that `label` describes, in order. They are iterated twice, so that one piece at a time is in
    memory.
    """
    temporary = path.with_suffix(".tmp")
    digest = xxhash.xxh3_128()
    try:
        with temporary.open("wb") as file:
            for part in _parts(label, pieces, extra):
                digest.update(part)
                file.write(part)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _parts(label: SnapshotLabel, pieces: EntryPieces, extra: bytes) -> Iterator[bytes | memoryview]:
    header = json.dumps(asdict(label)).encode()
    yield from (_MAGIC, len(header).to_bytes(4, "little"), header)
    for piece in pieces:
        yield np.ascontiguousarray(piece.rows).view(np.uint8).data
    for piece in pieces:
        yield piece.evidence
    yield extra


def read_snapshot(path: Path) -> Snapshot:
    """Return the snapshot at `path`; UnreadableSnapshotError if it is truncated, altered or too new."""
    try:
        with path.open("rb") as file:
            return _read(file)
    except OSError as error:
        raise UnreadableSnapshotError(str(error)) from error


def _read(file: BinaryIO) -> Snapshot:
    head = file.read(_LARGEST_HEADER_BYTES + 12)
    label, start = _label(head)
    sizes = (label.entries * ROW.itemsize, label.evidence_bytes, label.extra_bytes)
    body = os.fstat(file.fileno()).st_size - start - _DIGEST_BYTES
    if min(sizes) < 0 or sum(sizes) != body:
        raise UnreadableSnapshotError(f"it holds {body} bytes of entries, its header says otherwise")
    digest = xxhash.xxh3_128(head[:start])
    file.seek(start)

    def read(size: int) -> bytes:
        content = file.read(size)
        digest.update(content)
        return content

    counts = [min(CHUNK_ROWS, label.entries - first) for first in range(0, label.entries, CHUNK_ROWS)]
    rows = [np.frombuffer(read(count * ROW.itemsize), ROW) for count in counts]
    evidence_bytes = [int(piece["evidence_bytes"].sum(dtype=np.int64)) for piece in rows]
    if sum(evidence_bytes) != label.evidence_bytes:
        raise UnreadableSnapshotError("its rows have another size of evidence than its header says")
    pieces = tuple(EntryRows(piece, read(size)) for piece, size in zip(rows, evidence_bytes, strict=True))
    extra = read(label.extra_bytes)
    if digest.digest() != file.read(_DIGEST_BYTES):
        raise UnreadableSnapshotError("its checksum does not match its content")
    return Snapshot(label, pieces, extra)


def read_label(path: Path) -> SnapshotLabel | None:
    """Return the label of the snapshot at `path`, without checking the rest; None if there is no readable one."""
    try:
        with path.open("rb") as file:
            return _label(file.read(_LARGEST_HEADER_BYTES + 12))[0]
    except (OSError, UnreadableSnapshotError):
        return None


def _label(head: bytes) -> tuple[SnapshotLabel, int]:
    """Return the label at the start of a file, and the offset of the rows."""
    end = 12 + int.from_bytes(head[8:12], "little")
    if head[:8] != _MAGIC or end > _LARGEST_HEADER_BYTES:
        raise UnreadableSnapshotError("it does not begin as a snapshot does")
    try:
        values = json.loads(head[12:end])
        if values["version"] != SNAPSHOT_VERSION:
            raise UnreadableSnapshotError(
                f"it has version {values['version']}, this twinsieve reads {SNAPSHOT_VERSION}"
            )
        return SnapshotLabel(**values), end
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableSnapshotError(f"its header cannot be read: {error}") from error


_STATE_VERSION = 2


class _ExpiryFields(msgspec.Struct):
    """See `ExpiryState`."""

    up_to: int = -1
    times: bytes = b""
    by_count: int = 0
    by_age: int = 0


class _StateFields(msgspec.Struct):
    """The names in the file; they do not follow renames.

    removed: ROW[n]; removed_at: their ordinals; removed_rows: their rows in the store. young: ROW[m], not settled.
    """

    version: int
    ordinal: int
    removed_at: list[int]
    removed_rows: list[int]
    removed: bytes
    removed_evidence: bytes
    young: bytes
    young_evidence: bytes
    host_text: bytes
    guards: GuardState | None
    expiry: _ExpiryFields = msgspec.field(default_factory=_ExpiryFields)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_StateFields)


def encode_state(state: DeciderState) -> bytes:
    """Return the state of a decider as bytes for a snapshot."""
    removed, young = EntryRows.from_entries([gone.entry for gone in state.removed]), EntryRows.from_entries(state.young)
    return _encoder.encode(
        _StateFields(
            version=_STATE_VERSION,
            ordinal=state.ordinal,
            removed_at=[gone.ordinal for gone in state.removed],
            removed_rows=[gone.entry.row for gone in state.removed],
            removed=removed.rows.tobytes(),
            removed_evidence=removed.evidence,
            young=young.rows.tobytes(),
            young_evidence=young.evidence,
            host_text=state.host_text,
            guards=state.guards,
            expiry=msgspec.convert(state.expiry, _ExpiryFields, from_attributes=True),
        )
    )


def decode_state(value: bytes) -> DeciderState:
    """Return the encoded state; UnreadableSnapshotError for other bytes or another version."""
    try:
        fields = _decoder.decode(value)
        if fields.version != _STATE_VERSION:
            raise UnreadableSnapshotError(
                f"its state has version {fields.version}, this twinsieve reads {_STATE_VERSION}"
            )
        removed = EntryRows(np.frombuffer(fields.removed, ROW), fields.removed_evidence).entries()
        of_removed = zip(fields.removed_at, fields.removed_rows, removed, strict=True)
        return DeciderState(
            ordinal=fields.ordinal,
            young=tuple(EntryRows(np.frombuffer(fields.young, ROW), fields.young_evidence).entries()),
            removed=tuple(RemovedEntry(ordinal, replace(entry, row=row)) for ordinal, row, entry in of_removed),
            host_text=fields.host_text,
            guards=fields.guards,
            expiry=msgspec.convert(fields.expiry, ExpiryState, from_attributes=True),
        )
    except (ValueError, RecursionError) as error:  # of msgspec, numpy and zip
        raise UnreadableSnapshotError(f"its state cannot be read: {error}") from error
