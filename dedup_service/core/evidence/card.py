"""The card of the score: what each quantity of two pages adds, from one knot to the next.

The card that ships is the default of every rule; a profile may have another one in a table `[card]`, which names what
it changes. No points are below 0, and each quantity has one direction, so every card is monotone: more in common never
takes points away, and more that differs never adds some.

Source: Hastie, Tibshirani, "Generalized additive models", 1986 (the form); docs/adr/0038 (the points, fitted on pairs
that people labelled, by `benchmarks.quality.fit`).
"""

import tomllib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError

QUANTITIES = {
    "held of the longer page": 1,
    "held of the shorter page": 1,
    "letters of the shorter page": 1,
    "places that differ": -1,
    "facts swapped": -1,
    "numbers swapped": -1,
    "facts missing": -1,
    "facts where the pages differ": -1,
    "title where the pages differ": -1,
}
"""Quantity → -1 if it says that pages differ, else 1."""

MAX_KNOTS, LARGEST = 32, 1e6
"""Knots of a quantity, and the size of a number, at most: a card is in every policy record."""

BUILT_IN_TEXT = """\
bias = -3.68
"held of the longer page" = {knots = [0.3, 0.5, 0.65, 0.8, 0.95], points = [1.821, 1.258, 1.747, 0.0]}
"held of the shorter page" = {knots = [0.4, 0.6, 0.75, 0.85, 0.93, 1.0], points = [1.006, 0.562, 0.0, 0.665, 0.887]}
"letters of the shorter page" = {knots = [80.0, 160.0, 350.0, 800.0, 2000.0], points = [0.089, 0.683, 0.29, 0.349]}
"places that differ" = {knots = [0.0, 0.5, 1.5, 3.0, 5.0, 8.0], points = [0.771, 0.841, 0.0, 0.0, 0.0]}
"facts swapped" = {knots = [0.0, 0.1, 0.3, 0.7, 1.5, 3.0], points = [0.0, 0.382, 0.813, 0.315, 1.919]}
"numbers swapped" = {knots = [0.0, 0.03, 0.1, 0.25, 0.5], points = [1.366, 0.0, 0.061, 0.0]}
"facts missing" = {knots = [0.0, 0.05, 0.15, 0.3, 0.6], points = [0.0, 0.621, 0.036, 0.517]}
"facts where the pages differ" = {knots = [0.0, 0.1, 0.25, 0.5, 0.8], points = [0.0, 0.0, 0.0, 0.757]}
"title where the pages differ" = {knots = [0.0, 0.2, 0.5, 1.0], points = [0.457, 1.186, 2.159]}
"""

_BUILT_IN = tomllib.loads(BUILT_IN_TEXT)


