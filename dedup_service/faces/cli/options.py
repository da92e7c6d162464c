"""Options that several subcommands share, and the values they stand for."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from dedup_service.core.profiles import CHANNEL_RULES, DEFAULT_PROFILE, PROFILES, rule_for
from dedup_service.core.rule import MatchRule
from dedup_service.core.weighting.schemes import FACTORS, SCHEMES, SETTINGS
from dedup_service.runtime.resources import SpaceOptions, profile_named

__all__ = ["MATCHING", "PROFILE", "SPACE", "rule_of", "space_of", "with_options"]

F = TypeVar("F", bound=Callable[..., Any])

SPACE = (
    click.option(
        "--scheme", type=click.Choice(list(SCHEMES)), default="twinsieve", show_default=True, help="Weighting scheme."
    ),
    click.option(
        "--factor",
        "factors",
        multiple=True,
        metavar="NAME=VALUE",
        help=f"Set a field of the scheme: {', '.join(SETTINGS)}.",
    ),
    click.option("--without", type=click.Choice(FACTORS), multiple=True, help="Factor of the scheme to leave out."),
    click.option(
        "--segmenter", type=click.Choice(["rjieba", "jieba"]), default="rjieba", show_default=True, help="For Chinese."
    ),
    click.option("--idf", metavar="FILE", help="Table of `twinsieve idf build`. [default: jieba's]"),
    click.option("--user-words", metavar="FILE", help="Dictionary in jieba's format."),
)
"""What makes a space."""

PROFILE = click.option(
    "--profile",
    metavar="NAME|FILE",
    help=f"Thresholds: {', '.join(PROFILES)}, or a file of your own. [default: {DEFAULT_PROFILE}]",
)

MATCHING = (
    PROFILE,
    click.option("--k", type=click.IntRange(0, 7), help="Replaces every radius of the rule, 0 to 7 bits."),
    click.option("--channels", type=click.Choice(list(CHANNEL_RULES)), help="Distance alone, in these channels."),
    click.option(
        "--mu",
        type=click.FloatRange(0, 1, min_open=True),
        help="Wang & Wang's combined similarity with this μ, in place of the rule.",
    ),
)
"""What makes a match."""


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return the decorator that adds `options` in the order in which help lists them."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def rule_of(options: Mapping[str, Any]) -> MatchRule | None:
    """Return the rule that the options name; None where they name none: the state's own, or the default."""
    channels, k, mu, profile = options["channels"], options["k"], options["mu"], options["profile"]
    if mu is not None and (k is not None or channels is not None or profile is not None):
        raise click.UsageError("--mu states a rule of its own: leave --k, --channels and --profile out")
    if channels is not None and profile is not None:
        raise click.UsageError("--channels states a rule of its own: leave --profile out")
    if channels is None and k is None and mu is None and profile is None:
        return None
    return rule_for(channels, k=k, mu=mu, profile=None if profile is None else profile_named(profile))


def space_of(options: Mapping[str, Any], *, bits: int = 64) -> SpaceOptions:
    """Return the choice of space that the options name."""
    return SpaceOptions(
        scheme=options["scheme"],
        factors=tuple(options["factors"]),
        without=tuple(sorted(set(options["without"]))),
        segmenter=options["segmenter"],
        bits=bits,
        idf=options["idf"],
        user_words=options["user_words"],
    )
