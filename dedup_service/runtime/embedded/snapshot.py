"""The live entries at one sequence, and the guard state, in one file that is either complete or not there.

The embedded state, whose log is its journal, and the Kafka service both write such files.

Layout: 8 bytes of magic, uint32 size of the header, the header as JSON, rows, evidence, extra, then xxh3_128 of
everything before it. The file is written under a temporary name, fsynced and renamed over the old one, and the folder
is fsynced: a crash leaves the old snapshot or the new one. `tail` is a digest of the log's record at `sequence`, so
that a snapshot of a copy of this log that continued differently does not fit. `extra` is other state of the writer, in
its own format; version 1 had none.

The embedded state stores its guard state as `extra`: MessagePack of the fields, with a version in front. After the
snapshot it is continued from the journal, which has what each match added (`detail`), so no pages are compared again:
one or two microseconds for each row. A guard state that cannot be read is rebuilt from the log.

Invariant: a snapshot is a shortcut. If it cannot be read or does not fit, the log alone rebuilds the same entries.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import numpy as np
import xxhash

from dedup_service.core.decision.duplicate_clusters import Copy
from dedup_service.core.decision.entry_rows import ROW, EntryRows
from dedup_service.core.decision.guard_tracker import GuardState, GuardTracker
from dedup_service.runtime.embedded.journal_reader import JournalReader

__all__ = [
    "SNAPSHOT_VERSION",
    "Snapshot",
    "SnapshotLabel",
    "UnreadableSnapshotError",
    "encode_guard_state",
    "guard_state_of_log",
    "read_label",
    "read_snapshot",
    "sync_folder",
    "write_snapshot",
]

SNAPSHOT_VERSION = 2
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
    """A label, the entries that it describes, and other state of the writer."""

    label: SnapshotLabel
    rows: EntryRows
    extra: bytes = b""


def write_snapshot(path: Path, label: SnapshotLabel, pieces: Iterable[EntryRows], extra: bytes = b"") -> None:
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
    sync_folder(path.parent)


def _parts(label: SnapshotLabel, pieces: Iterable[EntryRows], extra: bytes) -> Iterator[bytes | memoryview]:
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
        content = np.fromfile(path, np.uint8)
    except OSError as error:
        raise UnreadableSnapshotError(str(error)) from error
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if xxhash.xxh3_128_digest(body.data) != digest.tobytes():
        raise UnreadableSnapshotError("its checksum does not match its content")
    label, start = _label(body[: _LARGEST_HEADER_BYTES + 12].tobytes())
    evidence = start + label.entries * ROW.itemsize
    extra = evidence + label.evidence_bytes
    if len(body) != extra + label.extra_bytes:
        raise UnreadableSnapshotError(f"it holds {len(body) - start} bytes of entries, its header says otherwise")
    rows = EntryRows(body[start:evidence].view(ROW), body[evidence:extra].tobytes())
    return Snapshot(label, rows, body[extra:].tobytes())


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
        if values["version"] > SNAPSHOT_VERSION:
            raise UnreadableSnapshotError(
                f"it has version {values['version']}, this twinsieve reads {SNAPSHOT_VERSION}"
            )
        return SnapshotLabel(**values), end
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableSnapshotError(f"its header cannot be read: {error}") from error


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_GUARD_STATE_VERSION = 2


class _VersionedGuardState(msgspec.Struct):
    version: int
    watch: GuardState  # the name in the file


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_VersionedGuardState)


def encode_guard_state(tracker: GuardTracker | None) -> bytes:
    """Return the state of `tracker` as bytes for a snapshot; b"" for None."""
    return b"" if tracker is None else _encoder.encode(_VersionedGuardState(_GUARD_STATE_VERSION, tracker.state()))


def guard_state_of_log(log: JournalReader, sequence: int, extra: bytes) -> GuardTracker | None:
    """Return the guard state at the end of `log`; None if the rule in force has no guards.

    extra: the guard state in a snapshot at `sequence`; b"" without a snapshot.
    """
    since = log.guarded_since()
    if since is None:
        return None
    state = _decoded(extra) if sequence >= since else None
    tracker = GuardTracker(state)
    for kind, removes, detail in log.followed_after(since if state is None else sequence):
        if kind == "page":
            tracker.follow(None if detail is None else Copy.unpack(detail))
        if removes is not None:
            tracker.forget(removes)
    return tracker


def _decoded(extra: bytes) -> GuardState | None:
    try:
        decoded = _decoder.decode(extra)
    except msgspec.MsgspecError:
        return None
    return decoded.watch if decoded.version == _GUARD_STATE_VERSION else None
