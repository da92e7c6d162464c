"""Measure labelled pairs on each channel: the values that thresholds are chosen on.

The value of the rule comes from the decider itself, tried at several offsets as `evaluate` tries it at one.
So `evaluate --profile` reproduces the figures of the chosen threshold.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

import numpy as np

from dedup_service.core.decision.entries import distance_between
from dedup_service.core.evaluation.calibration import (
    Calibration,
    Channel,
    Curve,
    curve_of,
    moved_bound,
    offsets_of,
    tightened,
    tightest_offset,
)
from dedup_service.core.evaluation.cross_validation import folds_of, left_out
from dedup_service.core.evaluation.fitting import FACTORS_FROM, POINTS_FROM, Flags, Floats, refitted, scores
from dedup_service.core.evaluation.scoring import LabelledPair
from dedup_service.core.evidence.card import QUANTITIES, Card
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import MAX_RADIUS, Similarity
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.rule import BITS, MatchRule
from dedup_service.core.url import host_hash
from dedup_service.core.verdict import Distance, VerdictKind
from dedup_service.interfaces.cli.commands.pairs import Comparer

DISTANCES = tuple(float(bits) for bits in range(BITS + 1))

WORDS = Channel("words", DISTANCES, largest=MAX_RADIUS)
BODY = Channel("body", DISTANCES, largest=MAX_RADIUS)
JACCARD = Channel("jaccard", tuple(round(step / 100, 2) for step in range(100, -1, -1)), at_least=True)
RULE = "rule"

THRESHOLD, FACTORS, POINTS = "threshold", "factors", "points"
"""What is fitted, as the report names it: with factors and points of the card, a threshold too."""

_ANY_SCORE = 1000.0
"""An offset beyond all scores."""

NOT_FLAGGED = frozenset({VerdictKind.UNIQUE, VerdictKind.UNDECIDED})


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """The values of a pair on each channel.

    words, body: distances in bits. jaccard: estimated. rule: the tightest offset that flags the pair.
    None: the channel cannot compare the pages (too short, no text), or no offset flags the pair.
    quantities: those of the score. bound: the score from which the rule flags the pair; nan if the score does not
    decide: the texts are equal, or another bound fails.
    """

    words: float | None
    body: float | None
    jaccard: float | None
    rule: float | None
    quantities: tuple[float, ...] = (0.0,) * len(QUANTITIES)
    bound: float = math.nan


class PairMeasurer:
    """Measures pairs by the family of `rule`, in one space; ConfigurationError if it has no family."""

    def __init__(self, rule: MatchRule, space_id: str) -> None:
        self.rule, self.space_id = rule, space_id
        # Of equally good offsets, the one nearest to the unchanged profile is chosen.
        self.channel = Channel(RULE, offsets_of(rule), at_least=True, home=0.0)
        self._comparers: dict[float, Comparer] = {}

    def measure(self, a: PreparedPage, b: PreparedPage) -> MeasuredPair:
        """Return the values of `b` after `a`."""
        comparable = a.reason is None and b.reason is None
        distance = distance_between(a.fingerprint, b.fingerprint) if comparable else Distance()
        offset = tightest_offset(partial(self.flags, a, b), self.channel.thresholds)
        one, other = Evidence(a.evidence), Evidence(b.evidence)
        if not (one.shingles and other.shingles):
            return MeasuredPair(distance.words, distance.body, None, offset)
        same_host = host_hash(a.page.canonical_url) == host_hash(b.page.canonical_url)
        pages = Similarity(one, other, distance, same_host=same_host, card=self.rule.card)
        holding = [row.score for row in self.rule.verified if row.score is not None and _but_for_score(row, pages)]
        decides = self.flags(a, b, -_ANY_SCORE) and not self.flags(a, b, _ANY_SCORE)
        bound = min(holding, default=math.nan) if decides else math.nan
        values = tuple(value for _, value, _ in pages.points)
        return MeasuredPair(distance.words, distance.body, pages.jaccard, offset, values, bound)

    def flags(self, a: PreparedPage, b: PreparedPage, offset: float) -> bool:
        """Return whether the rule at this offset flags `b` after `a`: neither unique nor undecided."""
        comparer = self._comparers.get(offset)
        if comparer is None:
            comparer = self._comparers[offset] = Comparer(tightened(self.rule, offset), self.space_id)
        return VerdictKind(comparer.compare(a, b)["verdict"]) not in NOT_FLAGGED


def _but_for_score(row: MatchRow, pages: Similarity) -> bool:
    return replace(row, score=None).holds(pages)


def offsets_by(card: Card, measured: Sequence[MeasuredPair]) -> Floats:
    """Return the tightest offset that flags each pair if the rule has this card: float64[n]; nan if none does."""
    bounds = np.array([row.bound for row in measured])
    offsets = np.array([math.nan if row.rule is None else row.rule for row in measured])
    by_score = scores(card, np.array([row.quantities for row in measured])) - bounds
    return np.where(np.isnan(bounds), offsets, by_score)


def card_of(
    card: Card, pairs: Sequence[LabelledPair], measured: Sequence[MeasuredPair], among: Flags, *, all_points: bool
) -> Card:
    """Return the card fitted on those of some pairs that the score decides; as it is if they are of one kind."""
    truth = [
        (row.quantities, pair.duplicate)
        for row, pair, is_in in zip(measured, pairs, among, strict=True)
        if is_in and pair.duplicate is not None and not math.isnan(row.bound)
    ]
    copies = np.array([copy for _, copy in truth], np.bool_)
    if copies.all() or not copies.any():
        return card
    return refitted(card, np.array([values for values, _ in truth]), copies, all_points=all_points)


def calibrated(
    pairs: Sequence[LabelledPair],
    prepared: Mapping[str, PreparedPage],
    measurer: PairMeasurer,
    precision: float,
    *,
    confident: bool,
) -> tuple[MatchRule, Calibration]:
    """Return the rule, with a card of its own if that finds more of what is left out, and its calibration.

    pairs: their pages are in `prepared`. ConfigurationError if the labels are not enough to choose by.
    """
    rule, labels = measurer.rule, [pair.duplicate for pair in pairs]
    measured = [measurer.measure(prepared[pair.a], prepared[pair.b]) for pair in pairs]
    found = Calibration(precision, _curves(labels, measured, measurer.channel), confident)
    by, folds = folds_of(pairs, [_hosts(prepared[pair.a], prepared[pair.b]) for pair in pairs])
    offsets = offsets_by(rule.card, measured)
    tried = {THRESHOLD: left_out(found, measurer.channel, labels, folds, offsets, lambda _: offsets)}
    count = len(labels) - labels.count(None)
    as_it_is = next(point for point in found.curve(RULE).points if not point.threshold)
    if moved_bound(rule) == "score" and count >= FACTORS_FROM:
        way, all_points = (POINTS, True) if count >= POINTS_FROM else (FACTORS, False)

        def card_by(among: Flags) -> Card:
            return card_of(rule.card, pairs, measured, among, all_points=all_points)

        tried[way] = left_out(
            found, measurer.channel, labels, folds, offsets, lambda among: offsets_by(card_by(among), measured)
        )
        if tried[way].f1 > tried[THRESHOLD].f1:
            rule = replace(rule, card=card_by(np.ones(len(pairs), np.bool_)))
            measurer = PairMeasurer(rule, measurer.space_id)
            measured = [measurer.measure(prepared[pair.a], prepared[pair.b]) for pair in pairs]
    sources = (by, len(np.unique(folds)))
    return rule, Calibration(
        precision, _curves(labels, measured, measurer.channel), confident, as_it_is, tried, sources
    )


def _hosts(*pages: PreparedPage) -> str:
    return " ".join(sorted(urlsplit(page.page.canonical_url).hostname or "" for page in pages))


def _curves(labels: Sequence[bool | None], measured: Sequence[MeasuredPair], rule: Channel) -> tuple[Curve, ...]:
    return tuple(
        curve_of(channel, [getattr(row, channel.name) for row in measured], labels)
        for channel in (WORDS, BODY, JACCARD, rule)
    )
