"""From a prepared page to its verdict: a deterministic function of the log so far.

A page is kept iff no earlier kept page matches it (rule 3 of the design). Only kept pages have an
entry in the indexes. A known URL is one with a kept visit: the same body again is `unchanged`, another
one is `updated` and takes the entry's place. A URL whose visits were all duplicates stays unknown, so a
copy fetched again is a `duplicate` again and can never slip past as `unchanged` (docs/adr/0007).

A match that the rule's guards do not believe makes the page `undecided`: it is passed on, and adds no entry, so
it becomes nobody's original, and what let it in goes on being counted in one place (docs/adr/0015). What a person said
stands above guards.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from dedup_service.core.decision.candidates import Candidates, LocalCandidates
from dedup_service.core.decision.duplicate_clusters import Copy
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_arrays import EntryTable, HeldEntries
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.guard_tracker import GuardTracker, copy_of
from dedup_service.core.decision.matching import Containment, Match, Matcher, score_of
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Distance, Verdict, VerdictKind

__all__ = ["Decider", "Decision", "PageNames"]


class PageNames(Protocol):
    """Whoever remembers what the pages of the log were called (the journal)."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the page at `sequence`."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and what it did to the entries.

    kept: the page stays (every verdict but `duplicate`).
    original: sequence of the kept page or earlier visit that the verdict names, or None.
    entry: the entry that it added, or None.
    replaces: sequence of the entry that an update took out, or None.
    copy: what the guards remember of a page that matched, believed or not; None where nothing is asked of them.
    """

    verdict: Verdict
    kept: bool
    original: int | None = None
    entry: Entry | None = None
    replaces: int | None = None
    copy: Copy | None = None


class Decider:
    """Decide pages in the order of their sequence numbers, and remember the kept ones.

    rule: what makes a candidate a match. space_id: of every fingerprint given. shards: parts of each index.
    restored: the entries that a journal or snapshot kept; nothing of them is decided again.
    overrides: what people said of pairs; whoever gives them may add to them between two decisions.
    candidates: who finds near entries, `restored` among them; None makes block indexes in this process.
    watch: what the guards have seen so far; used only where the rule has guards.
    """

    def __init__(
        self,
        rule: MatchRule,
        space_id: str,
        names: PageNames,
        *,
        shards: int = 1,
        restored: EntryRows | None = None,
        overrides: Overrides | None = None,
        candidates: Candidates | None = None,
        watch: GuardTracker | None = None,
    ) -> None:
        restored = restored or EntryRows.none()
        self.rule = rule
        self._matcher = Matcher(rule)
        self.space_id = space_id
        self._names = names
        self._table = EntryTable(restored)
        self._visits = dict(zip(restored.rows["url_hash"].tolist(), restored.rows["sequence"].tolist(), strict=True))
        self._overrides = overrides or Overrides()
        self._candidates = candidates or LocalCandidates(rule, restored, shards=shards)
        self._watch = (watch or GuardTracker()) if rule.guards else None

    def __len__(self) -> int:
        return len(self._table)

    @property
    def watch(self) -> GuardTracker | None:
        """What the guards have seen; None where the rule has none."""
        return self._watch

    def guard_by(self, guards: Guards) -> None:
        """Put other guards into the rule, from the next page on; what was seen so far counts."""
        self.rule = replace(self.rule, guards=guards)
        self._watch = (self._watch or GuardTracker()) if guards else None

    def sequence_of(self, canonical_url: str) -> int | None:
        """Return the sequence of the kept visit of a canonical URL, or None where it is unknown."""
        return self._visits.get(url_hash(canonical_url))

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has a live entry."""
        return self._table.get(sequence) is not None

    def decide(self, sequence: int, prepared: PreparedPage) -> Decision:
        """Return the decision on `prepared` and apply it; `sequence` is larger than any before."""
        decision = self._decide(sequence, prepared)
        if self._watch is not None and decision.copy is None:
            self._watch.follow(None)
        return decision

    def _decide(self, sequence: int, prepared: PreparedPage) -> Decision:
        if prepared.body_hash is None:
            return self._undecided(sequence, prepared, remember=False)
        url = url_hash(prepared.page.canonical_url)
        visit = self._visits.get(url)
        if visit is not None:
            return self._again(sequence, prepared, visit)
        judged = self._judged_match(prepared, url)
        if judged is not None:
            return self._duplicate(sequence, prepared, judged)
        found = self._best(sequence, prepared, url)
        if isinstance(found, Match):
            return self._guarded(sequence, prepared, found)
        if prepared.reason is not None:
            return self._undecided(sequence, prepared, remember=True)
        reason = None if found is None else f"{found.reason} {self._names.name(found.sequence)[0]}"
        verdict = self._verdict(sequence, prepared, VerdictKind.UNIQUE, reason=reason)
        return Decision(verdict, kept=True, entry=self._add(sequence, prepared))

    def batch(self, pages: Sequence[tuple[int, PreparedPage]]) -> AbstractContextManager[None]:
        """Announce pages, by sequence, that are decided inside, in this order and no others: the same, but cheaper.

        pages: some hundreds; comparing all pairs among them costs their square.
        """
        return self._candidates.batch(pages)

    def held(self) -> HeldEntries:
        """Return the live entries in pieces, within milliseconds however many they are."""
        return self._table.held()

    def rows(self) -> EntryRows:
        """Return the live entries, in order of sequence."""
        return self._table.rows()

    def retract(self, sequence: int) -> None:
        """Take the entry of the page at `sequence` out; StateError where it has none (any more)."""
        entry = self._table.get(sequence)
        if entry is None:
            raise StateError(f"page {sequence} has no entry to retract: it was not kept, or it left the index already")
        self._remove(entry)

    def _again(self, sequence: int, prepared: PreparedPage, visit: int) -> Decision:
        earlier = self._table[visit]
        distance = earlier.distance_to(prepared.fingerprint)
        if earlier.body_hash == prepared.body_hash:
            verdict = self._verdict(
                sequence,
                prepared,
                VerdictKind.UNCHANGED,
                original=visit,
                distance=distance,
                score=1.0,
                reason="same URL, same body",
            )
            return Decision(verdict, kept=True, original=visit)
        self._remove(earlier)
        verdict = self._verdict(
            sequence,
            prepared,
            VerdictKind.UPDATED,
            original=visit,
            distance=distance,
            score=score_of(distance),
            reason="same URL, other body",
        )
        return Decision(verdict, kept=True, original=visit, entry=self._add(sequence, prepared), replaces=visit)

    def _undecided(self, sequence: int, prepared: PreparedPage, *, remember: bool) -> Decision:
        verdict = self._verdict(sequence, prepared, VerdictKind.UNDECIDED, reason=prepared.reason or "no text")
        return Decision(verdict, kept=True, entry=self._add(sequence, prepared) if remember else None)

    def _guarded(self, sequence: int, prepared: PreparedPage, match: Match) -> Decision:
        """Return the decision on a page that matches, unless a guard does not believe it."""
        if self._watch is None:
            return self._duplicate(sequence, prepared, match)
        kept = Evidence(self._table[match.sequence].evidence)
        copy = copy_of(match.sequence, kept, prepared.page.canonical_url, Evidence(prepared.evidence))
        self._watch.follow(copy)
        reason = self._watch.objection(self.rule.guards, lambda: self._names.name(match.sequence)[0])
        if reason is None:
            return self._duplicate(sequence, prepared, match, copy)
        verdict = self._verdict(sequence, prepared, VerdictKind.UNDECIDED, reason=reason)
        return Decision(verdict, kept=True, copy=copy)

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
        return Decision(verdict, kept=False, original=match.sequence, copy=copy)

    def _judged_match(self, prepared: PreparedPage, url: int) -> Match | None:
        """Return the page that a person called this one a duplicate of, where it is kept."""
        original = self._overrides.duplicate_of(url)
        visit = None if original is None else self._visits.get(original)
        if visit is None:
            return None
        distance = self._table[visit].distance_to(prepared.fingerprint)
        return Match(visit, distance, score_of(distance) or 0.0, "a person called it a duplicate")

    def _best(self, sequence: int, prepared: PreparedPage, url: int) -> Match | Containment | None:
        """Return the most alike of the candidates that match, the earliest of several.

        Without a match: the candidate that is most surely held whole, or holds this page; None without that.
        """
        best: Match | None = None
        held: Containment | None = None
        evidence = Evidence(prepared.evidence)
        for near in self._candidates.near(sequence, prepared):
            entry = self._table[near]
            found = self._matcher.compare(entry, prepared, evidence)
            if isinstance(found, Containment):
                held = found if held is None or found.containment > held.containment else held
            elif found is not None and not self._overrides.apart(url, entry.url_hash):
                best = found if best is None or found.score > best.score else best
        return best or held

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
        of_id, of_url = (None, None) if original is None else self._names.name(original)
        return Verdict(
            sequence=sequence,
            id=prepared.page.id,
            url=prepared.page.url,
            kind=kind,
            space=self.space_id,
            duplicate_of=of_id,
            duplicate_of_url=of_url,
            distance=distance or Distance(),
            score=score,
            reason=reason,
        )

    def _add(self, sequence: int, prepared: PreparedPage) -> Entry:
        entry = Entry.of(sequence, prepared, url_hash(prepared.page.canonical_url))
        self._table.add(entry)
        self._visits[entry.url_hash] = sequence
        self._candidates.add(entry)
        return entry

    def _remove(self, entry: Entry) -> None:
        self._candidates.remove(entry)
        self._table.remove(entry.sequence)
        self._visits.pop(entry.url_hash, None)
        if self._watch is not None:
            self._watch.left(entry.sequence)
