"""The state that guards look at, and what they say of the next match.

    tracker.follow(copy_of(entry, prepared, evidence, url))    # None for a page that matched nothing
    reason = tracker.objection(guards, name of the kept page)  # None: the match is accepted

Facets, print views and mirrors have the text and the title of the kept page, or the text under one other
title. A frame has its text under many titles. A template has many texts under one title. A consent wall and an
error page have one text and one title, as a mirror and a facet have them: only their number tells. So a copy
is suspicious if
- its title is another one, and not the first other title among the kept page's copies;
- its text is another one, and more than CROWDED_TEXTS texts are;
- it is one of more than CROWDED_HOSTS hosts, or CROWDED_PAGES addresses.

Invariant: state and answers are a function of the copies in their order. They are the same from the
beginning, from `state` at any place, or from copies that a journal stored. Thresholds change answers, never
the state.

The share of suspicious pages among the last thousand, against the usual share.

The last thousand pages are a ring of marks. The usual share is learned from whole thousands that have left
the ring: the mean of all of them, and from the twentieth on an exponentially weighted mean. A thousand with
a quarter of all pages more than usual suspicious is not learned: a fault does not become usual by lasting,
and a surge ends when the share returns. All arithmetic is in integers, so the result is the same on every
machine.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import xxhash

from dedup_service.core.decision.duplicate_clusters import ClusterSizes, Copy, DuplicateClusters
from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Guard, guard_reason

RECENT = 1000
"""Pages in the ring."""

LEARNED = 20
"""Thousands over which the usual share adapts."""

_SCALE = 1 << 16
_MAX_EXCESS = RECENT // 4
"""Suspicious pages more than usual, above which a thousand is not learned."""


class AnomalyShare:
    """The marks so far.

    decided: pages. recent: marks of the last ones, uint8[RECENT] as bytes, a ring. before: suspicious pages
    in the latest whole thousand, which is learned when the next one is whole; -1 before there is one.
    learned: thousands learned, up to LEARNED. usual: suspicious pages in a thousand, in 1/2¹⁶.
    """

    def __init__(
        self, decided: int = 0, recent: bytes = bytes(RECENT), before: int = -1, learned: int = 0, usual: int = 0
    ) -> None:
        self.decided, self.before, self.learned, self.usual = decided, before, learned, usual
        self._ring = bytearray(recent)
        self._count = sum(recent)

    @property
    def recent(self) -> bytes:
        """The ring of marks; the next one goes to `decided` % RECENT."""
        return bytes(self._ring)

    @property
    def percents(self) -> tuple[int, int]:
        """Suspicious pages of a hundred: recently, and usually."""
        return self._count * 100 // RECENT, self.usual * 100 // (RECENT * _SCALE)

    def mark(self, suspicious: int) -> None:
        """Count one more page. suspicious: 1 or 0."""
        place = self.decided % RECENT
        self._count += suspicious - self._ring[place]
        self._ring[place] = suspicious
        self._go_on(1)

    def pass_by(self, pages: int) -> None:
        """Count more pages, none of them suspicious: the same as to mark each."""
        while pages:
            place = self.decided % RECENT
            part = min(pages, RECENT - place)
            self._count -= sum(self._ring[place : place + part])
            self._ring[place : place + part] = bytes(part)
            self._go_on(part)
            pages -= part

    def above(self, percent: int) -> bool:
        """Whether the share is more than `percent` points above the usual one, if that was learned."""
        return self.learned > 0 and self._count * _SCALE > self.usual + percent * RECENT * _SCALE // 100

    def _go_on(self, pages: int) -> None:
        """Count pages of one thousand that were marked."""
        self.decided += pages
        if self.decided % RECENT == 0:
            self._learn(self.before)
            self.before = self._count

    def _learn(self, suspicious: int) -> None:
        """Learn from a whole thousand that has left the ring; -1: there is none yet."""
        if suspicious < 0 or (self.learned and suspicious * _SCALE > self.usual + _MAX_EXCESS * _SCALE):
            return
        self.learned = min(self.learned + 1, LEARNED)
        self.usual += (suspicious * _SCALE - self.usual) // self.learned


CROWDED_TEXTS = 16
"""Copies of one kept page, and different texts among them, above which a copy with another text is suspicious.

In 16,936 pages of a crawl no cluster has more than three copies, which with the kept page are four pages.
"""

CROWDED_PAGES, CROWDED_HOSTS = 1250, 125
"""Addresses and hosts of copies above which each further copy is suspicious, whatever its title and text.

