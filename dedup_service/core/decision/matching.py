"""From a candidate to a match: applies the rule to a kept page and a new one.

An index has found the candidate. Here distances are computed, evidence is compared, and the rule decides.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Combined, Similarity, jaccard
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Distance

__all__ = ["Containment", "Match", "Matcher", "body_decides", "min_rough_jaccard", "score_of"]

LONG = 160
"""Letters from which shingles suffice: about fifty tokens, 300 letters of an alphabet.

Below, the title is part of the text: a stock phrase under another title is another page.
"""

CONTAINED = 0.9
"""Estimated share of the smaller page's shingles from which the other page contains it completely."""

MIN_JACCARD = 0.15
"""Rough Jaccard similarity below which a candidate is not compared.

At 0.15 one page may contain the other beside five times as much text.
"""

MIN_LENGTH_RATIO = 1.5
"""Letters of the longer page for one of the shorter, above which the rest is another article, or several."""


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate that the rule accepts. score: 0 to 1. reason: the row or condition that held."""

    sequence: int
    distance: Distance
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Containment:
    """One page contains the other completely and is more than half as long again: reported, but not a match.

    sequence: of the kept page. containment: estimated share, 0 to 1.
    contains: True if the new page contains the kept one, False for the reverse.
    """

    sequence: int
    containment: float
    contains: bool

    @property
    def reason(self) -> str:
        """The beginning of a verdict's reason; the name of the kept page follows."""
        return "contains" if self.contains else "is contained in"


class Matcher:
    """Compares pages with candidates by `rule`."""

    def __init__(self, rule: MatchRule) -> None:
        self._rule = rule
        self._min_jaccard = min_rough_jaccard(rule)

    def compare(
        self, entry: Entry, prepared: PreparedPage, evidence: Evidence, common: npt.NDArray[np.uint32] | None = None
    ) -> Match | Containment | None:
        """Return the match of a page with the candidate `entry`, or None. evidence: that of `prepared`.

        With a rule table, returns a `Containment` if there is no match but one page contains the other.
        """
        if _same_text(entry, prepared):
            return Match(entry.sequence, entry.distance_to(prepared.fingerprint), 1.0, "same text")
        if self._rule.verified:
            if evidence.rough_jaccard(entry.evidence) < self._min_jaccard:
                return None
            return _verified(self._rule, entry, prepared, evidence)
        distance = entry.distance_to(prepared.fingerprint)
        for condition in self._rule.conditions:
            if _within(distance.words, condition.words) and _within(distance.body, condition.body):
                return Match(entry.sequence, distance, score_of(distance) or 0.0, str(condition))
        combined = self._rule.combined
        return None if combined is None else _combined(combined, entry, evidence, distance)


def body_decides(packed: bytes) -> bool:
    """Whether a body with this evidence is long enough for an equal one to be a copy under any title."""
    return Evidence(packed).size >= LONG


def min_rough_jaccard(rule: MatchRule) -> float:
    """Return the rough Jaccard similarity below which no row of `rule` can hold."""
    return min((MIN_JACCARD, *(row.jaccard for row in rule.verified)))


def score_of(distance: Distance) -> float | None:
    """Similarity from 0 to 1: the cosine that SimHash estimates, cos(π·d/64), averaged over the channels.

    Source: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, section 3.
    """
    bits = [bit for bit in (distance.words, distance.body) if bit is not None]
    if not bits:
        return None
    return round(sum(max(0.0, math.cos(math.pi * bit / 64)) for bit in bits) / len(bits), 4)


def _same_text(entry: Entry, prepared: PreparedPage) -> bool:
    if entry.text_hash is not None and entry.text_hash == prepared.text_hash:
        return True
    return entry.body_hash is not None and entry.body_hash == prepared.body_hash and body_decides(prepared.evidence)


def _verified(rule: MatchRule, entry: Entry, prepared: PreparedPage, evidence: Evidence) -> Match | Containment | None:
    kept = Evidence(entry.evidence)
    distance = entry.distance_to(prepared.fingerprint)
    similarity = Similarity(kept, evidence, distance)
    for row in rule.verified:
        if row.holds(similarity):
            return Match(entry.sequence, distance, round(similarity.jaccard, 4), row.name)
    if similarity.length_ratio <= MIN_LENGTH_RATIO or similarity.containment < CONTAINED:
        return None
    return Containment(entry.sequence, similarity.containment, evidence.letters > kept.letters)


def _combined(rule: Combined, entry: Entry, evidence: Evidence, distance: Distance) -> Match | None:
    if distance.words is None or distance.words > rule.radius:
        return None
    similarity = rule.similarity(distance.words, jaccard(Evidence(entry.evidence).metadata, evidence.metadata))
    if similarity < rule.threshold:
        return None
    return Match(entry.sequence, distance, round(float(similarity), 4), "combined similarity ≥ .25")


def _within(distance: int | None, bound: int | None) -> bool:
    return bound is None or (distance is not None and distance <= bound)
