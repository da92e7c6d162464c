"""A row of the rule table: bounds on how two pages are alike, under a name that a verdict's reason quotes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.similarity import Similarity

__all__ = ["UPPER_BOUNDS", "MatchRow"]

_SHARES = ("jaccard", "containment", "title", "sentences", "numbers", "metadata", "combined")
UPPER_BOUNDS = ("missing_numbers", "length_ratio", "words_distance", "body_distance")
"""Bounds that hold where the quantity is no larger; all others hold where it is no smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRow:
    """Two pages for which every bound holds are near-duplicates; None: not asked. Quantities: see `Similarity`.

    min_letters: both bodies have so many, 15 of an alphabet counting as 8. jaccard, containment, title, sentences,
    numbers, metadata, combined: at least, 0 to 1. missing_numbers, length_ratio, words_distance and body_distance: at
    most.
    """

    name: str
    min_letters: int = 0
    jaccard: float
    containment: float | None = None
    title: float | None = None
    sentences: float | None = None
    numbers: float | None = None
    missing_numbers: float | None = None
    length_ratio: float | None = None
    metadata: float | None = None
    combined: float | None = None
    words_distance: int | None = None
    body_distance: int | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigurationError("a row of the rule table needs a name: verdicts quote it")
        for bound in _SHARES:
            value = getattr(self, bound)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ConfigurationError(f"{bound} of {self.name!r} is a share from 0 to 1, got {value}")
        if self.jaccard <= 0.0:
            raise ConfigurationError(f"{self.name!r} needs a jaccard above 0: what shares nothing is not alike")
        if self.min_letters < 0 or any((getattr(self, bound) or 0) < 0 for bound in UPPER_BOUNDS):
            raise ConfigurationError(f"a bound of {self.name!r} is below 0")

    def holds(self, likeness: Similarity) -> bool:
        """Whether every bound holds; the cheapest are asked first."""
        if likeness.jaccard < self.jaccard or likeness.min_letters < self.min_letters:
            return False
        for bound in UPPER_BOUNDS:
            maximum = getattr(self, bound)
            if maximum is not None and getattr(likeness, bound) > maximum:
                return False
        return all(
            (minimum := getattr(self, bound)) is None or getattr(likeness, bound) >= minimum for bound in _SHARES[1:]
        )

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, what is not asked left out."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The row that `to_dict` wrote; ConfigurationError for a bound that does not exist, or is none."""
        known = {field.name for field in fields(cls)}
        if unknown := values.keys() - known:
            raise ConfigurationError(f"a row of the rule table has {', '.join(sorted(known))}, got {min(unknown)!r}")
        for name, value in values.items():
            if name != "name" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ConfigurationError(f"{name} is a number, got {value!r}")
        if missing := {"name", "jaccard"} - values.keys():
            raise ConfigurationError(f"a row of the rule table needs a {min(missing)}: {dict(values)}")
        return cls(**values)

    def __str__(self) -> str:
        return self.name
