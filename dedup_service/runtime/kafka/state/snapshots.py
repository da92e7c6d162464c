"""The service's snapshot: a replica, its outcomes that wait and the end of the log it read, in one file.

The file format is the embedded state's (`runtime.snapshot`); what is not an entry stands in its extra section. Taking
one costs the deciding thread an export in pieces, milliseconds; a thread of its own joins and writes them meanwhile.
When due: after `every` records and a quarter of the entries, so that writing them all again stays a constant share of
the work (the embedded state's rule). Invariant: a snapshot is a shortcut; writing one never stops the service.
"""

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

import xxhash

from dedup_service.core.entry_arrays import HeldEntries
from dedup_service.core.entry_rows import EntryRows
from dedup_service.core.replica import Replica, ReplicaMemory
from dedup_service.runtime.kafka.state.memory import Memory, UnreadableMemoryError, decode_memory, encode_memory
from dedup_service.runtime.kafka.steps.outcomes import Outcomes
from dedup_service.runtime.snapshot import (
    SNAPSHOT_VERSION,
    SnapshotLabel,
    UnreadableSnapshotError,
    read_snapshot,
    write_snapshot,
)

__all__ = ["SNAPSHOT_EVERY", "ServiceSnapshots", "Stored", "tail_of"]

_LOG = logging.getLogger(__name__)

SNAPSHOT_EVERY = 100_000
"""Records; reading that many from the log takes seconds (`python -m benchmarks.restore`)."""
_GROWTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A snapshot that was read: what it is of, its entries, and the rest."""

    label: SnapshotLabel
    rows: EntryRows
    memory: Memory


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
            return Stored(snapshot.label, snapshot.rows, decode_memory(snapshot.extra))
        except (UnreadableSnapshotError, UnreadableMemoryError) as error:
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

    def take(self, replica: Replica, outcomes: Outcomes, tail: str) -> None:
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

    memory: ReplicaMemory
    entries: HeldEntries
    extra: bytes
    tail: str

    @classmethod
    def of(cls, replica: Replica, outcomes: Outcomes, tail: str) -> "_Export":
        memory = replica.memory()
        return cls(memory, replica.held(), encode_memory(memory, outcomes), tail)

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
