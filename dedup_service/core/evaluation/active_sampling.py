"""Active sampling: the pairs that a person should label, those that the rule is least sure of.

Margin: how far a pair is from the other side of the rule. A row of the table is as strong as its weakest
bound, the rule as its strongest row. The margin is therefore the largest, over the rows, of the smallest
slack; it is at least 0 if and only if the rule calls the pair a match. Shares count as they are; counts,
ratios and letters are scaled to a similar range.

How: candidates are taken by the size of their margin, in turn from both sides of the rule. A page, and a
group of pages that the rule calls copies of each other, is shown once. A second pair of the same two hosts
comes after the first pair of all others. The seed orders equal margins.

Invariant: a choice of n pairs begins with the choice of fewer, so a request for more continues where the
last ended.
Source: uncertainty sampling; Lewis and Gale, "A sequential algorithm for training text classifiers", SIGIR
1994.

A bounded selection of a crawl's candidate pairs, with their margins: pairs to label.

How: as in a decision, but every page stays in the index, whatever the rule says of it. Of equal bodies only
the first page counts: identical texts are uninformative labels. Visits of one URL are not compared.

Invariants: the same pages in the same order give the same pairs. A page is in at most MAX_PAIRS pairs with
earlier pages on each side of the rule.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, nsmallest
from itertools import islice
from urllib.parse import urlsplit

import numpy as np

from dedup_service._native import Entry
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entries import distance_between, entry_of_page
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import MAX_RADIUS, Similarity
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.match_row import UPPER_BOUNDS, MatchRow
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.core.rules.rule import BITS, DistanceBound, MatchRule
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Distance

MAX_COMPARED = 64
"""Earlier candidates that a page is compared with, the latest ones: a template can have thousands."""

JACCARD_SLACK = 0.2
"""How far below every Jaccard bound of the rule a pair is still compared."""

_EVERY_PAGE = 1 << 40
"""Pages of a window that none leaves, so that each page is compared with all."""

MAX_PAIRS = 4
"""Pairs of a page with earlier ones, on each side of the rule."""


class CandidatePairs:
    """Collects pairs, by the places of their pages from 0, and the groups of pages that the rule joins."""

    def __init__(self, rule: MatchRule, *, nearest: bool = True) -> None:
        """Start empty. nearest: keep the pairs of a page nearest to the rule's border; else the latest."""
        radii = (MAX_RADIUS, MAX_RADIUS) if not rule.verified else (rule.radius("body"), rule.radius("words"))
        bounds = tuple(
            DistanceBound(**{name: bits})
            for name, bits in zip(("body", "words"), radii, strict=True)
            if bits is not None
        )
        search_rule = MatchRule(bounds, keys=True, verified=rule.verified or PROFILES[DEFAULT_PROFILE].verified)
        self._rule, self._nearest = rule, nearest
        self._min_jaccard = min((row.jaccard for row in rule.verified), default=-1.0) - JACCARD_SLACK
        self._decider = Decider(search_rule, "", self, layout=IndexLayout(window=_EVERY_PAGE))
        self._entries: dict[int, tuple[Entry, str]] = {}
        self._bodies: set[int] = set()
        self._pages = 0
        self.pairs: list[CandidatePair] = []
        self.groups = PairGroups()

    def add(self, prepared: PreparedPage) -> None:
        """Add the next page of the crawl."""
        place, self._pages = self._pages, self._pages + 1
        if prepared.body_hash is None or prepared.body_hash in self._bodies:
            return
        self._bodies.add(prepared.body_hash)
        entry = entry_of_page(place, prepared, url_hash(prepared.page.canonical_url))
        host = urlsplit(prepared.page.canonical_url).hostname or ""
        self._compare(entry, host, prepared)
        self._decider.replay([(place, prepared)], [(True, None, None)])
        self._entries[place] = (entry, host)

    def name(self, sequence: int) -> tuple[str, str]:
        """Return a placeholder: no page is decided."""
        return (str(sequence), "")

    def _compare(self, entry: Entry, host: str, prepared: PreparedPage) -> None:
        evidence, pairs = Evidence(entry.evidence), []
        for place in self._decider.candidates(entry.sequence, prepared)[-MAX_COMPARED:]:
            earlier, other = self._entries[place]
            if earlier.url_hash == entry.url_hash or evidence.rough_jaccard(earlier.evidence) < self._min_jaccard:
                continue
            similarity = Similarity(
                Evidence(earlier.evidence),
                evidence,
                distance_between(earlier, prepared.fingerprint),
                same_host=earlier.host == entry.host,
                card=self._rule.card,
            )
            rule_margin = margin(self._rule, similarity)
            pairs.append(CandidatePair(place, entry.sequence, rule_margin, (min(host, other), max(host, other))))
            if rule_margin >= 0:
                self.groups.join(place, entry.sequence)
        for side in (True, False):
            same_side = (pair for pair in pairs if (pair.margin >= 0) is side)
            self.pairs += nsmallest(
                MAX_PAIRS, same_side, key=lambda pair: abs(pair.margin) if self._nearest else -pair.a
            )


