"""From a prepared page to its verdict: a deterministic function of the log so far.

A page is kept iff no earlier kept page matches it (rule 3 of the design). Only kept pages have an
entry in the indexes. A known URL is one with a kept visit: the same body again is `unchanged`, another
one is `updated` and takes the entry's place. A URL whose visits were all duplicates stays unknown, so a
copy fetched again is a `duplicate` again and can never slip past as `unchanged` (docs/adr/0007).
"""

from dataclasses import dataclass
from typing import Protocol

import xxhash

from dedup_service.core.entries import Entry
from dedup_service.core.entry_rows import EntryRows
from dedup_service.core.entry_table import EntryTable
from dedup_service.core.errors import StateError
from dedup_service.core.fingerprint import CHANNELS, PreparedPage
from dedup_service.core.index import BlockIndex
from dedup_service.core.matching import Match, match, score_of
from dedup_service.core.rule import MatchRule
from dedup_service.core.verdict import Distance, Verdict, VerdictKind

__all__ = ["Decider", "Decision", "PageNames", "url_hash"]


class PageNames(Protocol):
    """Whoever remembers what the pages of the log were called (the journal)."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the page at `sequence`."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and what it did to the entries.

    kept: the page stays (every verdict but `duplicate`).
    of: sequence of the kept page or earlier visit that the verdict names, or None.
    entry: the entry that it added, or None.
    replaces: sequence of the entry that an update took out, or None.
    """

    verdict: Verdict
    kept: bool
    of: int | None = None
    entry: Entry | None = None
    replaces: int | None = None


def url_hash(canonical_url: str) -> int:
    """The unsigned 64-bit key under which a URL's last kept visit is remembered."""
    return xxhash.xxh3_64_intdigest(canonical_url.encode("utf-8", "surrogatepass"))


class Decider:
    """Decide pages in the order of their sequence numbers, and remember the kept ones.

    rule: what makes a candidate a match. space_id: of every fingerprint given. shards: parts of each index.
    restored: the entries that a journal or snapshot kept; nothing of them is decided again.
    """

    def __init__(
        self, rule: MatchRule, space_id: str, names: PageNames, *, shards: int = 1, restored: EntryRows | None = None
    ) -> None:
        restored = restored or EntryRows.none()
        self.rule = rule
        self.space_id = space_id
        self._names = names
        self._table = EntryTable(restored)
        self._visits = dict(zip(restored.rows["url_hash"].tolist(), restored.rows["sequence"].tolist(), strict=True))
        self._indexes: dict[str, BlockIndex] = {}
        for channel in CHANNELS:
            radius = rule.radius(channel)
            if radius is not None:
                self._indexes[channel] = BlockIndex(radius, shards=shards)
                self._indexes[channel].insert_many(*restored.indexed(channel))

    def __len__(self) -> int:
        return len(self._table)

    def sequence_of(self, canonical_url: str) -> int | None:
        """Return the sequence of the kept visit of a canonical URL, or None where it is unknown."""
        return self._visits.get(url_hash(canonical_url))

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has a live entry."""
        return self._table.get(sequence) is not None

    def decide(self, sequence: int, prepared: PreparedPage) -> Decision:
        """Return the decision on `prepared` and apply it; `sequence` is larger than any before."""
        if prepared.body_hash is None:
            return self._undecided(sequence, prepared, remember=False)
        visit = self._visits.get(url_hash(prepared.page.canonical_url))
        if visit is not None:
            return self._again(sequence, prepared, visit)
        if prepared.reason is not None:
            return self._undecided(sequence, prepared, remember=True)
        matches = self._matches(prepared)
        if matches:
            return self._duplicate(sequence, prepared, min(matches, key=lambda m: (-m.score, m.sequence)))
        verdict = self._verdict(sequence, prepared, VerdictKind.UNIQUE)
        return Decision(verdict, kept=True, entry=self._add(sequence, prepared))

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
                of=visit,
                distance=distance,
                score=1.0,
                reason="same URL, same body",
            )
            return Decision(verdict, kept=True, of=visit)
        self._remove(earlier)
        verdict = self._verdict(
            sequence,
            prepared,
            VerdictKind.UPDATED,
            of=visit,
            distance=distance,
            score=score_of(distance),
            reason="same URL, other body",
        )
        return Decision(verdict, kept=True, of=visit, entry=self._add(sequence, prepared), replaces=visit)

    def _undecided(self, sequence: int, prepared: PreparedPage, *, remember: bool) -> Decision:
        verdict = self._verdict(sequence, prepared, VerdictKind.UNDECIDED, reason=prepared.reason or "no text")
        return Decision(verdict, kept=True, entry=self._add(sequence, prepared) if remember else None)

    def _duplicate(self, sequence: int, prepared: PreparedPage, match: Match) -> Decision:
        verdict = self._verdict(
            sequence,
            prepared,
            VerdictKind.DUPLICATE,
            of=match.sequence,
            distance=match.distance,
            score=match.score,
            reason=match.reason,
        )
        return Decision(verdict, kept=False, of=match.sequence)

    def _matches(self, prepared: PreparedPage) -> list[Match]:
        near: set[int] = set()
        for channel, index in self._indexes.items():
            value = getattr(prepared.fingerprint, channel)
            if value is not None:
                near.update(index.probe(value).sequences.tolist())
        candidates = (self._table[sequence] for sequence in sorted(near))
        return [found for entry in candidates if (found := match(self.rule, entry, prepared)) is not None]

    def _verdict(
        self,
        sequence: int,
        prepared: PreparedPage,
        kind: VerdictKind,
        *,
        of: int | None = None,
        distance: Distance | None = None,
        score: float | None = None,
        reason: str | None = None,
    ) -> Verdict:
        of_id, of_url = (None, None) if of is None else self._names.name(of)
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
        for channel, index in self._indexes.items():
            value = entry.channel(channel)
            if entry.indexed and value is not None:
                index.insert(sequence, value)
        return entry

    def _remove(self, entry: Entry) -> None:
        for channel, index in self._indexes.items():
            value = entry.channel(channel)
            if entry.indexed and value is not None:
                index.remove(entry.sequence, value)
        self._table.remove(entry.sequence)
        self._visits.pop(entry.url_hash, None)
