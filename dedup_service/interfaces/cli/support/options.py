"""Options that several subcommands share, and the values they stand for.

How a command reaches the brokers, and which set of topics it means: the same options for all of them.

The client library is imported when an option is used, so that `crawl`, which can do without, needs it only then.

Where a person's record goes: into the log of a service (--bootstrap) or of a state folder (--state).

Lengths of time on the command line and in tables: `90s`, `30m`, `12h`, `7d`, `forever`.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dedup_service.core.features.weighting_schemes import FACTORS, SCHEMES, SETTINGS
from dedup_service.core.rules.profiles import CHANNEL_RULES, DEFAULT_PROFILE, PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.kafka.client.config import Connection, read_properties
from dedup_service.runtime.resources import SpaceOptions, profile_named

__all__ = [
    "BROKER",
    "MATCHING",
    "PROFILE",
    "SPACE",
    "TARGET",
    "connection_of",
    "duration_ms",
    "rule_of",
    "said",
    "space_of",
    "state_folder",
    "topics_of",
    "with_options",
]

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.topics import Topics


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


BROKER = (
    click.option(
        "--bootstrap",
        metavar="HOST:PORT,…",
        envvar="TWINSIEVE_BOOTSTRAP",
        show_envvar=True,
        help="Brokers to begin with.",
    ),
    click.option("--prefix", metavar="TEXT", default="", help="Before the name of every topic. [default: none]"),
    click.option(
        "--client-config",
        metavar="FILE",
        help="Properties of the client, for TLS and SASL: security.protocol, ssl.ca.location, … as Java has them.",
    ),
    click.option(
        "--client-option",
        "client_options",
        metavar="NAME=VALUE",
        multiple=True,
        help="One property; goes before the file's. Passwords belong into the file.",
    ),
)
"""Where the log is."""


def connection_of(options: Mapping[str, Any]) -> Connection:
    """Return the connection that the options name; UsageError without --bootstrap, ConfigurationError if wrong."""
    if not options["bootstrap"]:
        raise click.UsageError("no broker is named: give --bootstrap HOST:PORT")
    properties = read_properties(Path(options["client_config"])) if options["client_config"] else {}
    return Connection(options["bootstrap"], {**properties, **dict(map(_pair, options["client_options"]))})


def topics_of(options: Mapping[str, Any]) -> "Topics":
    """Return the set of topics that the options name."""
    from dedup_service.runtime.kafka.topics import Topics

    return Topics(options["prefix"])


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.UsageError(f"--client-option takes NAME=VALUE, not {text!r}")
    return name, value


TARGET = (*BROKER, click.option("--state", metavar="DIR", help="Of `filter` or `crawl`, instead of a broker."))


def state_folder(options: Mapping[str, Any]) -> str | None:
    """Return the folder that the options name, None where they name a broker; UsageError for both or neither."""
    source = click.get_current_context().get_parameter_source("bootstrap")
    said = options["bootstrap"] and source is not click.core.ParameterSource.ENVIRONMENT
    if options["state"] and said:
        raise click.UsageError("--bootstrap and --state name two logs: give one of them")
    if not options["state"] and not options["bootstrap"]:
        raise click.UsageError("whose log? give --bootstrap HOST:PORT, or --state DIR")
    folder: str | None = options["state"]
    return folder


_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_FOREVER_MS = -1


def duration_ms(context: click.Context, parameter: click.Parameter, value: str) -> int:
    """Milliseconds of a length of time, -1 for ever, as Kafka has it; an option's callback."""
    if value == "forever":
        return _FOREVER_MS
    found = re.fullmatch(r"([0-9]+)([smhd])", value.strip())
    if not found or not int(found[1]):
        raise click.BadParameter(f"{value!r} is none: write 90s, 30m, 12h, 7d or forever", context, parameter)
    return int(found[1]) * _UNITS_MS[found[2]]


def said(duration_ms: int) -> str:
    """The shortest exact way to write it.

    >>> said(604_800_000), said(-1), said(90_000), said(1)
    ('7d', 'forever', '90s', '1ms')
    """
    if duration_ms < 0:
        return "forever"
    for unit, size_ms in sorted(_UNITS_MS.items(), key=lambda pair: -pair[1]):
        if duration_ms and duration_ms % size_ms == 0:
            return f"{duration_ms // size_ms}{unit}"
    return f"{duration_ms}ms"
