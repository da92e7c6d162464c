"""Options that several subcommands share, and the values they stand for."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from dedup_service.core.rule import RULES, MatchRule, rule_for
from dedup_service.core.space import Space
from dedup_service.core.weighting import SCHEMES

__all__ = ["matching_options", "rule_of", "scheme_option", "space_of"]

F = TypeVar("F", bound=Callable[..., Any])


def scheme_option(function: F) -> F:
    """Add --scheme and --idf: what makes a space."""
    function = click.option("--idf", "idf", metavar="FILE", help="Table of `twinsieve idf build`; a space of its own.")(function)
    return click.option("--scheme", type=click.Choice(list(SCHEMES)), help="Weighting scheme. [default: twinsieve]")(function)


def matching_options(function: F) -> F:
    """Add --k, --channels and --mu: what makes a match."""
    function = click.option("--k", type=click.IntRange(0, 7), help="Replaces every radius of the rule, 0 to 7 bits.")(function)
    function = click.option(
        "--mu", type=click.FloatRange(0, 1, min_open=True), help="Wang & Wang's combined similarity with this μ in place of the rule."
    )(function)
    return click.option(
        "--channels", type=click.Choice(list(RULES)), help="Fingerprints that the rule looks at. [default: both]"
    )(function)


def rule_of(channels: str | None, k: int | None, mu: float | None) -> MatchRule | None:
    """Return the rule that the options name; None where they name none: the state's own, or the default."""
    if mu is not None and (k is not None or channels is not None):
        raise click.UsageError("--mu states a rule of its own: leave --k and --channels out")
    if channels is None and k is None and mu is None:
        return None
    return rule_for(channels or "both", k=k, mu=mu)


def space_of(scheme: str | None, idf: str | None) -> Space:
    """Return the space that the options name."""
    raise NotImplementedError