_SCALE = {
    "min_letters": 160.0,
    "score": 4.0,
    "length_ratio": 2.0,
    "words_distance": 64.0,
    "body_distance": 64.0,
}
"""Differences that count as much as a whole share; all other bounds are shares."""

Row = tuple["CandidatePair", tuple[int, int]]
"""A pair and the groups of its pages."""

_FAR = -1.0
"""The margin of a pair that cannot be compared, and the smallest margin."""


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """Two pages by their places in the crawl, the earlier first. margin: see the module. hosts: sorted."""

    a: int
    b: int
    margin: float
    hosts: tuple[str, str]


def margin(rule: MatchRule, similarity: Similarity) -> float:
    """Return how far a pair is inside (at least 0) or outside (below 0) of what `rule` calls a match.

    A rule without a table is compared by distance, in shares of 64 bits; -1 if a fingerprint is absent.
    """
    if rule.verified:
        return max(_row_margin(row, similarity) for row in rule.verified) + 0.0  # + 0.0: -0.0 and 0.0 must sort alike
    return max((_near_margin(near, similarity.distance) for near in rule.conditions), default=_FAR)


def _row_margin(row: MatchRow, similarity: Similarity) -> float:
    slacks: list[float] = []
    for name, bound in row.to_dict().items():
        if name == "series":  # yes or no: a bound that holds is not near
            if similarity.series > bound:
                return _FAR
        elif name != "name":
            slack = getattr(similarity, name) - bound
            slacks.append((-slack if name in UPPER_BOUNDS else slack) / _SCALE.get(name, 1.0))
    return max(_FAR, min(slacks))


def _near_margin(near: DistanceBound, distance: Distance) -> float:
    slacks = []
    for bound, bits in ((near.words, distance.words), (near.body, distance.body)):
        if bound is not None:
            slacks.append(_FAR if bits is None else (bound - bits) / BITS)
    return max(_FAR, min(slacks))


class PairGroups:
    """Union-find of pages, by place: each group is named by its smallest place."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def group_of(self, page: int) -> int:
        """Return the name of the group of a page: the page itself if nothing was joined to it."""
        while (parent := self._parent.get(page, page)) != page:
            self._parent[page] = page = self._parent.get(parent, parent)  # halves the path
        return page

    def join(self, one: int, other: int) -> None:
        """Join the groups of two pages."""
        smaller, larger = sorted((self.group_of(one), self.group_of(other)))
        if smaller != larger:
            self._parent[larger] = smaller


def informative_pairs(
    pairs: Sequence[CandidatePair], groups: PairGroups, max_pairs: int, seed: int, *, at_random: bool = False
) -> list[CandidatePair]:
    """Return at most `max_pairs` of `pairs`, in the order in which to show them.

    groups: of pages that the rule joins. at_random: in an order that depends on the seed alone, so that the
    labels are a sample of all candidates.
    """
    chances = np.random.default_rng(seed).permutation(len(pairs)).tolist()
    order = sorted(zip(pairs, chances, strict=True), key=lambda row: (0.0 if at_random else abs(row[0].margin), row[1]))
    rows = [(pair, (groups.group_of(pair.a), groups.group_of(pair.b))) for pair, _ in order]
    shown: set[int] = set()
    inside = _one_of_each([row for row in rows if row[0].margin >= 0], shown)
    outside = _one_of_each([row for row in rows if row[0].margin < 0], shown)
    return list(islice(_in_turn((inside, outside)), max_pairs))


def _one_of_each(rows: Sequence[Row], shown: set[int]) -> Iterator[CandidatePair]:
    """Yield pairs whose groups were not shown yet, in rounds: one for each pair of hosts in a round."""
    waiting: dict[tuple[str, str], deque[int]] = {}
    for place, (pair, _) in enumerate(rows):
        waiting.setdefault(pair.hosts, deque()).append(place)
    heap = [(0, queue.popleft(), hosts) for hosts, queue in waiting.items()]
    heapify(heap)
    while heap:
        turn, place, hosts = heappop(heap)
        pair, groups = rows[place]
        fresh = shown.isdisjoint(groups)
        if fresh:
            shown.update(groups)
            yield pair
        if waiting[hosts]:
            heappush(heap, (turn + fresh, waiting[hosts].popleft(), hosts))


def _in_turn(sides: Sequence[Iterator[CandidatePair]]) -> Iterator[CandidatePair]:
    """Yield from the sides in turn; each pair is yielded before the next side is advanced."""
    open_sides = deque(sides)
    while open_sides:
        side = open_sides.popleft()
        pair = next(side, None)
        if pair is not None:
            yield pair
            open_sides.append(side)
