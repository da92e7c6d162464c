"""Restore a decider from a state folder: from the last commit of its kept pages, and the journal after it.

No page is compared again: the journal has the effects of every decision, and the decider applies them. Tables that
cannot be restored are built from the rows (`StoredEntries`). Where the pages themselves are damaged or missing, or do
not fit, the journal builds them again as long as it still has all evidence (`evidence`): the damaged folder is moved
aside. After that, nothing but a copy can bring them back.

Invariant: the state equals that of the decider that wrote the log. Entries whose number differs from the journal's own
count are never used. Where rows were deleted (`deletion`, `erasure`) the log alone gives every live entry, but not all
that guards and the hosts' own text were counted from: a warning says so. Expiry is repeated as the decider did it;
where rows were deleted, the journal's own mark says what expired.
"""

import logging
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dedup_service._native import Manifest, StoreLabel, read_manifest
from dedup_service.core.decision.decider import Decider, DeciderState, Effect
from dedup_service.core.errors import StateError
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.keep import KEEP_ALL
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.embedded.commits import DAMAGED_PAGES
from dedup_service.runtime.embedded.database import StateDamagedError, StateFullError
from dedup_service.runtime.embedded.evidence import MOVED
from dedup_service.runtime.embedded.journal import Journal
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.store.decider_state import UnreadableStateError, decode_state
from dedup_service.runtime.store.errors import ForeignStoreError, StoreDamagedError, StoreFullError
from dedup_service.runtime.store.page_files import MANIFEST, has_other_files
from dedup_service.runtime.store.stored_entries import StoredEntries

_LOG = logging.getLogger(__name__)
_BATCH = 512
"""Records that are replayed together."""

_CONTRADICTIONS = (KeyError, ValueError, struct.error, StateError)
"""What the records of a damaged log or the rows of damaged pages raise."""

MakeDecider = Callable[[StoredEntries, DeciderState], Decider]
"""Makes a decider with the rule in force."""


class _UnusableError(Exception):
    """The kept pages on the disk cannot be used, or do not fit the journal."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A decider at the end of the log, and where its settled entries are."""

    decider: Decider
    entries: StoredEntries


