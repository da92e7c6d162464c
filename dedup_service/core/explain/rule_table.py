"""A rule's table with the values that it was asked about: each bound, whether it held, and which row came nearest.

A rule without a table has its conditions of distance as rows, and Wang & Wang's similarity as one. Bounds are compared
exactly as `MatchRow.holds` and the matcher compare them, so a row holds here iff it held there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from dedup_service.core.evidence.similarity import Combined, Similarity, jaccard
from dedup_service.core.rules.match_row import UPPER_BOUNDS, MatchRow
from dedup_service.core.rules.rule import DistanceBound, MatchRule

__all__ = ["QUANTITIES", "BoundView", "RowView", "nearest_row", "rows_of"]

QUANTITIES = tuple(field.name for field in fields(MatchRow) if field.name != "name")
"""What a row of the table can ask about, in the table's order."""

_LITTLE = 1e-9


@dataclass(frozen=True, slots=True)
class BoundView:
    """A bound and the value it was set to. at_least: it holds from the bound on upwards; otherwise downwards."""

    quantity: str
    at_least: bool
    bound: float
    value: float | Fraction

    @property
    def holds(self) -> bool:
        """Whether it held."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def missed_by(self) -> float:
        """How far the value is from the bound, as a share of it; 0 where it holds."""
        return 0.0 if self.holds else abs(float(self.value) - self.bound) / max(self.bound, _LITTLE)

    def __str__(self) -> str:
        asks = "at least" if self.at_least else "at most"
        return f"{self.quantity} {float(self.value):.4g}, {asks} {self.bound:g} asked"


@dataclass(frozen=True, slots=True)
class RowView:
    """A row of the rule, every bound of it with its value."""

    name: str
    bounds: tuple[BoundView, ...]

    @property
    def holds(self) -> bool:
        """Whether every bound held."""
        return all(bound.holds for bound in self.bounds)

    @property
    def failed(self) -> tuple[BoundView, ...]:
        """The bounds that did not."""
        return tuple(bound for bound in self.bounds if not bound.holds)


def rows_of(rule: MatchRule, likeness: Similarity) -> tuple[RowView, ...]:
    """Return what `rule` asks of two pages that are alike so: its table, or else what it says of distance."""
    if rule.verified:
        return tuple(RowView(row.name, tuple(_of_row(row, likeness))) for row in rule.verified)
    found = [RowView(str(near), tuple(_of_distance(near, likeness))) for near in rule.conditions]
    if rule.combined is not None:
        found.append(RowView("combined similarity ≥ .25", tuple(_of_similarity(rule.combined, likeness))))
    return tuple(found)


def nearest_row(rows: Sequence[RowView]) -> RowView | None:
    """Return the first row that holds; else the one with fewest bounds failed, of equals the one missed by least."""
    holding = next((row for row in rows if row.holds), None)
    return holding or min(rows, key=_distance, default=None)


def _distance(row: RowView) -> tuple[int, float]:
    return len(row.failed), sum(bound.missed_by for bound in row.failed)


def _of_row(row: MatchRow, likeness: Similarity) -> Iterator[BoundView]:
    for quantity in QUANTITIES:
        bound = getattr(row, quantity)
        if bound is None or (quantity == "min_letters" and not bound):
            continue
        value: Any = getattr(likeness, quantity)
        yield BoundView(quantity, quantity not in UPPER_BOUNDS, bound, value)


def _of_distance(near: DistanceBound, likeness: Similarity) -> Iterator[BoundView]:
    if near.body is not None:
        yield BoundView("body_distance", at_least=False, bound=near.body, value=likeness.body_distance)
    if near.words is not None:
        yield BoundView("words_distance", at_least=False, bound=near.words, value=likeness.words_distance)


def _of_similarity(rule: Combined, likeness: Similarity) -> Iterator[BoundView]:
    yield BoundView("words_distance", at_least=False, bound=rule.radius, value=likeness.words_distance)
    words = likeness.distance.words
    metadata = jaccard(likeness.one.metadata, likeness.other.metadata)
    similarity = Fraction(0) if words is None else rule.similarity(words, metadata)
    yield BoundView("combined", at_least=True, bound=float(rule.threshold), value=similarity)
