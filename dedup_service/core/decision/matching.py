"""From a candidate to a match: applies the rule to a kept page and a new one.

An index has found the candidate. Pages with the same text match under every rule. Otherwise distances are
computed, evidence is compared, and the rule decides.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.packed import Evidence, size_of
from dedup_service.core.evidence.similarity import NONE_COMMON, Combined, Similarity, jaccard
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.compiled_rows import DISTANT, UNREADABLE, CompiledRows
from dedup_service.core.rules.match_row import LONG
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Distance

SAME_TEXT = "same text"
"""The reason of a match of equal texts."""

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

    @property
    def rank(self) -> float:
        """The near miss with the highest rank gives the reason: 0 to 1."""
        return self.containment


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A row would hold without its bound on figures: reported, but not a match.

    sequence: of the kept page. jaccard: of the two, 0 to 1.
    """

    sequence: int
    jaccard: float

    @property
    def reason(self) -> str:
        """The beginning of a verdict's reason; the name of the kept page follows."""
        return "differs in a figure from"

    @property
    def rank(self) -> float:
        """Above that of any `Containment`: 1 to 2."""
        return 1.0 + self.jaccard


NearMiss = Containment | FigureChange
"""A candidate that is no match, but that the verdict's reason names."""


class Matcher:
    """Compares pages with candidates by `rule`."""

    def __init__(self, rule: MatchRule) -> None:
        self._rule = rule
        self._min_jaccard = min_rough_jaccard(rule)
        self._rows = [(row, *row.bounds()) for row in rule.verified]
        self._but_for_figures = tuple(replace(row, figures=None) for row in rule.verified if row.figures)
        self._compiled = CompiledRows.of((*rule.verified, *self._but_for_figures), self._min_jaccard)

    @property
    def compiled(self) -> CompiledRows | None:
        """The rule table, and behind it its rows without their bounds on figures, which make near misses.

        None if candidates are compared by something else.
        """
        return self._compiled if self._rule.verified else None

    def compare(
        self,
        entry: Entry,
        prepared: PreparedPage,
        evidence: Evidence,
        common: npt.NDArray[np.uint32] = NONE_COMMON,
        *,
        same_host: bool = False,
    ) -> Match | NearMiss | None:
        """Return the match of a page with a candidate, or None.

        entry: the candidate. evidence: that of `prepared`. common: values of sentences that the host of either
        page repeats, ascending: uint32[n]. same_host: whether both are of one host. With a rule table, returns a
        `NearMiss` if there is no match but the verdict should name the candidate.
        """
        distance = entry.distance_to(prepared.fingerprint)
        if _is_same_text(entry, prepared, evidence):
            return Match(entry.sequence, distance, 1.0, SAME_TEXT)
        if self._rule.verified:
            return self._by_rows(entry, evidence, distance, common, same_host)
        for condition in self._rule.conditions:
            if _within(distance.words, condition.words) and _within(distance.body, condition.body):
                return Match(entry.sequence, distance, score_of(distance) or 0.0, str(condition))
        combined = self._rule.combined
        return None if combined is None else _combined(combined, entry, evidence, distance)

    def _by_rows(
        self, entry: Entry, evidence: Evidence, distance: Distance, common: npt.NDArray[np.uint32], same_host: bool
    ) -> Match | NearMiss | None:
        """Return what the rule table says: compiled, or by its definition where that is not possible."""
        rows, packed = self._compiled, evidence.packed
        if (
            rows is None
            or (found := rows.first(entry.evidence, packed, common, distance, same_host=same_host)) == UNREADABLE
        ):
            return self._by_similarity(entry, evidence, distance, common, same_host)
        if found == DISTANT:
            return None
        verified = self._rule.verified
        if 0 <= found < len(verified):
            return Match(entry.sequence, distance, round(rows.quantity("jaccard"), 4), verified[found].name)
        if found >= 0:
            return FigureChange(entry.sequence, rows.quantity("jaccard"))
        return _contained(entry, evidence, rows.quantity("length_ratio"), rows.quantity("containment"))

    def _by_similarity(
        self, entry: Entry, evidence: Evidence, distance: Distance, common: npt.NDArray[np.uint32], same_host: bool
    ) -> Match | NearMiss | None:
        if evidence.rough_jaccard(entry.evidence) < self._min_jaccard:
            return None
        similarity = Similarity(Evidence(entry.evidence), evidence, distance, common, same_host)
        for row, upper, lower in self._rows:
            if row.holds_within(similarity, upper, lower):
                return Match(entry.sequence, distance, round(similarity.jaccard, 4), row.name)
        if any(row.holds(similarity) for row in self._but_for_figures):
            return FigureChange(entry.sequence, similarity.jaccard)
        return _contained(entry, evidence, similarity.length_ratio, similarity.containment)


def body_decides(packed: bytes) -> bool:
    """Whether a body with this evidence is long enough for an equal one to be a copy under any title."""
    return size_of(packed) >= LONG


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


def _contained(entry: Entry, evidence: Evidence, length_ratio: float, containment: float) -> Containment | None:
    if length_ratio <= MIN_LENGTH_RATIO or containment < CONTAINED:
        return None
    return Containment(entry.sequence, containment, evidence.letters > Evidence(entry.evidence).letters)


def _is_same_text(entry: Entry, prepared: PreparedPage, evidence: Evidence) -> bool:
    """Whether title and body are the same, or the body alone if it is long enough to say so."""
    if prepared.text_hash is not None and prepared.text_hash == entry.text_hash:
        return True
    if prepared.body_hash is None or prepared.body_hash != entry.body_hash:
        return False
    return evidence.size >= LONG and body_decides(entry.evidence)


def _combined(rule: Combined, entry: Entry, evidence: Evidence, distance: Distance) -> Match | None:
    if distance.words is None or distance.words > rule.radius:
        return None
    similarity = rule.similarity(distance.words, jaccard(Evidence(entry.evidence).metadata, evidence.metadata))
    if similarity < rule.threshold:
        return None
    return Match(entry.sequence, distance, round(float(similarity), 4), "combined similarity ≥ .25")


def _within(distance: int | None, bound: int | None) -> bool:
    return bound is None or (distance is not None and distance <= bound)