@dataclass(frozen=True, slots=True)
class Ramps:
    """What one quantity adds. knots: ascending. points: from each knot to the next, 0 or more."""

    knots: tuple[float, ...]
    points: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """What all quantities add.

    Attributes:
        bias: Points that each pair has.
        ramps: Of each quantity, in the order of QUANTITIES.

    Raises:
        ConfigurationError: If a number is not finite or above a million, knots do not ascend, points are below 0, or
            there is not one ramp between each knot and the next.

    Example:
        >>> card = Card.from_dict({"facts swapped": {"factor": 2}})
        >>> card.ramps[4].points
        (0.0, 0.764, 1.626, 0.63, 3.838)
    """

    bias: float
    ramps: tuple[Ramps, ...]

    def __post_init__(self) -> None:
        if len(self.ramps) != len(QUANTITIES):
            raise ConfigurationError(f"a card has {len(QUANTITIES)} quantities, got {len(self.ramps)}")
        _refuse_far("bias of a card", [self.bias])
        for name, of in zip(QUANTITIES, self.ramps, strict=True):
            _refuse_far(f"a knot of {name!r}", of.knots)
            _refuse_far(f"points of {name!r}", of.points)
            if not 2 <= len(of.knots) == len(of.points) + 1 <= MAX_KNOTS:
                raise ConfigurationError(
                    f"{name!r} of a card needs 2 to {MAX_KNOTS} knots, and points between each and the next, got "
                    f"{len(of.knots)} knots and {len(of.points)} points"
                )
            if any(low >= high for low, high in pairwise(of.knots)):
                raise ConfigurationError(f"knots of {name!r} must ascend, got {list(of.knots)}")
            if min(of.points) < 0:
                raise ConfigurationError(
                    f"points of {name!r} must be 0 or more, got {min(of.points)}: the score would not be monotone in it"
                )

    @property
    def signed(self) -> list[tuple[str, list[float], list[float]]]:
        """Name, knots and points of each quantity; points are below 0 if it says that pages differ."""
        named = zip(QUANTITIES.items(), self.ramps, strict=True)
        return [(name, list(of.knots), [sign * points for points in of.points]) for (name, sign), of in named]

    def with_points(self, bias: float, points: Sequence[float]) -> Self:
        """Return the card with other points of all its ramps: float[ramps], in the order of the quantities."""
        left = iter(points)
        ramps = (Ramps(of.knots, tuple(islice(left, len(of.points)))) for of in self.ramps)
        return type(self)(bias, tuple(ramps))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole card as plain values, for a policy record or a profile."""
        named = zip(QUANTITIES, self.ramps, strict=True)
        return {"bias": self.bias} | {name: {"knots": list(of.knots), "points": list(of.points)} for name, of in named}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a card from what `to_dict` returned, or from a table `[card]`.

        Args:
            values: `bias`, and for each quantity by name its `knots` and `points`, or a `factor` of the points that
                the built-in card has. What is left out is as in the built-in card.

        Returns:
            The card.

        Raises:
            ConfigurationError: If a quantity is unknown, a value is of another type, or the card is not monotone.
        """
        if unknown := values.keys() - {"bias", *QUANTITIES}:
            raise ConfigurationError(f"a card has bias, {', '.join(QUANTITIES)}, got {min(unknown)!r}")
        every = _BUILT_IN | dict(values)
        (bias,) = _numbers("bias of a card", [every["bias"]])
        return cls(bias, tuple(_ramps(name, every[name]) for name in QUANTITIES))

    def __str__(self) -> str:
        return f"card of its own ({zlib.crc32(repr(self).encode()):08x})"


def card_lines(card: Card) -> list[str]:
    """Return the lines of a table `[card]` in TOML."""
    lines = [f"bias = {card.bias!r}"]
    named = zip(QUANTITIES, card.ramps, strict=True)
    return lines + [f'"{name}" = {{knots = {list(of.knots)}, points = {list(of.points)}}}' for name, of in named]


def _ramps(name: str, values: object) -> Ramps:
    if isinstance(values, dict) and values.keys() == {"factor"}:
        (factor,) = _numbers(f"factor of {name!r}", [values["factor"]])
        if not 0 <= factor <= LARGEST:
            raise ConfigurationError(
                f"factor of {name!r} must be from 0, got {factor}: the score would not be monotone in it"
            )
        of = _BUILT_IN[name]
        return Ramps(tuple(of["knots"]), tuple(points * factor for points in of["points"]))
    if not isinstance(values, dict) or values.keys() != {"knots", "points"}:
        raise ConfigurationError(f"{name!r} of a card has knots and points, or a factor, got {values!r}")
    return Ramps(*(tuple(_numbers(f"{each} of {name!r}", values[each])) for each in ("knots", "points")))


def _numbers(what: str, values: object) -> list[float]:
    if not isinstance(values, list) or any(isinstance(v, bool) or not isinstance(v, int | float) for v in values):
        raise ConfigurationError(f"{what} must be numbers, got {values!r}")
    return [value if abs(value) > LARGEST else float(value) for value in values]


def _refuse_far(what: str, values: Sequence[float]) -> None:
    for value in values:
        if not abs(value) <= LARGEST:  # NaN, too
            raise ConfigurationError(f"{what} must be at most {LARGEST:g} in size, got {value}")


BUILT_IN = Card.from_dict({})
"""The card of every rule that has no other."""
