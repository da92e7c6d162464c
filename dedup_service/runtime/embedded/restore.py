"""Restore a decider from a state folder: from a usable snapshot and the log after it, or from the whole log.

No page is compared again: the journal has the effects of every decision, and the decider applies them.

A snapshot is taken when the log has grown by `every` records since the last one, and by a quarter of the entries, so
that rewriting all entries costs a constant share of the work, however large the state is.
Invariant: the state equals that of the decider that wrote the log. A snapshot that does not fit is ignored with a
warning; entries whose number differs from the journal's own count are never used. Where rows were deleted
(`deletion`) the log alone gives every live entry, but not all that guards and the hosts' own text were counted from: a
warning says so. Expiry is repeated as the decider did it; where rows were deleted, the journal's own mark says what
expired.
"""

import logging
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from dedup_service.core.decision.decider import Decider, DeciderState
from dedup_service.core.decision.entry_rows import EntryPieces
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.errors import StateError
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.keep import KEEP_ALL
from dedup_service.runtime.embedded.database import StateDamagedError
from dedup_service.runtime.embedded.journal import Journal
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.embedded.snapshot import (
    SNAPSHOT_VERSION,
    Snapshot,
    SnapshotLabel,
    UnreadableSnapshotError,
    decode_state,
    encode_state,
    read_snapshot,
    write_snapshot,
)

__all__ = ["Snapshots"]

_LOG = logging.getLogger(__name__)
_GROWTH = 4
_CONTRADICTIONS = (KeyError, ValueError, struct.error, StateError)
"""What the records of a damaged log or snapshot raise: an entry that is not there, bytes of another length."""

MakeDecider = Callable[[EntryPieces, DeciderState], Decider]
"""Makes a decider with the rule in force, from live entries and the rest of its state."""


class Snapshots:
    """The snapshot file of `journal`. path: None keeps no snapshot. every: minimum records between snapshots."""

    def __init__(self, path: Path | None, journal: Journal, every: int) -> None:
        self._path = path
        self._journal = journal
        self._every = every
        self._taken_at = 0
        self.covers = 0
        """The sequence of the snapshot on the disk; 0 without one."""

    def restore(self, make: MakeDecider) -> Decider:
        """Return the decider at the end of the log; StateDamagedError if the log contradicts itself."""
        restored = self._from_snapshot(make)
        if restored is not None:
            return restored
        decider = make((), DeciderState())
        complete = not (self._journal.log.deleted_up_to() or self._journal.log.counter("deleted_expired_up_to"))
        if not complete:
            _LOG.warning(
                "%s: records of copies were deleted, and the snapshot that covers them cannot be used: every kept page "
                "is known, but guards and the hosts' own text are counted again from the records that are left",
                self._path,
            )
        try:
            _replay(self._journal.log, 0, decider, expire=complete)
            if not complete:
                decider.drop_expired(self._journal.expired_up_to)
        except _CONTRADICTIONS as error:
            raise StateDamagedError(
                f"the log cannot be applied ({error!r}): restore the state folder from a copy, or start a new one"
            ) from error
        if len(decider) != self._journal.entries:
            raise StateDamagedError(
                f"the log gives {len(decider)} entries, its own count says {self._journal.entries}: "
                "restore the state folder from a copy, or start a new one"
            )
        return decider

    def take_if_due(self, decider: Decider) -> None:
        """Take a snapshot if the log has grown enough since the last one."""
        if self._journal.sequence - self._taken_at >= max(self._every, self._journal.entries // _GROWTH):
            self.take(decider)

    def take(self, decider: Decider) -> None:
        """Write a snapshot of `decider`, at the end of the log, unless there is one already.

        A full disk is logged as a warning.
        """
        if self._path is None or self._journal.sequence == self._taken_at:
            return
        held, extra = decider.held(), encode_state(decider.state())
        try:
            write_snapshot(self._path, self._label(held, len(extra)), held, extra)
        except OSError as error:
            _LOG.warning(
                "no snapshot written to %s: %s; the next opening reads the log instead, which takes longer",
                self._path,
                error,
            )
        else:
            self.covers = self._journal.sequence
        self._taken_at = self._journal.sequence

    def _from_snapshot(self, make: MakeDecider) -> Decider | None:
        snapshot = self._usable()
        if snapshot is None:
            return None
        try:
            decider = make(snapshot.rows, decode_state(snapshot.extra))
            _replay(self._journal.log, snapshot.label.sequence, decider)
        except (UnreadableSnapshotError, *_CONTRADICTIONS) as error:
            self._ignore(str(error))
            return None
        if len(decider) != self._journal.entries:
            self._ignore(
                f"with the log after it there are {len(decider)} entries, the journal counts {self._journal.entries}"
            )
            return None
        self._taken_at = self.covers = snapshot.label.sequence
        return decider

    def _label(self, held: HeldEntries, extra_bytes: int) -> SnapshotLabel:
        journal = self._journal
        entries, evidence_bytes = held.size()
        return SnapshotLabel(
            version=SNAPSHOT_VERSION,
            journal=journal.header.identity,
            space_id=journal.header.space_id,
            sequence=journal.sequence,
            tail=journal.log.tail(journal.sequence),
            entries=entries,
            evidence_bytes=evidence_bytes,
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
        if label.sequence <= journal.log.deleted_up_to():
            return f"records after its sequence {label.sequence} were deleted"
        if label.tail != journal.log.tail(label.sequence):
            return f"the log has another record at its sequence {label.sequence}"
        return None

    def _ignore(self, reason: str) -> None:
        _LOG.warning("snapshot %s is not used: %s; the log rebuilds the entries", self._path, reason)


def _replay(log: JournalReader, sequence: int, decider: Decider, *, expire: bool = True) -> None:
    """Apply the records after `sequence`. Guards count from the policy since which all have guards.

    expire: let entries expire; False where rows are missing, with which others did.
    """
    keep, decider.expiry.keep = decider.expiry.keep, log.keep_at(sequence) if expire else KEEP_ALL
    guards, guarded_since = decider.rule.guards, log.guarded_since()
    deleted_up_to, deleted_expired = log.deleted_up_to(), log.counter("deleted_expired_up_to")
    times = _Times(log.times_from(sequence), decider)
    for record in log.records_after(sequence):
        times.advance_before(record.sequence)
        removes = record.removes
        gone = removes is not None and (record.sequence <= deleted_up_to or removes <= deleted_expired)
        if removes is not None and gone and not decider.holds(removes):
            removes = None  # the row of that entry was deleted, as this record has removed it, or it expired later
        if record.prepared is not None:
            decider.replay(record.sequence, record.prepared, kept=record.kept, removes=removes, copy=record.copy)
        elif removes is not None:
            decider.drop(removes)
        elif record.keep is not None:
            decider.expiry.keep = record.keep if expire else KEEP_ALL
        if record.sequence == guarded_since:
            decider.set_guards(NO_GUARDS)
            decider.set_guards(guards)
    times.advance_before(None)
    decider.expiry.keep = keep


class _Times:
    """Applies time records to a decider in their places between the others."""

    def __init__(self, times: Iterator[tuple[int, int]], decider: Decider) -> None:
        self._times = times
        self._decider = decider
        self._next = next(times, None)

    def advance_before(self, sequence: int | None) -> None:
        """Apply those before the record at `sequence`; None: all that are left."""
        while self._next is not None and (sequence is None or self._next[0] < sequence):
            self._decider.expiry.advance(*self._next)
            self._next = next(self._times, None)
