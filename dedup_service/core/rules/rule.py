"""When is a candidate a match? The one place that says so.

Candidates are found by distance, and by shared keys where the rule uses them. A condition bounds the distance in one
channel or in both; the channel with the smaller bound finds the candidate, so that bound is at most 7, and the other
bound, which is only checked, may be wider. Any condition suffices.

A candidate is a match where any row of the table `verified` holds, which looks at the evidence. A rule without a table
is SimHash alone: every candidate is a match. Both were chosen on data (docs/quality.md).

Wang & Wang's combined similarity is an option in the same place: alone (`combined`), or as a bound of a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.similarity import MAX_RADIUS, Combined
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.match_row import MatchRow

__all__ = ["DistanceBound", "MatchRule"]

BITS = 64

_RECORD_NAMES = {
    "min_letters": "least_letters",
    "max_pages": "most_pages",
    "max_hosts": "most_hosts",
    "max_titles": "most_titles",
    "surge_percent": "jump_percent",
}
"""Fields whose name in a policy record differs: records of logs and journals keep the names they were written with."""

_FIELD_NAMES = {recorded: field for field, recorded in _RECORD_NAMES.items()}


@dataclass(frozen=True, slots=True)
class DistanceBound:
    """Both bounds hold: at most `words` and at most `body` differing bits; None leaves a channel out."""

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
        """The channel whose index finds the candidates of this condition: the one with the smaller bound."""
        if self.body is None or (self.words is not None and self.words < self.body):
            return "words"
        return "body"

    def __str__(self) -> str:
        bounds = (("body", self.body), ("words", self.words))
        return " and ".join(f"{name} ≤ {bound}" for name, bound in bounds if bound is not None)


@dataclass(frozen=True, slots=True)
class MatchRule:
    """Which pages are candidates, and which candidates are matches.

    conditions, combined: of distance, see the module. keys: pages that share a key are candidates, too.
    verified: the table; where it is empty, `conditions` and `combined` decide. guards: what matches are not believed.
    """

    conditions: tuple[DistanceBound, ...] = ()
    combined: Combined | None = None
    keys: bool = False
    verified: tuple[MatchRow, ...] = ()
    guards: Guards = NO_GUARDS

    def __post_init__(self) -> None:
        if not self.conditions and self.combined is None and not self.keys:
            raise ConfigurationError("a rule that finds no candidates matches nothing: give it a condition, or keys")
        if self.keys and not self.verified:
            raise ConfigurationError("pages that share a key need not be alike: give the rule a table to verify them")
        if self.verified and self.combined is not None:
            raise ConfigurationError("μ states a rule of its own: a table cannot stand beside it")

    def radius(self, channel: str) -> int | None:
        """How far the index of `channel` must reach, or None where it is not needed."""
        bounds = [getattr(condition, channel) for condition in self.conditions if condition.probes == channel]
        if self.combined is not None and channel == "words":
            bounds.append(self.combined.radius)
        return max(bounds, default=None)

    def with_radius(self, k: int) -> Self:
        """The same rule with every radius replaced by `k` (0 to 7); keys and table stay."""

        def bound(old: int | None) -> int | None:
            return None if old is None else k

        changed = tuple(DistanceBound(words=bound(near.words), body=bound(near.body)) for near in self.conditions)
        return replace(self, conditions=tuple(dict.fromkeys(changed)))

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain values, for a policy record in the log; guards that ask nothing are left out."""
        values = {
            "conditions": [{"words": near.words, "body": near.body} for near in self.conditions],
            "combined_mu_thousandths": None if self.combined is None else self.combined.mu_thousandths,
            "keys": self.keys,
            "verified": [_renamed(row.to_dict(), _RECORD_NAMES) for row in self.verified],
        }
        return values | {"guards": _renamed(self.guards.to_dict(), _RECORD_NAMES)} if self.guards else values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The rule that `to_dict` wrote, before guards or since; ConfigurationError where a bound is not one."""
        mu = values.get("combined_mu_thousandths")
        guards = values.get("guards")
        conditions = tuple(DistanceBound(near.get("words"), near.get("body")) for near in values.get("conditions", ()))
        return cls(
            conditions=conditions,
            combined=None if mu is None else Combined(mu),
            keys=values.get("keys", False),
            verified=tuple(MatchRow.from_dict(_renamed(row, _FIELD_NAMES)) for row in values.get("verified", ())),
            guards=NO_GUARDS if guards is None else Guards.from_dict(_renamed(guards, _FIELD_NAMES)),
        )

    def __str__(self) -> str:
        parts = [str(near) for near in self.conditions]
        if self.combined is not None:
            parts.append(f"μ/(H+1) + (1−μ)·J ≥ .25 with μ = {self.combined.mu_thousandths / 1000:g}")
        if self.keys:
            parts.append("a shared key")
        table = f"; verified: {', '.join(map(str, self.verified))}" if self.verified else ""
        guards = f"; guards: {self.guards}" if self.guards else ""
        return " or ".join(parts) + table + guards


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}