@dataclass(frozen=True, slots=True)
class Restorer:
    """Restores the decider of `journal`. folder: of the kept pages. make: makes the decider.

    begin: makes the kept pages of a log that does not begin with nothing, as they are before its first record. absent:
    returns how many of these may be missing by now, because a base has retracted them.
    """

    folder: Path
    journal: Journal
    rule: MatchRule
    layout: IndexLayout
    make: MakeDecider
    begin: Callable[[], None] | None = None
    absent: Callable[[], int] = lambda: 0

    def restore(self) -> Restored:
        """Return the decider at the end of the log.

        StateDamagedError if the log contradicts itself, or if the kept pages are damaged and cannot be built again;
        StateFullError if the folder cannot be written.
        """
        is_complete = not self.journal.log.counter(MOVED)
        if self.begin is not None and is_complete and not self.folder.exists():
            self.begin()
        try:
            return self._from_commit(verify=is_complete and self.begin is None)
        except StoreFullError as error:
            raise StateFullError(str(error)) from error
        except StateDamagedError:
            raise  # of the journal
        except (_UnusableError, ForeignStoreError, UnreadableStateError, *_CONTRADICTIONS) as error:
            problem = error.problem if isinstance(error, StoreDamagedError) else error
            if self.begin is not None:
                rebuilt = f"delete {self.folder}, which is built again" if is_complete else DAMAGED_PAGES
                raise StateDamagedError(
                    f"the kept pages in {self.folder} or in a base cannot be used: {problem}; put the base back as it "
                    f"was; if it is, {rebuilt}"
                ) from error
            if not is_complete:
                raise StateDamagedError(
                    f"the kept pages in {self.folder} cannot be used: {problem}; the journal no longer has what they "
                    f"consist of: {DAMAGED_PAGES}"
                ) from error
            self._move_aside(error)
        try:
            return self._from_log()
        except StoreFullError as error:
            raise StateFullError(str(error)) from error

    def _from_commit(self, *, verify: bool) -> Restored:
        """Restore from the last commit. verify: read all pages, which can still be built again."""
        journal = self.journal
        manifest = read_manifest(self.folder)
        if manifest is not None:
            self._refuse_older_journal(manifest)
            reason = misfit(manifest, journal.header.identity, journal.log, journal.sequence)
            if reason is not None:
                raise _UnusableError(reason)
        elif has_other_files(self.folder):
            raise _UnusableError(f"there is no {MANIFEST}")
        elif journal.log.counter(MOVED):
            raise _UnusableError("they are missing")
        entries = self._open()
        try:
            if verify:
                entries.pages.verify()
            extra = entries.take_extra()
            if not extra:
                return self._replayed_log(entries)
            restored = self._made(entries, state_in(extra))
            replay(journal.log, entries.sequence, restored.decider)
            _check_count(len(restored.decider), journal.entries, self.absent())
        except BaseException:
            entries.close()
            raise
        return restored

    def _refuse_older_journal(self, manifest: Manifest) -> None:
        """StateDamagedError if the journal ends before the commit: every commit covers what the journal has durably."""
        journal = self.journal
        if manifest.label.log == journal.header.identity and manifest.number and manifest.sequence > journal.sequence:
            otherwise = f"or, to go on without these records, move {self.folder} away"
            if journal.log.counter(MOVED):  # it cannot build them again
                otherwise = "or start a new state folder and filter the same input again"
            raise StateDamagedError(
                f"the kept pages in {self.folder} are at record {manifest.sequence}, the journal ends at "
                f"{journal.sequence}: records were lost, or it is an older copy. Restore both from one copy; "
                f"{otherwise}"
            )

    def _from_log(self) -> Restored:
        entries = self._open()
        try:
            return self._replayed_log(entries)
        except BaseException:
            entries.close()
            raise

    def _replayed_log(self, entries: StoredEntries) -> Restored:
        journal = self.journal
        deletions = ("deleted_up_to", "deleted_expired_up_to", "evidence_erased")
        complete = not any(journal.log.counter(name) for name in deletions)
        if not complete:
            _LOG.warning(
                "%s: records of copies were deleted, and there is no commit that covers them: every kept page is "
                "known, but guards and the hosts' own text are counted again from the records that are left",
                self.folder,
            )
        restored = self._made(entries, DeciderState())
        decider = restored.decider
        try:
            replay(journal.log, 0, decider, expire=complete)
            if not complete and journal.expired_up_to:
                decider.drop_expired(journal.expired_up_to)
        except StoreFullError:
            raise
        except _CONTRADICTIONS as error:
            raise StateDamagedError(
                f"the log cannot be applied ({error!r}): restore the state folder from a copy, or start a new one"
            ) from error
        if len(decider) != journal.entries:
            raise StateDamagedError(
                f"the log gives {len(decider)} entries, its own count says {journal.entries}: "
                "restore the state folder from a copy, or start a new one"
            )
        return restored

    def _open(self) -> StoredEntries:
        header = self.journal.header
        label = StoreLabel(header.identity, header.space_id)
        return StoredEntries.open(self.folder, label, self.rule, self.layout)

    def _made(self, entries: StoredEntries, state: DeciderState) -> Restored:
        return Restored(self.make(entries, state), entries)

    def _move_aside(self, error: Exception) -> None:
        """Move the folder out of the way, to a name of which the warning tells."""
        if not self.folder.exists():
            _LOG.warning("%s: %s; the journal builds the kept pages again", self.folder, error)
            return
        number = 1
        while (aside := self.folder.with_name(f"{self.folder.name}.damaged-{number}")).exists():
            number += 1
        try:
            self.folder.rename(aside)
        except OSError as failure:
            raise StateFullError(f"cannot move {self.folder} to {aside}: {failure}; make it writable") from failure
        _LOG.warning(
            "%s cannot be used (%s) and is now %s: the journal builds the kept pages again", self.folder, error, aside
        )


def _check_count(found: int, counted: int, absent: int) -> None:
    """A commit without the absent pages may be older or newer than the count without them."""
    if abs(found - counted) > absent:
        raise _UnusableError(f"with the log after them there are {found} entries, it counts {counted}")


