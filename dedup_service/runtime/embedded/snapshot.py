"""The live entries at one sequence, in one file that is either whole or not there.

Layout: 8 bytes of magic, uint32 size of the header, the header as JSON, rows, evidence, extra, then xxh3_128 of
all before it. Written to a temporary file, fsynced, renamed over the old one, and the folder fsynced: a crash
leaves the old snapshot or the new one. `tail` digests the log's record at `sequence`: a snapshot of this log
as it went on elsewhere (a copy brought back) does not fit any more. `extra` is what else its writer has to
remember, in bytes of its own; version 1 had none.

Both kinds of state write it: the embedded one, whose log is its journal, and the Kafka service.

Invariant: a snapshot is a shortcut. One that cannot be read, or does not fit, is None with the reason, and
the log alone rebuilds the same entries.

What the guards have seen, from a journal: the snapshot's part of it, and the pages after that.

The journal wrote down what each page that matched added (`detail`), so nothing is compared again: a fold over the
rows since guards are in force, a microsecond or two each. The snapshot's part is MessagePack of the memory's fields,
a version in front; one that cannot be read is made again from the log.
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
    """The file is no whole snapshot of a known version; the log has all it held."""


@dataclass(frozen=True, slots=True)
class SnapshotLabel:
    """What a snapshot is of. journal: identity of the log; sequence: the last folded in; tail: its digest."""

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
    """A label, the entries it is on, and what else was to be remembered."""

    label: SnapshotLabel
    rows: EntryRows
    extra: bytes = b""


def write_snapshot(path: Path, label: SnapshotLabel, pieces: Iterable[EntryRows], extra: bytes = b"") -> None:
    """Put a snapshot at `path` in one step; OSError leaves the old one in place.

    pieces: the entries that `label` is on, in order. They are walked twice, so that no more than one is in memory.
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
    """Return the snapshot at `path`; UnreadableSnapshotError where it is cut short, altered or too new."""
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
    """Return what the snapshot at `path` says it is of, the rest unchecked; None where there is none."""
    try:
        with path.open("rb") as file:
            return _label(file.read(_LARGEST_HEADER_BYTES + 12))[0]
    except (OSError, UnreadableSnapshotError):
        return None


def _label(head: bytes) -> tuple[SnapshotLabel, int]:
    """Return the label at the start of a file, and where the rows begin."""
    end = 12 + int.from_bytes(head[8:12], "little")
    if head[:8] != _MAGIC or end > _LARGEST_HEADER_BYTES:
        raise UnreadableSnapshotError("it does not begin like a snapshot")
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
    """Make what was renamed in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_VERSION = 1


class _Whole(msgspec.Struct):
    version: int
    watch: GuardState


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Whole)


def encode_guard_state(watch: GuardTracker | None) -> bytes:
    """Return the bytes of a watch for a snapshot; b"" for none."""
    return b"" if watch is None else _encoder.encode(_Whole(_VERSION, watch.state()))


def guard_state_of_log(log: JournalReader, sequence: int, extra: bytes) -> GuardTracker | None:
    """Return what the guards have seen at the end of `log`; None where no rule with guards is in force.

    extra: what a snapshot at `sequence` has of it, b"" without one.
    """
    since = log.guarded_since()
    if since is None:
        return None
    memory = _decoded(extra) if sequence >= since else None
    watch = GuardTracker(memory)
    for kind, removes, detail in log.followed_after(since if memory is None else sequence):
        if kind == "page":
            watch.follow(None if detail is None else Copy.unpack(detail))
        if removes is not None:
            watch.forget(removes)
    return watch


def _decoded(extra: bytes) -> GuardState | None:
    try:
        whole = _decoder.decode(extra)
    except msgspec.MsgspecError:
        return None
    return whole.watch if whole.version == _VERSION else None
