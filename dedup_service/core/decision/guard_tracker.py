"""The state that guards look at, and what they say of the next match.

    tracker.follow(copy_of(sequence, kept, url, evidence))     # None for a page that matched nothing
    reason = tracker.objection(guards, name of the kept page)  # None: the match is accepted

A copy is suspicious if its title shares little with the kept page's, or if the kept page already has sixteen
copies or more; in a crawl only a few texts that are everywhere have so many. Re-crawls and mirrors are not
suspicious: their copies keep their titles, and each copy belongs to another cluster.

Invariant: state and answers are a function of the copies in their order. They are the same from the
beginning, from `state` at any place, or from copies that a journal stored. Thresholds change answers, never
the state.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import xxhash

from dedup_service.core.decision.anomaly_share import RECENT, AnomalyShare
from dedup_service.core.decision.duplicate_clusters import ClusterSizes, Copy, DuplicateClusters
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.rules.guards import Guards
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Guard, guard_reason

__all__ = ["GuardState", "GuardTracker", "copy_of", "same_title", "title_hash"]

CROWDED = 16
"""Copies of one kept page above which each further copy is suspicious.

In 16,936 pages of a crawl no cluster has more than three copies, which with the kept page are four pages.
"""

_COMMON_TERMS, _OF_TERMS = 7, 10
"""Titles are the same if 7 in 10 terms of the shorter one are in the other: a host's name may be added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    """The state of a `GuardTracker`. groups: see `DuplicateClusters.pack`; the rest: see `AnomalyShare`.

    Snapshots store the fields by name, so the names are a file format.
    """

    groups: bytes = b""
    decided: int = 0
    recent: bytes = bytes(RECENT)
    before: int = -1
    learned: int = 0
    usual: int = 0


def copy_of(original: int, kept: Evidence, canonical_url: str, evidence: Evidence) -> Copy:
    """Return the page at `canonical_url`, with this evidence, as a copy of the kept page `original`."""
    host = canonical_url.partition("://")[2].partition("/")[0]
    terms = evidence.terms
    title = None if same_title(kept.terms, terms) else title_hash(terms)
    return Copy(original, url_hash(canonical_url), url_hash(host), title)


def title_hash(terms: tuple[int, ...]) -> int:
    """Return the unsigned 64-bit hash of a title with these terms."""
    return xxhash.xxh3_64_intdigest(array("H", terms).tobytes())


def same_title(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether titles of these terms are the same, but for some added words; False if either has none."""
    shorter = min(len(one), len(other))
    return shorter > 0 and _OF_TERMS * len(set(one).intersection(other)) >= _COMMON_TERMS * shorter


class GuardTracker:
    """Follows what guards look at. state: from a snapshot, or None to begin with."""

    def __init__(self, state: GuardState | None = None) -> None:
        state = state or GuardState()
        self._clusters = DuplicateClusters(state.groups)
        self._share = AnomalyShare(state.decided, state.recent, state.before, state.learned, state.usual)
        self._sizes = ClusterSizes(0, 0, 0)
        self._suspicious = False

    def state(self) -> GuardState:
        """Return the state, for a snapshot."""
        share = self._share
        return GuardState(
            groups=self._clusters.pack(),
            decided=share.decided,
            recent=share.recent,
            before=share.before,
            learned=share.learned,
            usual=share.usual,
        )

    def follow(self, copy: Copy | None) -> None:
        """Record one more decided page. copy: None if it matched nothing."""
        self._suspicious = False
        if copy is not None:
            self._sizes = self._clusters.add(copy)
            self._suspicious = copy.title is not None or self._sizes.pages > CROWDED
        self._share.mark(int(self._suspicious))

    def forget(self, sequence: int) -> None:
        """Drop the cluster of the kept page at `sequence`, whose entry was removed."""
        self._clusters.drop(sequence)

    def objection(self, guards: Guards, name: Callable[[], str]) -> str | None:
        """Return why a guard refuses the copy followed last, as a verdict's reason; None if all accept it.

        name: returns the name of the kept page; called only for an objection.
        """
        bounds = (
            (Guard.TITLES, self._sizes.titles, guards.max_titles, "pages under about {} other titles"),
            (Guard.HOSTS, self._sizes.hosts, guards.max_hosts, "pages of about {} hosts"),
            (Guard.PAGES, self._sizes.pages, guards.max_pages, "about {} pages"),
        )
        for guard, size, limit, text in bounds:
            if limit and size > limit:
                return guard_reason(guard, f"{text.format(size)} match {name()}, more than {limit}")
        if guards.surge_percent and self._suspicious and self._share.above(guards.surge_percent):
            recently, usually = self._share.percents
            shares = f"{recently}% of the last {RECENT} pages are suspicious copies, usually {usually}%"
            return guard_reason(Guard.SURGE, f"{shares}; this one of {name()}")
        return None
