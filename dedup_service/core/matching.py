"""From a candidate to a match: what the rule says of a kept page and a new one.

The index has found the candidate; here its distances are taken, its evidence is compared and the rule is asked.
"""

import math
from dataclasses import dataclass

from dedup_service.core.entries import Entry
from dedup_service.core.evidence.likeness import Likeness
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.fingerprint import PreparedPage
from dedup_service.core.metadata import jaccard
from dedup_service.core.rule import Combined, MatchRule
from dedup_service.core.verdict import Distance

__all__ = ["Match", "match", "score_of"]


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate that the rule accepts: its sequence, distances, score (0 to 1) and the condition that held."""

    sequence: int
    distance: Distance
    score: float
    reason: str


def match(rule: MatchRule, entry: Entry, prepared: PreparedPage, evidence: Evidence) -> Match | None:
    """Return the match of `prepared`, whose evidence this is, with the candidate `entry`; None where there is none."""
    if rule.verified:
        return _verified(rule, entry, prepared, evidence)
    distance = entry.distance_to(prepared.fingerprint)
    for near in rule.conditions:
        if _within(distance.words, near.words) and _within(distance.body, near.body):
            return Match(entry.sequence, distance, score_of(distance) or 0.0, str(near))
    return None if rule.combined is None else _combined(rule.combined, entry, evidence, distance)


def score_of(distance: Distance) -> float | None:
    """Likeness from 0 to 1: the cosine that SimHash estimates, cos(π·d/64), averaged over the channels.

    Source: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, section 3.
    """
    bits = [bit for bit in (distance.words, distance.body) if bit is not None]
    if not bits:
        return None
    return round(sum(max(0.0, math.cos(math.pi * bit / 64)) for bit in bits) / len(bits), 4)


def _verified(rule: MatchRule, entry: Entry, prepared: PreparedPage, evidence: Evidence) -> Match | None:
    likeness = Likeness(Evidence(entry.evidence), evidence)
    if likeness.jaccard < rule.least_jaccard:
        return None
    for row in rule.verified:
        if row.holds(likeness):
            distance = entry.distance_to(prepared.fingerprint)
            return Match(entry.sequence, distance, round(likeness.jaccard, 4), row.name)
    return None


def _combined(rule: Combined, entry: Entry, evidence: Evidence, distance: Distance) -> Match | None:
    if distance.words is None or distance.words > rule.radius:
        return None
    similarity = rule.similarity(distance.words, jaccard(Evidence(entry.evidence).metadata, evidence.metadata))
    if similarity < rule.threshold:
        return None
    return Match(entry.sequence, distance, round(float(similarity), 4), "combined similarity ≥ .25")


def _within(distance: int | None, bound: int | None) -> bool:
    return bound is None or (distance is not None and distance <= bound)
