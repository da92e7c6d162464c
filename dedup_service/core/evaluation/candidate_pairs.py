"""A bounded selection of a crawl's candidate pairs, with their margins: pairs to label.

How: as in a decision, but every page stays in the index, whatever the rule says of it. Of equal bodies only
the first page counts: identical texts are uninformative labels. Visits of one URL are not compared.

Invariants: the same pages in the same order give the same pairs. A page is in at most MAX_PAIRS pairs with
earlier pages on each side of the rule.
"""

from heapq import nsmallest
from urllib.parse import urlsplit

from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.evaluation.active_sampling import CandidatePair, PairGroups, margin
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import MAX_RADIUS, Similarity
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.url import url_hash

MAX_COMPARED = 64
"""Earlier candidates that a page is compared with, the latest ones: a template can have thousands."""

JACCARD_SLACK = 0.2
"""How far below every Jaccard bound of the rule a pair is still compared."""

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
        self._candidates = LocalCandidates(search_rule)
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
        entry = Entry.from_page(place, prepared, url_hash(prepared.page.canonical_url))
        host = urlsplit(prepared.page.canonical_url).hostname or ""
        self._candidates.announce(PageColumns.of_pages([(place, prepared)], 0))
        self._candidates.begin(0)  # no page leaves the window, in which all are compared
        self._compare(entry, host, prepared)
        self._candidates.add()
        self._candidates.finish()
        self._entries[place] = (entry, host)

    def _compare(self, entry: Entry, host: str, prepared: PreparedPage) -> None:
        evidence, pairs = Evidence(entry.evidence), []
        for candidate in self._candidates.find(evidence)[-MAX_COMPARED:]:
            place = candidate.sequence
            earlier, other = self._entries[place]
            if earlier.url_hash == entry.url_hash or evidence.rough_jaccard(earlier.evidence) < self._min_jaccard:
                continue
            similarity = Similarity(
                Evidence(earlier.evidence),
                evidence,
                earlier.distance_to(prepared.fingerprint),
                same_host=earlier.host == entry.host,
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