A quarter more than the thousand addresses and hundred hosts that must be accepted. Of clusters of that size a
tenth is estimated above the bound, and a surge needs two copies in five.
"""

COMMON_TERMS, OF_TERMS = 7, 10
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


def copy_of(kept: Entry, prepared: PreparedPage, evidence: Evidence, url: int) -> Copy:
    """Return a page that matches the kept page `kept`, as a copy of it. evidence, url: of the page, and its hash."""
    host, terms = prepared.page.canonical_url.partition("://")[2].partition("/")[0], evidence.terms
    title = 0 if same_title(Evidence(kept.evidence).terms, terms) else _of_terms(terms)
    text = 0 if prepared.body_hash in (None, kept.body_hash) else _low(prepared.body_hash)
    return Copy(kept.sequence, _low(url), _low(url_hash(host)), title, text)


def found_copy(kept: int, prepared: PreparedPage, url: int, *, same_title: bool, same_body: bool) -> Copy:
    """Return the same for the kept page at sequence `kept`. same_title, same_body: whether they are those of the page.

    A page without a body has none that is another one.
    """
    host = prepared.page.canonical_url.partition("://")[2].partition("/")[0]
    title = 0 if same_title else _of_terms(Evidence(prepared.evidence).terms)
    return Copy(kept, _low(url), _low(url_hash(host)), title, 0 if same_body else _low(prepared.body_hash or 0))


def same_title(kept: tuple[int, ...], copy: tuple[int, ...]) -> bool:
    """Whether a copy's title is that of its kept page, but for some added words. Both are terms of titles.

    No title is not another one. But a kept page without a title has none that a copy's could be equal to: its
    copies' titles count, or an untitled frame would absorb all articles of its site.
    """
    shorter = min(len(kept), len(copy))
    return not copy or (shorter > 0 and OF_TERMS * len(set(kept).intersection(copy)) >= COMMON_TERMS * shorter)


def _of_terms(terms: tuple[int, ...]) -> int:
    return _low(xxhash.xxh3_64_intdigest(array("H", terms).tobytes()))


def _low(hashed: int) -> int:
    return hashed & 0xFFFF_FFFF


class GuardTracker:
    """Follows what guards look at. state: from a snapshot, or None to begin with."""

    def __init__(self, state: GuardState | None = None) -> None:
        state = state or GuardState()
        self._clusters = DuplicateClusters(state.groups)
        self._share = AnomalyShare(state.decided, state.recent, state.before, state.learned, state.usual)
        self._sizes = ClusterSizes()
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
            self._suspicious = _is_suspicious(copy, self._sizes)
        self._share.mark(int(self._suspicious))

    def pass_by(self, pages: int) -> None:
        """Record more decided pages that matched nothing: the same as to follow each."""
        self._suspicious = False
        self._share.pass_by(pages)

    def forget(self, sequence: int) -> None:
        """Drop the cluster of the kept page at `sequence`, whose entry was removed."""
        self._clusters.drop(sequence)

    def objection(self, guards: Guards, name: Callable[[], str]) -> str | None:
        """Return why a guard refuses the copy followed last, as a verdict's reason; None if all accept it.

        name: returns the name of the kept page; called only for an objection.
        """
        sizes = self._sizes
        if sizes.titles > guards.max_titles or sizes.hosts > guards.max_hosts or sizes.pages > guards.max_pages:
            bounds = (
                (Guard.TITLES, sizes.titles, guards.max_titles, "pages under about {} other titles"),
                (Guard.HOSTS, sizes.hosts, guards.max_hosts, "pages of about {} hosts"),
                (Guard.PAGES, sizes.pages, guards.max_pages, "about {} pages"),
            )
            for guard, size, limit, text in bounds:
                if limit and size > limit:
                    return guard_reason(guard, f"{text.format(size)} match {name()}, more than {limit}")
        if guards.surge_percent and self._suspicious and self._share.above(guards.surge_percent):
            recently, usually = self._share.percents
            shares = f"{recently}% of the last {RECENT} pages are suspicious copies, usually {usually}%"
            return guard_reason(Guard.SURGE, f"{shares}; this one of {name()}")
        return None


def _is_suspicious(copy: Copy, sizes: ClusterSizes) -> bool:
    """Whether a copy is suspicious in a cluster that has these sizes with it."""
    if copy.title and sizes.titles > 1:
        return True
    # Pages, too: one address that is fetched often may have another text each time.
    if copy.text and min(sizes.texts, sizes.pages) > CROWDED_TEXTS:
        return True
    return sizes.hosts > CROWDED_HOSTS or sizes.pages > CROWDED_PAGES
