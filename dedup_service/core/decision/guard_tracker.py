"""What the guards look at: a fold of what was decided, page after page, and what they say of the next match.

    watch.follow(copy_of(sequence, kept, page, evidence))     # None for a page that matched nothing
    reason = watch.objection(guards, name of the kept page)   # None: the match is believed

A copy is suspicious where its title has little of the kept page's, or where the kept page has more copies already than
text has in a crawl, but for the few texts that are everywhere. Re-crawls and mirrors are not suspicious: their copies keep
their titles, and each goes to a group of its own.

Invariant: state and answers are a function of the copies in their order. It is the same from the beginning, from
`memory` at any place, or from copies that a journal wrote down; thresholds change answers, never the state.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import xxhash

from dedup_service.core.decision.anomaly_share import RECENT, AnomalyShare
from dedup_service.core.decision.duplicate_clusters import Copy, DuplicateClusters, Sizes
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.rules.guards import Guards
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Guard, guard_reason

__all__ = ["GuardState", "GuardTracker", "copy_of", "same_title"]

CROWDED = 16
"""Pages of one group, from which one more is suspicious. In 16,936 pages of a crawl no group has more than four."""

_ALIKE, _OF = 7, 10
"""Of the terms of the shorter title so many tenths stand in the other: a host's name at the end takes nothing away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    """A watch at one moment. groups: see `DuplicateClusters.pack`; the rest: see `AnomalyShare`."""

    groups: bytes = b""
    decided: int = 0
    recent: bytes = bytes(RECENT)
    before: int = -1
    learned: int = 0
    usual: int = 0


def copy_of(original: int, kept: Evidence, canonical_url: str, evidence: Evidence) -> Copy:
    """Return the page at `canonical_url` as a copy of the kept page at sequence `of`; with the evidence of both."""
    host = canonical_url.partition("://")[2].partition("/")[0]
    terms = evidence.terms
    title = None if same_title(kept.terms, terms) else xxhash.xxh3_64_intdigest(array("H", terms).tobytes())
    return Copy(original, url_hash(canonical_url), url_hash(host), title)


def same_title(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether titles of these terms are alike, but for a few words more; not where either says nothing."""
    minimum = min(len(one), len(other))
    return minimum > 0 and _OF * len(set(one).intersection(other)) >= _ALIKE * minimum


class GuardTracker:
    """The guards' state. memory: of a snapshot, or None to begin."""

    def __init__(self, memory: GuardState | None = None) -> None:
        memory = memory or GuardState()
        self._groups = DuplicateClusters(memory.groups)
        self._shares = AnomalyShare(memory.decided, memory.recent, memory.before, memory.learned, memory.usual)
        self._sizes = Sizes(0, 0, 0)
        self._suspicious = False

    def memory(self) -> GuardState:
        """Return the state."""
        shares = self._shares
        return GuardState(
            groups=self._groups.pack(),
            decided=shares.decided,
            recent=shares.recent,
            before=shares.before,
            learned=shares.learned,
            usual=shares.usual,
        )

    def follow(self, copy: Copy | None) -> None:
        """Take in that one more page was decided: one that matched a kept page, or None."""
        self._suspicious = False
        if copy is not None:
            self._sizes = self._groups.grow(copy)
            self._suspicious = copy.title is not None or self._sizes.pages > CROWDED
        self._shares.mark(int(self._suspicious))

    def left(self, sequence: int) -> None:
        """Take in that the kept page at `sequence` left."""
        self._groups.drop(sequence)

    def objection(self, guards: Guards, name: Callable[[], str]) -> str | None:
        """Return why one of `guards` does not believe the match followed last, as a verdict's reason, or None.

        name: gives that of the kept page.
        """
        bounds = (
            (Guard.TITLES, self._sizes.titles, guards.max_titles, "pages under about {} other titles"),
            (Guard.HOSTS, self._sizes.hosts, guards.max_hosts, "pages of about {} hosts"),
            (Guard.PAGES, self._sizes.pages, guards.max_pages, "about {} pages"),
        )
        for guard, size, maximum, text in bounds:
            if maximum and size > maximum:
                return guard_reason(guard, f"{text.format(size)} match {name()}, more than {maximum}")
        if guards.surge_percent and self._suspicious and self._shares.above(guards.surge_percent):
            recently, usually = self._shares.percents
            text = f"{recently}% of the last {RECENT} pages are suspicious copies, usually {usually}%; this one of {name()}"
            return guard_reason(Guard.SURGE, text)
        return None