def state_in(extra: bytes) -> DeciderState:
    """Return the state of the decider in a commit; StoreDamagedError if it cannot be read."""
    try:
        return decode_state(extra)
    except UnreadableStateError as error:
        raise StoreDamagedError(f"the state in the last commit cannot be used: {error}") from error


def misfit(manifest: Manifest, journal: str, log: JournalReader, end: int) -> str | None:
    """Return why a commit does not fit the log that ends at the record `end`; None if it does.

    journal: identity of the log.
    """
    if manifest.label.log != journal:
        return f"they belong to journal {manifest.label.log}, this is {journal}"
    if manifest.next_row < log.counter(MOVED):
        return f"they have {manifest.next_row} rows, the journal has left {log.counter(MOVED)} to them"
    return _misfit_of_commit(manifest, log, end) if manifest.number else None


def _misfit_of_commit(manifest: Manifest, log: JournalReader, end: int) -> str | None:
    if manifest.sequence > end:
        return f"they are at sequence {manifest.sequence}, the log ends at {end}"
    if manifest.sequence <= log.deleted_up_to():
        return f"records after their sequence {manifest.sequence} were deleted"
    if manifest.tail != log.tail(manifest.sequence):
        return f"the log has another record at their sequence {manifest.sequence}"
    return None


def replay(log: JournalReader, sequence: int, decider: Decider, *, expire: bool = True) -> None:
    """Apply the records after `sequence`. Guards count from the policy since which all have guards.

    expire: let entries expire; False where rows are missing, with which others did.
    """
    keep, decider.keep = decider.keep, log.keep_at(sequence) if expire else KEEP_ALL
    guards, guarded_since = decider.rule.guards, log.guarded_since()
    deleted_up_to = log.deleted_up_to()
    of_bases = max((label.after + label.records for label in log.bases), default=0)
    last_that_may_be_gone = max(log.counter("deleted_expired_up_to"), of_bases)
    pages = _Pages(log.times_from(sequence), decider)
    for record in log.records_after(sequence):
        pages.advance_before(record.sequence)
        removes = record.removes
        gone = removes is not None and (record.sequence <= deleted_up_to or removes <= last_that_may_be_gone)
        if removes is not None and gone and not pages.holds(removes):
            # The row of that entry was deleted, as this record has removed it, or it expired later; or it was
            # one of a base, which has retracted it since.
            removes = None
        if record.prepared is not None:
            pages.add(record.sequence, record.prepared, (record.kept, removes, record.copy))
        elif removes is not None:
            pages.apply()
            decider.drop(removes)
        elif record.keep is not None:
            pages.apply()
            decider.keep = record.keep if expire else KEEP_ALL
        if record.sequence == guarded_since:
            pages.apply()
            decider.set_guards(NO_GUARDS)
            decider.set_guards(guards)
    pages.advance_before(None)
    pages.apply()
    decider.keep = keep


class _Pages:
    """Pages with the decisions on them, applied together, and time records in their places between them."""

    def __init__(self, times: Iterator[tuple[int, int]], decider: Decider) -> None:
        self._times = times
        self._decider = decider
        self._next = next(times, None)
        self._pages: list[tuple[int, PreparedPage]] = []
        self._effects: list[Effect] = []

    def add(self, sequence: int, prepared: PreparedPage, effect: Effect) -> None:
        """Add the page at `sequence`."""
        self._pages.append((sequence, prepared))
        self._effects.append(effect)
        if len(self._pages) == _BATCH:
            self.apply()

    def apply(self) -> None:
        """Apply the pages that were added."""
        if self._pages:
            self._decider.replay(self._pages, self._effects)
            self._pages, self._effects = [], []

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has a live entry behind the pages that were added."""
        self.apply()
        return self._decider.holds(sequence)

    def advance_before(self, sequence: int | None) -> None:
        """Apply the times before the record at `sequence`; None: all that are left."""
        while self._next is not None and (sequence is None or self._next[0] < sequence):
            self.apply()
            self._decider.advance(*self._next)
            self._next = next(self._times, None)
