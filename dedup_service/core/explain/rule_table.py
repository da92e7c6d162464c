"""A rule's table with the values of a pair: each bound, whether it holds, and which row is nearest.

A rule without a table has its distance conditions as rows, and Wang & Wang's similarity as one. Bounds are
compared exactly as `MatchRow.holds` and the matcher compare them, so a row holds here if and only if it
holds there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dedup_service.core.evidence.similarity import Combined, Similarity, jaccard
from dedup_service.core.rules.match_row import QUANTITIES, UPPER_BOUNDS, MatchRow
from dedup_service.core.rules.rule import DistanceBound, MatchRule

_MIN_BOUND = 1e-9
"""Avoids a division by 0 for bounds of 0."""


@dataclass(frozen=True, slots=True)
class BoundView:
    """A bound and the value of the pair. at_least: a lower bound; otherwise an upper bound."""

    quantity: str
    at_least: bool
    bound: float
    value: float | Fraction

    @property
    def holds(self) -> bool:
        """Whether the bound holds."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def missed_by(self) -> float:
        """How far the value is from the bound: of a score in points, else as a share of the bound; 0 if it holds."""
        if self.holds:
            return 0.0
        # A score of 0 is like any other, and a bound on it may be below 0: a share of it says nothing.
        unit = 1.0 if self.quantity == "score" else max(self.bound, _MIN_BOUND)
        return abs(float(self.value) - self.bound) / unit

    def __str__(self) -> str:
        side = "at least" if self.at_least else "at most"
        return f"{self.quantity} {float(self.value):.4g}, {side} {self.bound:g} required"


@dataclass(frozen=True, slots=True)
class RowView:
    """A row of the rule with the value for each of its bounds."""

    name: str
    bounds: tuple[BoundView, ...]

    @property
    def holds(self) -> bool:
        """Whether every bound holds."""
        return all(bound.holds for bound in self.bounds)

    @property
    def failed(self) -> tuple[BoundView, ...]:
        """The bounds that do not hold."""
        return tuple(bound for bound in self.bounds if not bound.holds)


def rows_of(rule: MatchRule, similarity: Similarity) -> tuple[RowView, ...]:
    """Return the rows of `rule` for a pair: its table, or its conditions if it has no table."""
    if rule.verified:
        return tuple(RowView(row.name, tuple(_row_bounds(row, similarity))) for row in rule.verified)
    found = [RowView(str(near), tuple(_distance_bounds(near, similarity))) for near in rule.conditions]
    if rule.combined is not None:
        found.append(RowView("combined similarity ≥ .25", tuple(_combined_bounds(rule.combined, similarity))))
    return tuple(found)


def nearest_row(rows: Sequence[RowView]) -> RowView | None:
    """Return the first row that holds; else that with the fewest failed bounds, then the smallest misses."""
    holding = next((row for row in rows if row.holds), None)
    return holding or min(rows, key=_distance, default=None)


def _distance(row: RowView) -> tuple[int, float]:
    return len(row.failed), sum(bound.missed_by for bound in row.failed)


def _row_bounds(row: MatchRow, similarity: Similarity) -> Iterator[BoundView]:
    for quantity in QUANTITIES:
        bound = getattr(row, quantity)
        if bound is None or (quantity == "min_letters" and not bound):
            continue
        value: Any = getattr(similarity, quantity)
        yield BoundView(quantity, quantity not in UPPER_BOUNDS, bound, value)


def _distance_bounds(near: DistanceBound, similarity: Similarity) -> Iterator[BoundView]:
    if near.body is not None:
        yield BoundView("body_distance", at_least=False, bound=near.body, value=similarity.body_distance)
    if near.words is not None:
        yield BoundView("words_distance", at_least=False, bound=near.words, value=similarity.words_distance)


def _combined_bounds(rule: Combined, similarity: Similarity) -> Iterator[BoundView]:
    yield BoundView("words_distance", at_least=False, bound=rule.radius, value=similarity.words_distance)
    words = similarity.distance.words
    metadata = jaccard(similarity.one.metadata, similarity.other.metadata)
    combined = Fraction(0) if words is None else rule.similarity(words, metadata)
    yield BoundView("combined", at_least=True, bound=float(rule.threshold), value=combined)
