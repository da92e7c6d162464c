"""From a prepared page to its verdict: a deterministic function of the log so far.

A kept page has an entry, which later pages are compared with. A page of a new URL is kept if and only if no
earlier kept page matches it; corrections and repeat visits decide first. A page without text has no entry.
A known URL is one with a kept visit: the same body again is `unchanged`; another body is `updated`, and its
entry replaces the earlier one. A URL whose visits were all duplicates stays unknown, so a copy that is
fetched again is a `duplicate` again and is never passed on as `unchanged` (docs/adr/0007).

A page is identified by its own URL. If that is unknown, the page may be a visit of the known URL that it
claims (rel=canonical): `unchanged` or `updated`, provided that the rule accepts the two texts. Otherwise the
claim is refused, the reason says so, and the page is judged like any other. Either way the entry of the
claimed URL stays: no page replaces another by naming it (docs/adr/0018).

A match that a guard does not accept makes the page `undecided`. It is passed on but adds no entry, so it
never becomes an original, and the page that it matched continues to count such copies (docs/adr/0015).
Overrides take precedence over guards.

Entries beyond the bounds of `Keep` expire with the pages that come (`expiry`); that is a removal like any other.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.announced_pages import AnnouncedPages
from dedup_service.core.decision.candidates import Candidates, LocalCandidates, RemovedEntry
from dedup_service.core.decision.duplicate_clusters import Copy
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryPieces, EntryRows
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.expiry import MAX_BEFORE_PAGE, Expiry, ExpiryReason, ExpiryState
from dedup_service.core.decision.guard_tracker import GuardState, GuardTracker, copy_of, found_copy
from dedup_service.core.decision.host_text import HostText
from dedup_service.core.decision.matching import SAME_TEXT, Match, Matcher, NearMiss, score_of
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.decision.page_runs import LEARN, SAME, STOPPED, FoundMatch, PageRun, RunRequest
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import (
    Distance,
    Verdict,
    VerdictKind,
    new_verdict,
    refused_claim_reason,
    visit_by_claim_reason,
)

Batch = Sequence[tuple[int, PreparedPage]]
"""Pages that are decided next: (sequence, page), ascending."""

_NO_DISTANCE = Distance()

_MOST_PAGES = 512
"""Pages that are announced at once: comparing all their pairs takes about 1 ms."""


class PageNames(Protocol):
    """Looks up what a page of the log is called: its id and URL."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`."""
        ...


