"""A row of the rule table: named bounds on the similarity of two pages.

Each bound is a field of `MatchRow` and reads the attribute of `core.evidence.similarity.Similarity` that has
the same name. A verdict's reason quotes the name of the row.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.similarity import Similarity

LONG = 160
"""Letters from which shingles suffice: about fifty tokens, 300 letters of an alphabet.

Shorter texts must be the same.
"""

_SHARES = (
    "jaccard",
    "containment",
    "title",
    "title_on_host",
    "figures",
    "metadata",
    "combined",
)
UPPER_BOUNDS = ("series", "length_ratio", "words_distance", "body_distance")
"""Bounds that hold if the quantity is at most the bound; all others hold if it is at least the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRow:
    """A row of the rule table: two pages match if every bound of the row holds.

    A bound of None is not checked. Shares are of the page that has fewer.

    Attributes:
        name: Quoted by the reason of a verdict.
        min_letters: Letters that both bodies have at least; 15 letters of an alphabet count as 8.
        jaccard: Required. Share of shingles (five characters, or three words) in common, at least; above 0, up to 1.
        containment: Estimated share of the smaller page's shingles that the other has, at least; 0 to 1.
        title: Share of title terms in common, at least; 0 to 1.
        title_on_host: The same for two pages of one host that have titles, at least; 0 to 1. Other pairs pass.
        figures: 1 if every figure must be equal, with sign and unit; 0.5 if one page may have further figures.
        length_ratio: Letters of the longer page for one of the shorter, at most.
        metadata: Jaccard similarity of keywords, tags and references, at least; 0 to 1.
        score: Sum of the points of the scorecard, at least; any number. Docs: profiles.md.
        series: 0 if the pages may not look like two items of a series: of one host, and either under one title, each
            with a number of its own at the beginning, or under titles that name what differs; 1 leaves it open.
        combined: Wang & Wang's μ/(H + 1) + (1 − μ)·J of word distance and metadata, μ = .9, at least.
        words_distance: Differing bits of the `words` channel, at most.
        body_distance: Differing bits of the `body` channel, at most.

    Raises:
        ConfigurationError: If the name is empty or a bound is out of range.

    Example:
        >>> MatchRow(name="nearly equal", jaccard=0.85, figures=0.5).to_dict()
        {'name': 'nearly equal', 'min_letters': 0, 'jaccard': 0.85, 'figures': 0.5}
    """

    name: str
    min_letters: int = 0
    jaccard: float
    containment: float | None = None
    title: float | None = None
    title_on_host: float | None = None
    figures: float | None = None
    length_ratio: float | None = None
    metadata: float | None = None
    combined: float | None = None
    score: float | None = None
    series: int | None = None
    words_distance: int | None = None
    body_distance: int | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigurationError("a row of the rule table needs a name: verdicts quote it")
        for bound in _SHARES:
            value = getattr(self, bound)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ConfigurationError(f"{bound} of row {self.name!r} must be a share from 0 to 1, got {value}")
        if self.jaccard <= 0.0:
            raise ConfigurationError(
                f"row {self.name!r} needs a jaccard above 0: pages without a common shingle never match"
            )
        if self.series not in (None, 0, 1) or isinstance(self.series, bool):
            raise ConfigurationError(f"series of row {self.name!r} must be 0 or 1, got {self.series!r}")
        if self.score is not None and not math.isfinite(self.score):
            raise ConfigurationError(f"score of row {self.name!r} must be a number, got {self.score}")
        # A bound that is not a number would hold for all pages or for none, by the direction of a comparison.
        if not all((getattr(self, bound) or 0) >= 0 for bound in ("min_letters", *UPPER_BOUNDS)):
            raise ConfigurationError(f"row {self.name!r} has a bound below 0, or one that is no number; give 0 or more")

    def holds(self, similarity: Similarity) -> bool:
        """Return whether every bound holds for two pages.

        Args:
            similarity: Of the two pages.

        Returns:
            True if the pages match by this row.
        """
        bounds = ((name, getattr(self, name)) for name in QUANTITIES)
        return all(
            getattr(similarity, name) <= limit if name in UPPER_BOUNDS else getattr(similarity, name) >= limit
            for name, limit in bounds
            if limit is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return name and bounds as plain values, without those that are None."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a row from what `to_dict` returned, or from a [[match]] table of a profile.

        Args:
            values: Name and bounds; `name` and `jaccard` are required.

        Returns:
            The row.

        Raises:
            ConfigurationError: If a bound is unknown, missing, not a number or out of range.
        """
        known = {field.name for field in fields(cls)}
        if unknown := values.keys() - known:
            raise ConfigurationError(f"a row of the rule table has {', '.join(sorted(known))}, got {min(unknown)!r}")
        for name, value in values.items():
            if name != "name" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ConfigurationError(f"{name} must be a number, got {value!r}")
        if missing := {"name", "jaccard"} - values.keys():
            raise ConfigurationError(f"a row of the rule table needs a {min(missing)}: {dict(values)}")
        return cls(**values)

    def __str__(self) -> str:
        bounds = ((name, getattr(self, name)) for name in QUANTITIES if name != "min_letters" or self.min_letters)
        signed = ((name, "≤" if name in UPPER_BOUNDS else "≥", bound) for name, bound in bounds if bound is not None)
        shown = (f"{name} {sign} {bound:g}" for name, sign, bound in signed)
        return f"{self.name!r} ({', '.join(shown)})"


QUANTITIES = tuple(field.name for field in fields(MatchRow) if field.name != "name")
"""The quantities that a row can bound, in the order of its fields."""
