"""The score of a pair: the points of each quantity, their sum, and what the rule asks of it.

Only rows that bound the score make it part of a rule. The score is a logit: 1 / (1 + e^-score) is the probability
that two such pages are copies, as the points were fitted on labelled pairs (docs/adr/0038).
Invariant: intercept and points add up to the score that the matcher compares with the bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.rule_table import BoundView, RowView, nearest_row

_SCORE = "score"


@dataclass(frozen=True, slots=True)
class QuantityPoints:
    """A quantity of the score with its value. points: what it adds; below 0, it speaks against a match."""

    name: str
    value: float
    points: float


@dataclass(frozen=True, slots=True)
class ScoreView:
    """The score of a pair under a rule.

    intercept: points that every pair has. quantities: by the size of their points, largest first. row: name of the
    row that holds, or of the nearest one that bounds the score. bound: its bound on the score.
    """

    sum: float
    intercept: float
    quantities: tuple[QuantityPoints, ...]
    row: str
    bound: BoundView

    @property
    def probability(self) -> float:
        """The probability that such pages are copies, 0 to 1."""
        return 1 / (1 + math.exp(-self.sum))


def score_under(rows: Sequence[RowView], similarity: Similarity) -> ScoreView | None:
    """Return the score of a pair, and the bound of the row that decides; None if no row bounds the score."""
    bounds = {id(row): bound for row in rows for bound in row.bounds if bound.quantity == _SCORE}
    row = nearest_row(rows)
    if row is not None and id(row) not in bounds:
        row = nearest_row([row for row in rows if id(row) in bounds])
    if row is None:
        return None
    # A quantity that speaks against a match and is 0 has -0.0 points.
    quantities = [QuantityPoints(name, value, points + 0.0) for name, value, points in similarity.points]
    return ScoreView(
        sum=similarity.score,
        intercept=similarity.score - math.fsum(quantity.points for quantity in quantities),
        quantities=tuple(sorted(quantities, key=lambda quantity: -abs(quantity.points))),
        row=row.name,
        bound=bounds[id(row)],
    )
