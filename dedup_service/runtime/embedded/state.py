"""Journal, kept pages and decider together: a batch is decided, made durable in the journal, and then returned.

The decider is a deterministic function of the log, so a restore gives the state after the last durable batch. If a
batch cannot be made durable, memory is ahead of the disk: the state stops, returns no more verdicts, and has to be
opened again. Observers are called once a batch is durable. Not thread-safe: the owner holds a lock.

In a folder: `journal.sqlite`, and `pages/` with the entries that have left the window (`StoredEntries`), which a commit
brings up to the journal from time to time (`commits`).
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dedup_service._native import Entry, HostText
from dedup_service.core.decision.decider import Decider, DeciderState, Decision
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import DEFAULT_LAYOUT, IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.embedded.base_set import BaseSet
from dedup_service.runtime.embedded.commits import Commits, store_errors
from dedup_service.runtime.embedded.corrections import Correction, written_detail
from dedup_service.runtime.embedded.database import StateClosedError
from dedup_service.runtime.embedded.deletion import HOUR_S, MEMORY_RECORDS, STEP_RECORDS, Deletion
from dedup_service.runtime.embedded.folder import JOURNAL_FILE, PAGES_FOLDER
from dedup_service.runtime.embedded.journal import BatchExpiry, Journal
from dedup_service.runtime.embedded.journal_reader import DecidedPage, keep_of
from dedup_service.runtime.embedded.restore import Restored, Restorer
from dedup_service.runtime.events import (
    BatchEvent,
    IndexEvent,
    Observer,
    Observers,
    PageDecided,
    RemovalEvent,
    faults_in,
)
from dedup_service.runtime.freed_memory import (
    keep_little_freed_memory,
    leave_out_of_collections,
    return_freed_memory,
)
from dedup_service.runtime.memory_limit import ProcessMemoryLimit
from dedup_service.runtime.store.store_info import store_info
from dedup_service.runtime.store.stored_entries import Report, StoredEntries

__all__ = ["JOURNAL_FILE", "PAGES_FOLDER", "SNAPSHOT_EVERY", "TEXT_BUDGET_BYTES", "State", "StateSettings"]

_LOG = logging.getLogger(__name__)

TEXT_BUDGET_BYTES = 256 << 20
"""Room for about 130,000 news pages of 3.7 KB, compressed to 55%."""

SNAPSHOT_EVERY = 100_000
"""Records. Applying as many again takes some seconds (docs/adr/0004)."""

INDEX_S = 5.0
"""Seconds between two index events; making one takes about 1 ms."""

_MINUTE_S = 60

Delivery = tuple[PreparedPage, bytes | None]
"""A page and the digest of its delivery id."""


@dataclass(frozen=True, slots=True)
class StateSettings:
    """How a state is kept; no setting changes a verdict, but for `layout`.

    text_budget_bytes: size of the compressed texts kept, the oldest are dropped first.
    snapshot_every: records between commits of the kept pages. layout: of a new state; an existing one keeps its own.
    journal_days: days for which records of pages without an entry stay; None keeps them (see `deletion`).
    memory_records: how many of the latest of them stay in a state without a folder. memory_limit: of the process;
    bounds of expiry that it has lowered stay if they are asked for as they were before.
    """

    layout: IndexLayout = DEFAULT_LAYOUT
    text_budget_bytes: int = TEXT_BUDGET_BYTES
    snapshot_every: int = SNAPSHOT_EVERY
    journal_days: float | None = None
    memory_records: int = MEMORY_RECORDS
    memory_limit: ProcessMemoryLimit | None = None


class State:
    """The state in `folder`; None for a state in memory.

    rule, keep: recorded and in force from here on; None keeps those of the state. observers: called with what was done.
    bases: folders or addresses of states that a new state is begun with (`bases`); see `NearDuplicateFilter.open`.
    """

    def __init__(
        self,
        folder: Path | None,
        space_id: str,
        space: Mapping[str, Any],
        rule: MatchRule | None = None,
        settings: StateSettings | None = None,
        observers: Iterable[Observer] = (),
        keep: Keep | None = None,
        bases: Sequence[str | Path] = (),
    ) -> None:
        settings = settings or StateSettings()
        self._limit = settings.memory_limit
        if folder is not None:
            _admit(self._limit, folder / PAGES_FOLDER)
            keep_little_freed_memory()
            leave_out_of_collections()
        first_rule, first_keep = rule or rule_for(), keep or KEEP_ALL
        self.rule, self.keep = first_rule, first_keep
        self._lowered = KEEP_ALL  # bounds that the limit has lowered to `keep`; KEEP_ALL if it has not
        policy = _policy(first_rule, first_keep) | {"layout": settings.layout.to_dict()}
        self.space_id = space_id
        self._bases, self.journal = _begun(folder, bases, (space_id, space), policy, settings)
        self._in_memory = folder is None
        self._process = os.getpid()
        self._entries: StoredEntries | None = None
        self._stopped: str | None = None
        self._fresh: dict[int, PreparedPage] = {}
        self._minute: int | None = None
        self._has_erased = False
        self._absent: set[int] = set()
        self._commits: Commits | None = None
        self._observers = Observers(observers)
        self._index_at = 0.0
        try:
            self._apply_policy(rule, keep)
            self._overrides = Overrides(correction.record for correction in self.journal.log.corrections())
            self._layout = IndexLayout.from_dict(self.journal.log.policy()["layout"])
            pages = folder or self._bases.scratch
            if pages is None:
                self._decider = self._new_decider(None, DeciderState())
            else:
                restored = self._restored(pages / PAGES_FOLDER)
                self._decider, self._entries = restored.decider, restored.entries
                self._commits = Commits(restored.entries, self.journal, settings.snapshot_every)
            self._follow_bases()
            self._expired = self._decider.expired
            self._deletion: Deletion | None = (
                Deletion(self.journal, days=settings.journal_days)
                if folder
                else Deletion(self.journal, records=settings.memory_records)
            )
            self._erase_evidence()
            return_freed_memory()
        except BaseException:
            if self._entries is not None:
                self._entries.close()
            self.journal.close()
            self._bases.undo(folder)
            self._bases.close()
            raise

    def _restored(self, pages: Path) -> Restored:
        """Return the decider at the end of the journal. pages: the folder of kept pages."""
        begin = None
        if self._bases:
            self._bases.adopt(self.journal, pages)
            begin = partial(self._bases.begin, self.journal.header, self.journal.log, pages, self.rule, self._layout)
        return Restorer(
            pages,
            self.journal,
            self.rule,
            self._layout,
            self._new_decider,
            begin,
            lambda: len(self._bases.retracted()),
        ).restore()

    def _follow_bases(self) -> None:
        """Remove the entries that bases have retracted."""
        retracted = self._bases.retracted()
        for sequence in sorted(retracted - self._absent):
            if self._decider.holds(sequence):
                self._decider.retract(sequence)
        self._absent = retracted
        if lost := self.journal.entries - len(self._decider) if self._bases else 0:
            self.journal.lose_entries(lost)

    def decide(self, deliveries: Sequence[Delivery]) -> list[Verdict]:
        """Return the verdicts on a batch, in its order, once all of them are durable.

        deliveries: a digest that was seen before gets the verdict that it had.
        Raises StateFullError, and stops, if the disk does not take the batch: then nothing of it is stored; and
        MemoryLimitError before the batch, which has no effect then.
        """
        self._keep_memory(len(deliveries))
        times = [time.perf_counter()]
        with self._all_or_stop():
            self._follow_bases()
            digests = [digest for _, digest in deliveries if digest is not None]
            known = self.journal.log.verdicts_of_deliveries(digests)
            batch = self._decided(_first_deliveries(deliveries, known))
            verdicts = _in_order(deliveries, known, batch)
            times.append(time.perf_counter())
            expiry = self._batch_expiry()
            if batch:
                self.journal.append(batch, None if self._in_memory else int(time.time() // HOUR_S), expiry)
            times.append(time.perf_counter())
            self._fresh.clear()
        with self._all_or_stop():  # an interrupt may have left more on the disk than memory knows of
            self._keep_up(len(batch))
        for fault in faults_in(page.decision.verdict for page in batch):
            _LOG.error("%s", fault.text)
            self._observers.problem(fault)
        if self._observers and deliveries:
            self._notify(batch, len(deliveries), times, expiry.expired)
        return verdicts

    def retract(
        self,
        reference: str | int,
        reason: str = "retracted by the caller",
        *,
        erase: bool = True,
        mentions: bool = True,
    ) -> Verdict:
        """Remove the kept page with this sequence, canonical URL or id, and return the verdict it had.

        erase: also what can be read of it (`erasure`), of all visits of its URL; a page of that name whose URL is kept
        by another visit is then taken down with that one, whose verdict is returned. mentions: at once what other pages
        say of it; otherwise the caller calls `erase_mentions`, once for many pages.
        StateError if no such page is kept; pages of that name that have no entry are erased all the same.
        """
        self._check_usable()
        sequence = self._entry_of(reference)
        if sequence is None and erase:
            sequence = self._entry_of_same_url(reference)
        base = self._bases.base_name(sequence)
        if base is not None:
            raise StateError(
                f"page {reference!r} is kept in the base {base}, which this state does not change: retract it "
                "there, and it is absent here, too, or give a correction here, which counts for this state alone"
            )
        verdict = None if sequence is None else self.journal.log.verdict_at(sequence)
        if sequence is None or verdict is None:
            problem = self._why_not(reference)
            if erase and self._erase_without_entry(reference):
                problem += ". Its text, title and URL are erased"
                self.erase_mentions(at_once=mentions)
            raise StateError(problem)
        with self._all_or_stop():
            self._decider.retract(sequence)
            self.journal.retract(sequence, reason, erase=erase)
        if erase:
            self._has_erased = True
            self.erase_mentions(at_once=mentions)
        self._observers.removed(RemovalEvent("retraction", verdict.url))
        return verdict

    def erase_mentions(self, *, at_once: bool = True) -> None:
        """Erase what other pages say of those that were erased since the last call; reads the whole log.

        at_once: False leaves it to a later call.
        """
        if not at_once or not self._has_erased:
            return
        self._erase_pages()
        with self._all_or_stop():
            emptied = self.journal.erase_mentions()
        self._has_erased = False
        if not emptied:
            _LOG.warning(
                "%s-wal still has bytes of erased pages, because it is being read: they go when the state is closed "
                "and no other process has it open",
                self.journal.database.path,
            )

    def compact(self, report: Report) -> None:
        """Give back disk space of pages that were removed, that expired or were erased, and of the journal.

        StateFullError if the disk does not take the new files; the state stops, and what it has stays.
        """
        with self._all_or_stop():
            if self._commits is not None:
                self._commits.compact(self._decider, report)
                report("journal", 0, 0)
                self.journal.database.vacuum()

    def correct(
        self, record: CorrectionRecord, *, author: str | None = None, timestamp: float | None = None
    ) -> Correction:
        """Record a correction, in force from here on; a kept page that is called a duplicate is removed.

        author, timestamp: who made it, and when, in Unix seconds. The pages need not be known.
        """
        target = self._decider.sequence_of(record.url) if record.duplicate else None
        with self._all_or_stop():
            self._overrides.add(record)
            self._decider.correct(record)
            if target is not None:
                self._decider.retract(target)
            sequence = self.journal.correct(written_detail(record, author, timestamp), target)
        if target is not None:
            self._observers.removed(RemovalEvent("correction", record.url))
        return Correction(sequence=sequence, record=record, at=timestamp, by=author)

    def entry(self, sequence: int) -> Entry | None:
        """Return the live entry of the page at `sequence`, or None."""
        self._check_usable()
        return self._decider.entry(sequence)

    def held(self) -> HeldEntries:
        """Return the live entries; takes milliseconds, however many they are."""
        self._check_usable()
        return self._decider.held()

    def host_text(self) -> HostText:
        """Return a copy of what is known of the hosts' own text; some milliseconds at most."""
        self._check_usable()
        return self._decider.host_text()

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of a page, for the decider; also of a page of the current batch."""
        fresh = self._fresh.get(sequence)
        if fresh is not None:
            return fresh.page.id, fresh.page.url
        return self._bases.name(sequence) or self.journal.log.name(sequence)

    def verdict_of(self, digest: bytes) -> Verdict | None:
        """Return the verdict that the delivery with this digest had, or None."""
        self._check_usable()
        return self.journal.log.verdicts_of_deliveries([digest]).get(digest)

    def text_at(self, sequence: int) -> str | None:
        """Return the main text of the page at `sequence`; None if it is not kept."""
        self._check_usable()
        return self.journal.texts.get(sequence)

    def index_event(self) -> IndexEvent:
        """Return the index sizes."""
        sizes = self._decider.sizes()
        return IndexEvent(entries=self.journal.entries, channels=sizes.channels, cells=sizes.cells, memory=sizes.memory)

    def memory(self) -> dict[str, int]:
        """Return the bytes of memory by structure; takes about 1 ms."""
        return self._decider.sizes().memory

    def close(self) -> None:
        """Commit the kept pages, unless stopped at an error, and close all files.

        A second call does nothing, and neither does one in a fork of the process that opened the state.
        A full disk is logged as a warning: the next opening applies more of the journal.
        """
        if self._stopped == "closed" or self._is_forked():
            return
        try:
            if self._entries is not None:
                self._close_pages(self._entries, self._commits)
        finally:
            self._stopped = "closed"
            self.journal.close()
            self._bases.close()

    def _close_pages(self, entries: StoredEntries, commits: Commits | None) -> None:
        try:
            if commits is not None:
                commits.wait()
                if self._stopped is None and not self._in_memory:
                    commits.close(self._decider)
        except StateError as error:
            _LOG.warning("%s; the next opening applies what is missing from the journal, which takes longer", error)
        finally:
            try:
                entries.close()
            except StateError as error:
                _LOG.warning("%s", error)

    def _keep_memory(self, pages: int) -> None:
        """Bound the kept pages if memory is used up; call it before so many pages are decided."""
        self._check_usable()
        if self._limit is None or (self._commits is not None and self._commits.is_running()):
            return
        lower = self._limit.step(pages, len(self._decider), self.keep, lambda: sum(self.memory().values()))
        if lower is None:
            return
        with self._all_or_stop():
            self._lowered = self._lowered or self.keep
            self.keep = lower
            self._decider.keep = lower
            self._record_policy()
        _LOG.warning("%s: %s", self.journal.database.path, self._limit.bounded(lower))

    def _keep_up(self, pages: int) -> None:
        """Do what is due beside so many decisions; the verdicts are durable already, whatever happens."""
        if self._commits is not None:
            try:
                self._commits.step(self._decider)
            except StateError as error:
                _LOG.warning("%s; open the state again", error)
                self._stopped = f"at {error!r}"
                return
        if self._deletion is None:
            return
        covered = 0 if self._commits is None else self._commits.covers
        try:
            for _ in range(max(1, 2 * pages // STEP_RECORDS)):  # twice what came, so that it catches up
                if not self._deletion.step(covered):
                    break
        except StateError as error:
            self._deletion = None
            _LOG.warning("old records stay in the journal until the state is opened again: %s", error)

    def _erase_pages(self) -> None:
        """Erase the evidence of pages that are taken down from `pages/`.

        First a commit has all that later verdicts depend on without it.
        """
        sequences = [sequence for sequence in self.journal.log.erasing() if not self._decider.holds(sequence)]
        if self._entries is None or self._commits is None or not sequences:
            return
        with self._all_or_stop():
            self._commits.take(self._decider)
            with store_errors():
                for sequence in sequences:
                    self._entries.erase(sequence)

    def _erase_evidence(self) -> None:
        """Complete a take-down that a crash interrupted."""
        if self.journal.log.erasing():
            self._erase_pages()
            self.journal.erase_mentions()

    def _decided(self, deliveries: Sequence[Delivery]) -> list[DecidedPage]:
        """Return the decisions on pages that were not decided before."""
        if not deliveries:
            return []
        minute = int(time.time() // _MINUTE_S)
        self._minute = minute if self._decider.advance(self.journal.sequence, minute) else None
        numbered = list(enumerate(deliveries, self.journal.sequence + 1))
        self._fresh |= {sequence: prepared for sequence, (prepared, _) in numbered}
        pages = [(sequence, prepared) for sequence, (prepared, _) in numbered]
        decisions: Iterator[Decision] = self._decider.decide_all(pages)
        if self._bases:
            decisions = map(self._with_base, decisions)
        return [
            DecidedPage(prepared, decision, digest)
            for decision, (prepared, digest) in zip(decisions, deliveries, strict=True)
        ]

    def _with_base(self, decision: Decision) -> Decision:
        """Return a decision whose verdict names the base that has the original."""
        base = self._bases.base_name(decision.original)
        if base is None:
            return decision
        return replace(decision, verdict=replace(decision.verdict, duplicate_of_base=base))

    def _batch_expiry(self) -> BatchExpiry:
        """Return what expired with the present batch."""
        before, self._expired = self._expired, self._decider.expired
        minute, self._minute = self._minute, None
        expired = {reason.value: count - before[reason] for reason, count in self._expired.items()}
        return BatchExpiry(up_to=max(0, self._decider.expired_up_to), expired=expired, minute=minute)

    def _notify(
        self, batch: Sequence[DecidedPage], records: int, times: Sequence[float], expired: Mapping[str, int]
    ) -> None:
        """Notify observers of a durable batch. times: when it began, was decided and was stored."""
        started, decided, stored = times
        self._observers.decided(
            [PageDecided(page.decision.verdict, page.prepared.page.title, page.decision.original) for page in batch]
        )
        self._observers.batch(
            BatchEvent(
                step="decide",
                records=records,
                seconds={"decide": decided - started, "commit": stored - decided},
                verdicts=Counter(page.decision.verdict.kind.value for page in batch),
                repeated=records - len(batch),
                sequence=self.journal.sequence,
                entries=self.journal.entries,
                expired=expired,
            )
        )
        if stored >= self._index_at:
            self._index_at = stored + INDEX_S
            self._observers.index(self.index_event())

    def _new_decider(self, entries: StoredEntries | None, state: DeciderState) -> Decider:
        return Decider(
            self.rule,
            self.space_id,
            self,
            state=state,
            overrides=self._overrides,
            entries=entries,
            layout=self._layout,
            keep=self.keep,
        )

    def _apply_policy(self, rule: MatchRule | None, keep: Keep | None) -> None:
        policy = self.journal.log.policy()
        in_force = MatchRule.from_dict(policy["rule"]), keep_of(policy)
        lowered = Keep.from_dict(policy.get("lowered", {}))
        stays = keep is None or (self._limit is not None and keep == lowered and in_force[1].lowers(keep))
        self.rule = rule or in_force[0]
        self.keep = in_force[1] if keep is None or stays else keep
        self._lowered = lowered if stays else KEEP_ALL
        if (self.rule, self.keep, self._lowered) != (*in_force, lowered):
            self._record_policy()

    def _record_policy(self) -> None:
        """Record the rule and the bounds in force."""
        layout = self.journal.log.policy()["layout"]
        lowered = {"lowered": self._lowered.to_dict()} if self._lowered else {}
        self.journal.change_policy({"layout": layout} | _policy(self.rule, self.keep) | lowered)

    def _entry_of(self, reference: str | int) -> int | None:
        """Return the sequence of the live entry that `reference` names, or None."""
        if isinstance(reference, int):
            return reference if self._decider.holds(reference) else None
        known = self._decider.sequence_of(reference)
        if known is not None:
            return known
        visits = (visit.sequence for visit in self.journal.log.visits(reference))
        return next((sequence for sequence in visits if self._decider.holds(sequence)), None)

    def _entry_of_same_url(self, reference: str | int) -> int | None:
        """Return the sequence of the live entry of the URL of the page that `reference` names, or None."""
        found = self._latest(reference)
        url = None if found is None else self.journal.log.canonical_url(found)
        return None if url is None else self._decider.sequence_of(url)

    def _latest(self, reference: str | int) -> int | None:
        """Return the sequence of the latest page that `reference` names, or None."""
        if isinstance(reference, int):
            return reference
        return next((visit.sequence for visit in self.journal.log.visits(reference)), None)

    def _erase_without_entry(self, reference: str | int) -> bool:
        """Erase the visits of a page that has no entry; return whether there were any."""
        log, found = self.journal.log, self._latest(reference)
        if found is None or log.verdict_at(found) is None:
            return False
        with self._all_or_stop():
            self.journal.erase(found)
            self._has_erased = True
        return True

    def _why_not(self, reference: str | int) -> str:
        log = self.journal.log
        visits = [log.verdict_at(reference)] if isinstance(reference, int) else log.visits(reference)[:1]
        if not visits or visits[0] is None:
            retracted = None if isinstance(reference, int) else log.retraction_naming(reference)
            if retracted is not None:
                return f"page {reference!r} was retracted already, by record {retracted}"
            return f"no page {reference!r} is in the log: nothing to retract"
        visit = visits[0]
        retracted = log.retraction_of(visit.sequence)
        if retracted is not None:
            return f"page {reference!r} (sequence {visit.sequence}) was retracted already, by record {retracted}"
        return f"page {reference!r} (sequence {visit.sequence}) has no entry: its verdict was {visit.kind}"

    def _is_forked(self) -> bool:
        """Whether a state with a folder is in a fork of the process that opened it, which goes on writing there."""
        return not self._in_memory and os.getpid() != self._process

    def _check_usable(self) -> None:
        if self._is_forked():
            raise StateClosedError(
                f"the filter on {self.journal.database.path} belongs to process {self._process}, of which this one is "
                "a fork: open a filter in each process, each with a folder of its own"
            )
        if self._stopped is not None:
            raise StateClosedError(
                f"the filter on {self.journal.database.path} is stopped ({self._stopped}): open it again"
            )

    @contextmanager
    def _all_or_stop(self) -> Iterator[None]:
        """Run a block whose changes are durable at its end; if it fails, the state stops."""
        self._check_usable()
        try:
            with store_errors():
                yield
        except BaseException as error:
            self._stopped = f"at {error!r}"
            raise


def _first_deliveries(deliveries: Iterable[Delivery], known: Mapping[bytes, Verdict]) -> list[Delivery]:
    """Return those that have no verdict yet, each digest once."""
    seen = set(known)
    first = []
    for prepared, digest in deliveries:
        if digest is None or digest not in seen:
            first.append((prepared, digest))
            seen |= set() if digest is None else {digest}
    return first


def _in_order(
    deliveries: Iterable[Delivery], known: Mapping[bytes, Verdict], batch: Sequence[DecidedPage]
) -> list[Verdict]:
    """Return the verdict of each delivery, with its own names, which may be erased where the verdict comes from."""
    decided = iter(batch)
    verdicts, by_digest = [], dict(known)
    for prepared, digest in deliveries:
        if digest is not None and digest in by_digest:
            verdicts.append(replace(by_digest[digest], id=prepared.page.id, url=prepared.page.url))
            continue
        verdict = next(decided).decision.verdict
        verdicts.append(verdict)
        if digest is not None:
            by_digest[digest] = verdict
    return verdicts


def _has_pages(pages: Path) -> bool:
    """Return whether there are kept pages, which begin after their journal does."""
    return pages.exists() and any(path.suffix != ".tmp" for path in pages.iterdir())


def _begun(
    folder: Path | None,
    names: Sequence[str | Path],
    space: tuple[str, Mapping[str, Any]],
    policy: Mapping[str, Any],
    settings: StateSettings,
) -> tuple[BaseSet, Journal]:
    """Open the bases and the journal of a state, or begin it. policy: of a state that begins without bases."""
    bases = BaseSet.open(folder, names, space[0])
    path = None if folder is None else folder / JOURNAL_FILE
    may_create = folder is None or not _has_pages(folder / PAGES_FOLDER)
    text_budget_bytes = settings.text_budget_bytes if folder else 0
    try:
        if bases.beginning is not None:
            policy = bases.policy
            for pages in bases.folders:
                _admit(settings.memory_limit, pages)
        journal = Journal(path, *space, policy, text_budget_bytes, may_create=may_create, beginning=bases.beginning)
    except BaseException:
        bases.close()
        raise
    return bases, journal


def _admit(limit: ProcessMemoryLimit | None, pages: Path) -> None:
    """Raise MemoryLimitError if the tables of the last commit do not fit; what cannot be read is not judged here."""
    if limit is None:
        return
    try:
        info = store_info(pages)
    except StateError:
        return
    limit.admit(info.memory, info.live_rows or 0)


def _policy(rule: MatchRule, keep: Keep) -> dict[str, Any]:
    """Return what a policy record has of rule and bounds."""
    return {"rule": rule.to_dict()} | ({"keep": keep.to_dict()} if keep else {})
