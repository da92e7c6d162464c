"""The rule: which pages are candidates, and which candidates are matches.

It states the rule: `MatchRow.holds` evaluates a row, and `core.decision.matching` applies the rule to a
candidate. Two things bring a candidate: a small distance, and a shared key if
the rule uses keys. A condition (`DistanceBound`) bounds the distance in one channel or in both. The index of
the channel with the smaller bound finds the candidate, so that bound is at most 7; the other bound is only
checked and may be wider. Any condition suffices.

A candidate is a match if any row of the table `verified` holds; rows look at the evidence. A rule without a
table is SimHash alone: every candidate is a match. Both were chosen on data (docs/quality.md).

Wang & Wang's combined similarity is an option: alone (`combined`), or as a bound of a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.card import BUILT_IN, Card
from dedup_service.core.evidence.similarity import MAX_RADIUS, Combined
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.match_row import MatchRow

BITS = 64
"""Bits of a fingerprint: no distance is larger."""


@dataclass(frozen=True, slots=True)
class DistanceBound:
    """A condition on the Hamming distance of two pages in one channel or in both.

    The condition holds if every bound that is given holds.

    Attributes:
        words: Differing bits of the `words` channel, at most; None leaves the channel out.
        body: Differing bits of the `body` channel, at most; None leaves the channel out.

    Raises:
        ConfigurationError: If no bound is given, the smaller one is outside 0 to 7, or one is above 64.

    Example:
        >>> str(DistanceBound(words=6, body=16))
        'body ≤ 16 and words ≤ 6'
    """

    words: int | None = None
    body: int | None = None

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.words, self.body) if bound is not None]
        if not bounds or min(bounds) > MAX_RADIUS or min(bounds) < 0 or max(bounds) > BITS:
            raise ConfigurationError(
                f"a condition needs one bound from 0 to {MAX_RADIUS} and none above {BITS}, got words={self.words}, "
                f"body={self.body}: the block index finds candidates up to {MAX_RADIUS} bits away"
            )

    @property
    def probes(self) -> str:
        """The channel whose index finds the candidates: that of the smaller bound, `body` of equal ones."""
        if self.body is None or (self.words is not None and self.words < self.body):
            return "words"
        return "body"

    def __str__(self) -> str:
        bounds = (("body", self.body), ("words", self.words))
        return " and ".join(f"{name} ≤ {bound}" for name, bound in bounds if bound is not None)


@dataclass(frozen=True, slots=True)
class MatchRule:
    """Which pages are candidates, and which candidates are matches.

    Attributes:
        conditions: Distances that make a candidate; any one suffices.
        combined: Wang & Wang's similarity as the whole rule, or None.
        keys: Whether pages that share a key are candidates, too.
        verified: The rule table. A candidate matches if any row holds. Without a table `conditions` and
            `combined` decide.
        guards: Bounds beyond which a match is not accepted.
        card: What the score is made of; the built-in one if no row bounds the score.

    Raises:
        ConfigurationError: If the rule finds no candidates, has keys without a table, or has a table and
            `combined`.

    Example:
        >>> rule = MatchRule((DistanceBound(body=3), DistanceBound(words=3)))
        >>> rule.radius("body"), str(rule)
        (3, 'body ≤ 3 or words ≤ 3')
    """

    conditions: tuple[DistanceBound, ...] = ()
    combined: Combined | None = None
    keys: bool = False
    verified: tuple[MatchRow, ...] = ()
    guards: Guards = NO_GUARDS
    card: Card = BUILT_IN

    def __post_init__(self) -> None:
        if not self.conditions and self.combined is None and not self.keys:
            raise ConfigurationError("a rule that finds no candidates matches nothing: give it a condition, or keys")
        if self.keys and not self.verified:
            raise ConfigurationError("a shared key does not prove a match: give the rule a table to verify candidates")
        if self.verified and self.combined is not None:
            raise ConfigurationError("μ is a complete rule: leave out either μ or the table")
        if not self.bounds_score:  # no card says anything then, so a log with that of another release is the same rule
            object.__setattr__(self, "card", BUILT_IN)

    @property
    def bounds_score(self) -> bool:
        """Whether a row bounds the score."""
        return any(row.score is not None for row in self.verified)

    @property
    def candidates(self) -> str:
        """What makes a page a candidate, in words."""
        parts = [str(near) for near in self.conditions]
        if self.combined is not None:
            parts.append(f"μ/(H+1) + (1−μ)·J ≥ .25 with μ = {self.combined.mu_thousandths / 1000:g}")
        return " or ".join([*parts, *(["a shared key"] if self.keys else [])])

    def radius(self, channel: str) -> int | None:
        """Return how far the block index of a channel must search.

        Args:
            channel: `words` or `body`.

        Returns:
            The radius in bits, 0 to 7; None if the rule needs no index of that channel.
        """
        bounds = [getattr(condition, channel) for condition in self.conditions if condition.probes == channel]
        if self.combined is not None and channel == "words":
            bounds.append(self.combined.radius)
        return max(bounds, default=None)

    def with_radius(self, k: int) -> Self:
        """Return the same rule with every distance bound replaced; keys, table and guards stay.

        Args:
            k: The new bound in bits, 0 to 7.

        Returns:
            The new rule.

        Raises:
            ConfigurationError: If `k` is outside 0 to 7.
        """

        def bound(old: int | None) -> int | None:
            return None if old is None else k

        changed = tuple(
            DistanceBound(words=bound(condition.words), body=bound(condition.body)) for condition in self.conditions
        )
        return replace(self, conditions=tuple(dict.fromkeys(changed)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a policy record, with the card if a row bounds the score: a state keeps its own.

        Guards that are all off are left out.
        """
        values: dict[str, Any] = {
            "conditions": [{"words": condition.words, "body": condition.body} for condition in self.conditions],
            "combined_mu_thousandths": None if self.combined is None else self.combined.mu_thousandths,
            "keys": self.keys,
            "verified": [row.to_dict() for row in self.verified],
        }
        values |= {"guards": self.guards.to_dict()} if self.guards else {}
        return values | ({"card": self.card.to_dict()} if self.bounds_score else {})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a rule from the values of a policy record.

        Args:
            values: What `to_dict` returned. A record from before guards gives a rule without guards.

        Returns:
            The rule.

        Raises:
            ConfigurationError: If a bound is unknown or out of range.
        """
        mu = values.get("combined_mu_thousandths")
        guards = values.get("guards")
        conditions = tuple(DistanceBound(near.get("words"), near.get("body")) for near in values.get("conditions", ()))
        return cls(
            conditions=conditions,
            combined=None if mu is None else Combined(mu),
            keys=values.get("keys", False),
            verified=tuple(MatchRow.from_dict(row) for row in values.get("verified", ())),
            guards=NO_GUARDS if guards is None else Guards.from_dict(guards),
            card=Card.from_dict(values.get("card", {})),
        )

    def __str__(self) -> str:
        table = f"; {', '.join(map(str, self.verified))}" if self.verified else ""
        card = "" if self.card == BUILT_IN else f"; {self.card}"
        return f"{self.candidates}{table}{card}{f'; guards: {self.guards}' if self.guards else ''}"
