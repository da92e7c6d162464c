"""From a candidate to a match: what the rule says of a kept page and a new one.

The index has found the candidate; here its distances are taken, its evidence is compared and the rule is asked.
"""

import math
from dataclasses import dataclass

from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Combined, Similarity, jaccard
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Distance

__all__ = ["Containment", "Match", "Matcher", "score_of"]

HELD = 0.9
"""Share of the smaller page's shingles, estimated, from which it stands whole in the other one."""

WORTH_A_LOOK = 0.15
"""Jaccard similarity below which nothing is looked at: one page holds the other beside five times as much, at most."""

MORE = 1.5
"""Letters of the longer page for one of the shorter, above which the rest is another article, or several."""


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate that the rule accepts: its sequence, distances, score (0 to 1) and the condition that held."""

    sequence: int
    distance: Distance
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Containment:
    """One page holds another whole, beside more than half as much again: no match, but worth a word.

    sequence: of the kept page. containment: estimated. contains: the new page holds the kept one, not the reverse.
    """

    sequence: int
    containment: float
    contains: bool

    @property
    def reason(self) -> str:
        """What a verdict says of it, before the name of the kept page."""
        return "contains" if self.contains else "is contained in"


class Matcher:
    """Asks `rule` of candidates."""

    def __init__(self, rule: MatchRule) -> None:
        self._rule = rule
        self._worth_a_look = min((WORTH_A_LOOK, *(row.jaccard for row in rule.verified)))

    def compare(self, entry: Entry, prepared: PreparedPage, evidence: Evidence) -> Match | Containment | None:
        """Return the match of `prepared`, whose evidence this is, with the candidate `entry`; None where there is none.

        A rule with a table also tells where one of the two holds the other whole.
        """
        if self._rule.verified:
            if evidence.rough_jaccard(entry.evidence) < self._worth_a_look:
                return None
            return _verified(self._rule, entry, prepared, evidence)
        distance = entry.distance_to(prepared.fingerprint)
        for near in self._rule.conditions:
            if _within(distance.words, near.words) and _within(distance.body, near.body):
                return Match(entry.sequence, distance, score_of(distance) or 0.0, str(near))
        combined = self._rule.combined
        return None if combined is None else _combined(combined, entry, evidence, distance)


def score_of(distance: Distance) -> float | None:
    """Similarity from 0 to 1: the cosine that SimHash estimates, cos(π·d/64), averaged over the channels.

    Source: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, section 3.
    """
    bits = [bit for bit in (distance.words, distance.body) if bit is not None]
    if not bits:
        return None
    return round(sum(max(0.0, math.cos(math.pi * bit / 64)) for bit in bits) / len(bits), 4)


def _verified(rule: MatchRule, entry: Entry, prepared: PreparedPage, evidence: Evidence) -> Match | Containment | None:
    kept = Evidence(entry.evidence)
    distance = entry.distance_to(prepared.fingerprint)
    likeness = Similarity(kept, evidence, distance)
    for row in rule.verified:
        if row.holds(likeness):
            return Match(entry.sequence, distance, round(likeness.jaccard, 4), row.name)
    if likeness.length_ratio <= MORE or likeness.containment < HELD:
        return None
    return Containment(entry.sequence, likeness.containment, evidence.letters > kept.letters)


def _combined(rule: Combined, entry: Entry, evidence: Evidence, distance: Distance) -> Match | None:
    if distance.words is None or distance.words > rule.radius:
        return None
    similarity = rule.similarity(distance.words, jaccard(Evidence(entry.evidence).metadata, evidence.metadata))
    if similarity < rule.threshold:
        return None
    return Match(entry.sequence, distance, round(float(similarity), 4), "combined similarity ≥ .25")


def _within(distance: int | None, bound: int | None) -> bool:
    return bound is None or (distance is not None and distance <= bound)
