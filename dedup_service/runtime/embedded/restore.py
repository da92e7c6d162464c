"""Restore the live entries from a state folder: from a usable snapshot and the log after it, or from the whole log.

Other state is stored in the `extra` of the snapshot, as bytes that only its owner reads.

A snapshot is taken when the log has grown by `every` records since the last one, and by a quarter of the entries, so
that rewriting all entries costs a constant share of the work, however large the state is.
Invariant: the entries equal a fold over the whole log. A snapshot that does not fit is ignored with a warning; entries
whose number differs from the journal's own count are never used.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.runtime.embedded.database import StateDamagedError
from dedup_service.runtime.embedded.journal import Journal
from dedup_service.runtime.embedded.snapshot import (
    SNAPSHOT_VERSION,
    Snapshot,
    SnapshotLabel,
    UnreadableSnapshotError,
    read_snapshot,
    write_snapshot,
)

__all__ = ["Restored", "Snapshots"]

_LOG = logging.getLogger(__name__)
_GROWTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """rows: entries at the end of the log. sequence, extra: of the snapshot that was used; 0, b"" without one."""

    rows: EntryRows
    sequence: int = 0
    extra: bytes = b""


class Snapshots:
    """The snapshot file of `journal`. path: None keeps no snapshot. every: minimum records between snapshots."""

    def __init__(self, path: Path | None, journal: Journal, every: int) -> None:
        self._path = path
        self._journal = journal
        self._every = every
        self._taken_at = 0

    def restore(self) -> Restored:
        """Return the state at the end of the log; StateDamagedError if the log contradicts itself."""
        snapshot = self._usable()
        if snapshot is not None:
            rows = self._followed_by_log(snapshot.rows, snapshot.label.sequence)
            if len(rows) == self._journal.entries:
                self._taken_at = snapshot.label.sequence
                return Restored(rows, snapshot.label.sequence, snapshot.extra)
            self._ignore(
                f"with the log after it there are {len(rows)} entries, the journal counts {self._journal.entries}"
            )
        rows = self._followed_by_log(EntryRows.none(), 0)
        if len(rows) != self._journal.entries:
            raise StateDamagedError(
                f"the log gives {len(rows)} entries, its own count says {self._journal.entries}: "
                "restore the state folder from a copy, or start a new one"
            )
        return Restored(rows)

    def take_if_due(self, extra: Callable[[], bytes]) -> None:
        """Take a snapshot if the log has grown enough since the last one."""
        if self._journal.sequence - self._taken_at >= max(self._every, self._journal.entries // _GROWTH):
            self.take(extra)

    def take(self, extra: Callable[[], bytes]) -> None:
        """Write a snapshot of the end of the log, unless there is one already. A full disk is logged as a warning.

        extra: returns the other state, as of the end of the log.
        """
        if self._path is None or self._journal.sequence == self._taken_at:
            return
        earlier = self._usable()
        rows, start = (EntryRows.none(), 0) if earlier is None else (earlier.rows, earlier.label.sequence)
        rows = self._followed_by_log(rows, start)
        try:
            more = extra()
            write_snapshot(self._path, self._label(rows, len(more)), [rows], more)
        except OSError as error:
            _LOG.warning(
                "no snapshot written to %s: %s; the next opening reads the log instead, which takes longer",
                self._path,
                error,
            )
        self._taken_at = self._journal.sequence

    def _followed_by_log(self, rows: EntryRows, sequence: int) -> EntryRows:
        return rows.followed_by(*self._journal.log.entries_after(sequence))

    def _label(self, rows: EntryRows, extra_bytes: int) -> SnapshotLabel:
        journal = self._journal
        return SnapshotLabel(
            version=SNAPSHOT_VERSION,
            journal=journal.header.identity,
            space_id=journal.header.space_id,
            sequence=journal.sequence,
            tail=journal.log.tail(journal.sequence),
            entries=len(rows),
            evidence_bytes=len(rows.evidence),
            extra_bytes=extra_bytes,
        )

    def _usable(self) -> Snapshot | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            snapshot = read_snapshot(self._path)
        except UnreadableSnapshotError as error:
            self._ignore(str(error))
            return None
        misfit = self._misfit(snapshot.label)
        if misfit is not None:
            self._ignore(misfit)
            return None
        return snapshot

    def _misfit(self, label: SnapshotLabel) -> str | None:
        journal = self._journal
        if (label.journal, label.space_id) != (journal.header.identity, journal.header.space_id):
            return f"it belongs to journal {label.journal}, this is {journal.header.identity}"
        if label.sequence > journal.sequence:
            return f"it is at sequence {label.sequence}, the log ends at {journal.sequence}"
        if label.tail != journal.log.tail(label.sequence):
            return f"the log has another record at its sequence {label.sequence}"
        return None

    def _ignore(self, reason: str) -> None:
        _LOG.warning("snapshot %s is not used: %s; the log rebuilds the entries", self._path, reason)