class MutablePageNames(PageNames, Protocol):
    """Page names that a replica adds to; a decider only looks them up."""

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Store the id and URL of the kept page at `sequence`."""
        ...

    def erase(self, sequence: int) -> None:
        """Erase the id and URL of the page at `sequence`, which was retracted."""
        ...


@dataclass(slots=True)
class Decision:
    """A verdict and its effect on the entries. Nobody changes it; to freeze it would triple the time to make one.

    passed_on: every verdict but `duplicate`, whatever the action.
    original: sequence of the kept page or earlier visit that the verdict names, or None.
    kept: whether the page has an entry.
    replaces: sequence of the entry that an update removed, or None; an update by claim removes none.
    copy: what the guard tracker recorded of a matching page, accepted or not; None without guards.
    """

    verdict: Verdict
    passed_on: bool
    original: int | None = None
    kept: bool = False
    replaces: int | None = None
    copy: Copy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderState:
    """The state of a decider without its settled entries.

    ordinal: pages decided. young: live entries that are not settled, which a store does not have. removed: removed
    entries that the cells still need. host_text: packed, see `HostText.state`. guards: the guard state; None if the
    rule has no guards. expiry: what expired, and times. candidates: what candidates elsewhere need beside that.
    """

    ordinal: int = 0
    young: tuple[Entry, ...] = ()
    removed: tuple[RemovedEntry, ...] = ()
    host_text: bytes = b""
    guards: GuardState | None = None
    expiry: ExpiryState = field(default_factory=ExpiryState)
    candidates: bytes = b""


class Decider:
    """Decides pages in the order of their sequence numbers, and keeps the entries of kept pages.

    rule: makes a candidate a match. space_id: of every fingerprint. names: of kept pages.
    candidates: has the entries; None keeps them in this process, where `restored` are the live ones at some place of
    the log, and `layout` is that of the index, the same for a whole log.
    state: at that place. overrides: corrections in force; the caller may add to them between two decisions. keep:
    bounds of expiry.
    """

    def __init__(
        self,
        rule: MatchRule,
        space_id: str,
        names: PageNames,
        *,
        layout: IndexLayout | None = None,
        restored: EntryPieces = (),
        state: DeciderState | None = None,
        overrides: Overrides | None = None,
        candidates: Candidates | None = None,
        keep: Keep = KEEP_ALL,
    ) -> None:
        state = state or DeciderState()
        self.rule = rule
        self._matcher = Matcher(rule)
        self.space_id = space_id
        self._names = names
        self._overrides = overrides or Overrides()
        self._candidates: Candidates = (
            LocalCandidates(rule, restored, layout=layout, removed=state.removed) if candidates is None else candidates
        )
        self._batch: Batch | None = None
        self._is_judged = True  # whether pages of the batch are decided; else it is known what was decided
        self._announced = 0  # pages of the batch that were announced so far
        self._nothing = self._now = AnnouncedPages.of(PageColumns.of_entries([]))
        self._ordinal = state.ordinal
        self._evidence = Evidence(b"")  # of the page that is compared
        self.host_text = HostText(state.host_text)
        self._guard_tracker = GuardTracker(state.guards) if rule.guards else None
        self.expiry = Expiry(keep, state.expiry)

    def __len__(self) -> int:
        return len(self._candidates)

    @property
    def guard_tracker(self) -> GuardTracker | None:
        """The guard state; None if the rule has no guards."""
        return self._guard_tracker

    def set_guards(self, guards: Guards) -> None:
        """Replace the guards of the rule from the next page on; what was counted so far stays counted."""
        self.rule = replace(self.rule, guards=guards)
        self._guard_tracker = (self._guard_tracker or GuardTracker()) if guards else None

    def set_rule(self, rule: MatchRule) -> None:
        """Replace the rule from the next page on; an index that it probes and that is not there is built."""
        if replace(rule, guards=self.rule.guards) != self.rule:
            self._candidates.use(rule)
            self._matcher = Matcher(rule)
        self.rule = rule
        self.set_guards(rule.guards)

    def sequence_of(self, canonical_url: str) -> int | None:
        """Return the sequence of the kept visit of a canonical URL, or None if the URL is unknown."""
        visit = self._candidates.visit(url_hash(canonical_url))
        return None if visit is None else visit.sequence

    def entry(self, sequence: int) -> Entry | None:
        """Return the live entry of the page at `sequence`, or None."""
        return self._candidates.get(sequence)

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has a live entry."""
        return self._candidates.get(sequence) is not None

    def decide(self, sequence: int, prepared: PreparedPage) -> Decision:
        """Decide a page and apply the decision; `sequence` is larger than any before."""
        if self._batch is None:
            with self.batch([(sequence, prepared)]):
                return self.decide(sequence, prepared)
        self._begin(sequence)
        if self._candidates.is_alone and self._is_plain(prepared):
            decision = self._unique(sequence, prepared)
        else:
            decision = self._decide(sequence, prepared)
        if self._guard_tracker is not None and decision.copy is None:
            self._guard_tracker.follow(None)
        self._end_page()
        return decision

    def decide_all(self, pages: Batch) -> Generator[Decision, None, None]:
        """Decide pages one after another, as `decide` does in a `batch` of them, at lower cost; yield each decision.

        Nothing else is done before the last one, but that a page's name may be stored when its decision is there.
        """
        done = 0
        with closing(self.decide_runs(pages)) as decisions:
            for decision in decisions:
                if isinstance(decision, Decision):
                    yield decision
                    done += 1
                    continue
                for sequence, prepared in pages[done : done + decision]:
                    yield self._is_unique(sequence, prepared)
                done += decision

    def decide_runs(self, pages: Batch) -> Generator[Decision | int, None, None]:
        """Decide pages as `decide_all` does; of unique pages that follow each other, yield how many there are.

        Their verdicts say nothing but what `unique_verdict` returns, and they are kept; so nothing is made of them.
        """
        with self.batch(pages):
            done = 0
            while done < len(pages):
                yield self.decide(*pages[done])
                done += 1
                goes_on = True
                while goes_on and not self._now.is_at_end:
                    run = self._run_on()
                    yield from self._of_run(run, pages[done : done + run.pages])
                    done += run.pages
                    goes_on = run.ended != STOPPED and (run.pages > 0 or run.ended == LEARN)

    def unique_verdict(self, sequence: int, page_id: str, url: str, reason: str | None = None) -> Verdict:
        """Return the verdict on a page that matches nothing. reason: the page that it nearly matches, or None."""
        return new_verdict(sequence, page_id, url, VerdictKind.UNIQUE, self.space_id, reason=reason)

    def replay(
        self, sequence: int, prepared: PreparedPage, *, kept: bool, removes: int | None, copy: Copy | None
    ) -> None:
        """Apply a decision that was made before: the same state follows as from `decide`.

        kept: whether the page has an entry. removes: sequence of the entry that it replaced. copy: as in the
        `Decision`.
        """
        if self._batch is None:
            with self.batch([(sequence, prepared)], judged=False):
                self.replay(sequence, prepared, kept=kept, removes=removes, copy=copy)
                return
        self._begin(sequence)
        if self._guard_tracker is not None:
            self._guard_tracker.follow(copy)
        if removes is not None:
            self.drop(removes)
        if kept:
            self._candidates.add()
        self._end_page()

    def _run_on(self) -> PageRun:
        """Decide the next pages as far as they need no more than their candidates."""
        now, ordinal = self._now, self._ordinal
        rows = None if self._overrides.any_distinct else self._matcher.compiled
        verified, bounds = len(self.rule.verified), self.expiry.bounds
        run = self._candidates.run_on(
            RunRequest(self.host_text, now.learnable, now.learned, rows, verified, now.stops, bounds)
        )
        now.page, now.done, now.learned = now.page + run.pages, now.done + run.pages, run.learned
        self._ordinal += run.pages
        for sequence, page, _, by_age in run.expirations():
            first = self._candidates.first()
            if first is None or first.sequence != sequence:
                raise RuntimeError(f"entry {sequence} expired, which is not the earliest")
            self._candidates.remove(first, ordinal + page)
            self.expiry.count(sequence, ExpiryReason.AGE if by_age else ExpiryReason.COUNT)
        if run.ended == LEARN:
            self._learn_host_text()
        return run

    def _of_run(self, run: PageRun, pages: Batch) -> Generator[Decision | int, None, None]:
        """Yield the decisions of a run, and follow it in the guard state. pages: those of the run and later ones."""
        tracker, done = self._guard_tracker, 0
        expired = None if tracker is None else deque(run.expirations())
        first_url = self._now.page + 1 - run.pages
        for page, found in run.outcomes():
            if page > done:
                self._pass_by(page - done)
                yield page - done
            if tracker is not None and expired:
                _forget(tracker, expired, page)
            sequence, prepared = pages[page]
            if isinstance(found, FoundMatch):
                yield self._matched(sequence, prepared, found, self._now.urls[first_url + page])
            else:
                self._pass_by(1)
                yield self._is_unique(sequence, prepared, f"{found.reason} {self._names.name(found.sequence)[0]}")
            done = page + 1
        if run.pages > done:
            self._pass_by(run.pages - done)
            yield run.pages - done
        if tracker is not None and expired:
            _forget(tracker, expired, run.pages)

    def _pass_by(self, pages: int) -> None:
        """Follow pages that match nothing in the guard state."""
        if self._guard_tracker is not None:
            self._guard_tracker.pass_by(pages)

    def _matched(self, sequence: int, prepared: PreparedPage, found: FoundMatch, url: int) -> Decision:
        """Return the decision on a page that matches by the rule table."""
        reason = SAME_TEXT if found.row == SAME else self.rule.verified[found.row].name
        match = Match(found.sequence, found.distance, found.score, reason)
        if self._guard_tracker is None:
            return self._duplicate(sequence, prepared, match)
        return self._unless_guarded(
            sequence,
            prepared,
            match,
            found_copy(found.sequence, prepared, url, same_title=found.same_title, same_body=found.same_body),
        )

    def _is_plain(self, prepared: PreparedPage) -> bool:
        """Whether a page for which nothing is found is unique: it can be judged, and no correction speaks of it."""
        return _can_be_judged(prepared) and self._overrides.duplicate_of(self._now.url) is None

    def _decide(self, sequence: int, prepared: PreparedPage) -> Decision:
        if prepared.body_hash is None:
            return self._undecided(sequence, prepared, remember=False)
        url = self._now.url
        self._evidence = Evidence(prepared.evidence)
        visit = self._candidates.visit(url)
        if visit is not None:
            return self._revisited(sequence, prepared, visit)
        override = self._override_match(prepared, url)
        if override is not None:
            return self._duplicate(sequence, prepared, override)
        claimed = self._claimed_visit(prepared, url)
        if claimed is None:
            return self._judged(sequence, prepared, url)
        match = self._compare(claimed, prepared)
        if isinstance(match, Match):
            return self._visit_by_claim(sequence, prepared, claimed, match)
        decision = self._judged(sequence, prepared, url)
        verdict = replace(decision.verdict, reason=refused_claim_reason(decision.verdict.reason))
        return replace(decision, verdict=verdict)

    def _judged(self, sequence: int, prepared: PreparedPage, url: int) -> Decision:
        """Return the decision on a page of an unknown URL, by comparison with kept pages."""
        best = self._best(prepared, url)
        if isinstance(best, _Best):
            return self._guarded(sequence, prepared, best.entry, best.match)
        if prepared.reason is not None:
            return self._undecided(sequence, prepared, remember=True)
        reason = None if best is None else f"{best.reason} {self._names.name(best.sequence)[0]}"
        return self._unique(sequence, prepared, reason)

    def _unique(self, sequence: int, prepared: PreparedPage, reason: str | None = None) -> Decision:
        self._candidates.add()
        return self._is_unique(sequence, prepared, reason)

    def _is_unique(self, sequence: int, prepared: PreparedPage, reason: str | None = None) -> Decision:
        page = prepared.page
        verdict = new_verdict(
            sequence, page.id, page.url, VerdictKind.UNIQUE, self.space_id, None, None, _NO_DISTANCE, None, reason
        )
        return Decision(verdict, True, None, True)  # by name it takes longer

    @contextmanager
    def batch(self, pages: Batch, *, judged: bool = True) -> Iterator[None]:
        """Announce the pages decided inside, in this order and no others: same verdicts, lower cost.

        pages: (sequence, page), some hundreds. Nothing else is done inside. judged: False for pages that are replayed;
        then other changes may come between them.
        """
        self._batch, self._announced, self._is_judged = pages, 0, judged
        try:
            yield
        finally:
            self._learn_host_text()
            self._candidates.finish()
            self._batch, self._now = None, self._nothing

    def state(self) -> DeciderState:
        """Return the state without the settled entries."""
        return DeciderState(
            ordinal=self._ordinal,
            young=tuple(self._candidates.young()),
            removed=tuple(self._candidates.removed()),
            host_text=self.host_text.state(),
            guards=None if self._guard_tracker is None else self._guard_tracker.state(),
            expiry=self.expiry.state(),
            candidates=self._candidates.state(),
        )

    def held(self) -> HeldEntries:
        """Return an immutable view of the live entries, within milliseconds for any number of them."""
        return self._candidates.held()

    def rows(self) -> EntryRows:
        """Return the live entries, in order of sequence."""
        return self.held().rows()

    def drop(self, sequence: int) -> None:
        """Remove the entry of the page at `sequence`; KeyError if it has none."""
        entry = self._candidates.get(sequence)
        if entry is None:
            raise KeyError(sequence)
        self._remove(entry)

    def drop_expired(self, up_to: int) -> None:
        """Remove all entries up to a sequence: what a log says whose records of them are gone."""
        while (first := self._candidates.first()) is not None and first.sequence <= up_to:
            self._remove(first)
        self.expiry.up_to = up_to

    def retract(self, sequence: int) -> None:
        """Remove the entry of the page at `sequence`; StateError if it has none (any more)."""
        entry = self._candidates.get(sequence)
        if entry is None:
            raise StateError(
                f"page {sequence} has no entry to retract: it was not kept, or its entry was removed already"
            )
        self._remove(entry)

    def _claimed_visit(self, prepared: PreparedPage, url: int) -> Entry | None:
        """Return the kept visit of the URL that a page claims; None without one, or if a person said otherwise."""
        claimed = prepared.page.claimed_url
        visit = None if claimed is None else self._candidates.visit(url_hash(claimed))
        if visit is None or self._overrides.are_distinct(url, visit.url_hash):
            return None
        return visit

    def _revisited(self, sequence: int, prepared: PreparedPage, earlier: Entry) -> Decision:
        """Return the decision on a page whose URL has the kept visit `earlier`."""
        distance = earlier.distance_to(prepared.fingerprint)
        if earlier.body_hash == prepared.body_hash:
            verdict = self._verdict(
                sequence,
                prepared,
                VerdictKind.UNCHANGED,
                original=earlier.sequence,
                distance=distance,
                score=1.0,
                reason="same URL, same body",
            )
            return Decision(verdict, passed_on=True, original=earlier.sequence)
        self._remove(earlier)
        verdict = self._verdict(
            sequence,
            prepared,
            VerdictKind.UPDATED,
            original=earlier.sequence,
            distance=distance,
            score=score_of(distance),
            reason="same URL, other body",
        )
        self._candidates.add()
        return Decision(verdict, passed_on=True, original=earlier.sequence, kept=True, replaces=earlier.sequence)

    def _visit_by_claim(self, sequence: int, prepared: PreparedPage, visit: Entry, match: Match) -> Decision:
        """Return the decision on a page that claims the URL of the kept page `visit` and matches it.

        No entry changes. If the entry took this text, a site with two forms of each page would replace it at every
        visit of either.
        """
        same = visit.body_hash == prepared.body_hash
        verdict = self._verdict(
            sequence,
            prepared,
            VerdictKind.UNCHANGED if same else VerdictKind.UPDATED,
            original=match.sequence,
            distance=match.distance,
            score=1.0 if same else match.score,
            reason=visit_by_claim_reason("same body" if same else "other body"),
        )
        return Decision(verdict, passed_on=True, original=match.sequence)

    def _undecided(self, sequence: int, prepared: PreparedPage, *, remember: bool) -> Decision:
        verdict = self._verdict(sequence, prepared, VerdictKind.UNDECIDED, reason=prepared.reason or "no text")
        if remember:
            self._candidates.add()
        return Decision(verdict, passed_on=True, kept=remember)

    def _guarded(self, sequence: int, prepared: PreparedPage, kept: Entry, match: Match) -> Decision:
        """Return the decision on a page that matches a kept page: duplicate, or undecided if a guard objects."""
        if self._guard_tracker is None:
            return self._duplicate(sequence, prepared, match)
        return self._unless_guarded(sequence, prepared, match, copy_of(kept, prepared, self._evidence, self._now.url))

    def _unless_guarded(self, sequence: int, prepared: PreparedPage, match: Match, copy: Copy) -> Decision:
        """Return the decision on a page that matches a kept page as `copy` says."""
        assert self._guard_tracker is not None
        self._guard_tracker.follow(copy)
        reason = self._guard_tracker.objection(self.rule.guards, lambda: self._names.name(match.sequence)[0])
        if reason is None:
            return self._duplicate(sequence, prepared, match, copy)
        verdict = self._verdict(sequence, prepared, VerdictKind.UNDECIDED, reason=reason)
        return Decision(verdict, passed_on=True, copy=copy)

    def _duplicate(self, sequence: int, prepared: PreparedPage, match: Match, copy: Copy | None = None) -> Decision:
        verdict = self._verdict(
            sequence,
            prepared,
            VerdictKind.DUPLICATE,
            original=match.sequence,
            distance=match.distance,
            score=match.score,
            reason=match.reason,
        )
        return Decision(verdict, passed_on=False, original=match.sequence, copy=copy)

    def _override_match(self, prepared: PreparedPage, url: int) -> Match | None:
        """Return the kept page that a correction says this one is a duplicate of, or None."""
        original = self._overrides.duplicate_of(url)
        visit = None if original is None else self._candidates.visit(original)
        if visit is None:
            return None
        distance = visit.distance_to(prepared.fingerprint)
        return Match(visit.sequence, distance, score_of(distance) or 0.0, "a person called it a duplicate")

    def _best(self, prepared: PreparedPage, url: int) -> "_Best | NearMiss | None":
        """Return the match with the same text, or else with the highest score, the earliest if several have it.

        Without a match: the near miss with the highest rank, or None.
        """
        same = self._same_text(prepared, url)
        if same is not None:
            return same
        best: _Best | None = None
        near_miss: NearMiss | None = None
        for entry in self._candidates.find(self._evidence, self._common):
            found = self._compare(entry, prepared)
            if isinstance(found, NearMiss):
                if near_miss is None or found.rank > near_miss.rank:
                    near_miss = found
            elif found is not None and not self._overrides.are_distinct(url, entry.url_hash):
                best = _Best(entry, found) if best is None or found.score > best.match.score else best
        return best or near_miss

    def _common(self) -> npt.NDArray[np.uint32]:
        """Return the sentences of the page that are the own text of its host."""
        self._learn_host_text()
        sentences = self._evidence.sentence_values
        return sentences[self.host_text.common(self._now.host, sentences)]

    def _same_text(self, prepared: PreparedPage, url: int) -> "_Best | None":
        """Return the match with the earliest entry of the same text, or None. A crowd of them costs no more."""
        for entry in self._candidates.equal_texts():
            found = self._matcher.compare(entry, prepared, self._evidence)
            if isinstance(found, Match) and not self._overrides.are_distinct(url, entry.url_hash):
                return _Best(entry, found)
        return None

    def _begin(self, sequence: int) -> None:
        """Go on to the next page; what the page `window` places before it did reaches the cells."""
        if self._now.is_at_end:
            self._announce()
        self._now.page += 1
        if self._now.sequences[self._now.page] != sequence:
            raise RuntimeError(f"page {sequence} is decided, {self._now.sequences[self._now.page]} was announced")
        self._candidates.begin(self._ordinal)
        self._ordinal += 1
        if self.expiry.keep:
            self._expire(MAX_BEFORE_PAGE)

    def _end_page(self) -> None:
        if self.expiry.keep:
            self._expire(1)
        self._now.done += 1

    def _announce(self) -> None:
        """Announce the next pages of the batch."""
        self._learn_host_text()
        pages = (self._batch or ())[self._announced : self._announced + _MOST_PAGES]
        if not pages:
            raise RuntimeError("more pages are decided than were announced")
        self._announced += len(pages)
        columns = PageColumns.of_pages(pages, self._ordinal)
        self._candidates.announce(columns, judged=self._is_judged)
        self._now = now = AnnouncedPages.of(columns)
        if self._overrides.any_duplicates:
            now.stops |= np.array([self._overrides.duplicate_of(url) is not None for url in now.urls], np.bool_)

    def _expire(self, limit: int) -> None:
        """Remove the earliest entries that are beyond the bounds of expiry, `limit` of them at most."""
        while limit and (first := self._candidates.first()) is not None:
            reason = self.expiry.reason(len(self._candidates), first.sequence)
            if reason is None:
                return
            self._remove(first)
            self.expiry.count(first.sequence, reason)
            limit -= 1

    def _learn_host_text(self) -> None:
        """Let the hosts' own text be learned from the pages that were decided, whatever their verdicts."""
        now = self._now
        if now.learned < now.done:
            self.host_text.learn_many(now.learnable, now.learned, now.done)
            now.learned = now.done

    def _compare(self, entry: Entry, prepared: PreparedPage) -> Match | NearMiss | None:
        """Compare the page with an entry, without what is the own text of either host."""
        self._learn_host_text()
        host, ours = self._now.host, self._evidence.sentence_values
        common = self.host_text.common_to_pair(host, ours, entry.host, Evidence(entry.evidence).sentence_values)
        return self._matcher.compare(entry, prepared, self._evidence, common, same_host=entry.host == host)

    def _verdict(
        self,
        sequence: int,
        prepared: PreparedPage,
        kind: VerdictKind,
        *,
        original: int | None = None,
        distance: Distance | None = None,
        score: float | None = None,
        reason: str | None = None,
    ) -> Verdict:
        original_id, original_url = (None, None) if original is None else self._names.name(original)
        return new_verdict(
            sequence,
            prepared.page.id,
            prepared.page.url,
            kind,
            self.space_id,
            original_id,
            original_url,
            distance or _NO_DISTANCE,
            score,
            reason,
        )

    def _remove(self, entry: Entry) -> None:
        self._candidates.remove(entry, self._ordinal - 1)
        if self._guard_tracker is not None:
            self._guard_tracker.forget(entry.sequence)


def _forget(tracker: GuardTracker, expired: deque[tuple[int, int, bool, bool]], page: int) -> None:
    """Drop the clusters of entries that expired before a page is compared."""
    while expired and expired[0][1:3] <= (page, False):
        tracker.forget(expired.popleft()[0])


def _can_be_judged(prepared: PreparedPage) -> bool:
    return prepared.reason is None and prepared.body_hash is not None


@dataclass(frozen=True, slots=True)
class _Best:
    """A kept page that a page matches."""

    entry: Entry
    match: Match
