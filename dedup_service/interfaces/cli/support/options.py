"""Options that several subcommands share, and the values that they stand for.

- Space and matching: `SPACE` → `SpaceOptions`, `PROFILE` → `MatchRule`.
- Work: `PROCESSES` → the workers that prepare pages.
- The log: `BROKER` → a connection and a set of topics; `TARGET` → a service's log or a state folder.
- Durations: `90s`, `30m`, `12h`, `7d`, `forever`.

Each tuple is for `with_options`; the matching function takes the options as click gives them, by parameter
name. The Kafka client is imported only when an option needs it, so that `crawl` runs without it unless it
publishes.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.profiles import DEFAULT_PROFILE
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.embedded.folder import state_in
from dedup_service.runtime.kafka.client.config import Connection, read_properties
from dedup_service.runtime.memory_limit import parse_size
from dedup_service.runtime.readers.columns import Columns
from dedup_service.runtime.readers.folder import DEFAULT_PREFIX
from dedup_service.runtime.resources import SpaceOptions, profile_named, space_of
from dedup_service.runtime.workers.cores import usable_cores

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.state.mounted_bases import GivenBases
    from dedup_service.runtime.kafka.topics import Topics
    from dedup_service.runtime.workers.preparation import Preparer

_BASES_VARIABLE = "TWINSIEVE_LOG_BASES"
_BASE_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
"""It is written in verdicts, and read by people."""

F = TypeVar("F", bound=Callable[..., Any])


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return a decorator that adds `options`, which the help lists in this order."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


SPACE = click.option(
    "--space",
    metavar="SCHEME|FILE",
    help="How fingerprints are made: a weighting scheme, or the path of a space file. [default: twinsieve]",
)
"""What defines a space."""


def space_from(options: Mapping[str, Any]) -> SpaceOptions:
    """Return the space that the options name."""
    space = space_of(options["space"])
    if space.bits != 64:
        raise click.UsageError(f"{options['space']} has bits = {space.bits}: remove it, the index compares 64 bits")
    return space


PROFILE = click.option(
    "--profile",
    metavar="NAME|FILE",
    help="What makes a match: balanced, precise, broad, or the path of a profile file. "
    f"[default: the rule of the state or log, otherwise {DEFAULT_PROFILE}]",
)
"""What defines a match."""


def rule_from(options: Mapping[str, Any]) -> MatchRule | None:
    """Return the rule that the options name, or None: the rule of the state or the default applies."""
    return None if options["profile"] is None else profile_named(options["profile"])


class _Parsed(click.ParamType[Any]):
    """What `parse` makes of a text; a text for which it raises ConfigurationError is refused."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value that a text names."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)


KEEP = click.option(
    "--keep",
    metavar="PAGES|AGE",
    type=_Parsed("keep", Keep.parse),
    help="Kept pages that later ones are compared with: a number (100000000), an age (90d, 12h, 8w), both with a comma "
    "between them, or all; the earliest expire. [default: those of the state or log, otherwise all]",
)
"""The bounds of expiry."""


COLUMNS = click.option(
    "--columns",
    metavar="OURS=THEIRS,...",
    callback=lambda _context, _option, value: None if value is None else Columns.parse(value),
    help="Other names of columns or keys of JSON: text=content,url=metadata.warc_url.",
)
"""Names of what inputs have."""

URL_PREFIX = click.option(
    "--url-prefix",
    metavar="TEXT",
    default=DEFAULT_PREFIX,
    show_default=True,
    help="For a folder: prefix that makes URLs of the relative paths.",
)
"""What makes URLs of the files in a folder."""


def _bases(metavar: str, text: str, **more: Any) -> Callable[[F], F]:
    return click.option("--base", "bases", metavar=metavar, multiple=True, help=text, **more)


BASES = _bases(
    "DIR|ADDRESS",
    "Begin the state with the kept pages of another one, which is never changed: its folder, or an address "
    "(s3://…); repeatable. [default: those that the state was begun with]",
)
"""States whose kept pages are compared with."""

LOG_BASES = _bases(
    "NAME=DIR|ADDRESS",
    "Begin an empty log with the kept pages of a state, which is never changed; repeatable. [default: none]",
)
"""Bases that a service's log is begun with."""

SERVED_BASES = _bases(
    "NAME=DIR|ADDRESS",
    "Where a base of the log is: a state whose kept pages are compared with, and never changed; repeatable. "
    "`serve` begins an empty log with these. [default: none]",
    envvar=_BASES_VARIABLE,
    show_envvar=True,
)
"""Where the bases of a service's log are."""

MAX_MEMORY = click.option(
    "--max-memory",
    metavar="SIZE",
    type=_Parsed("size", parse_size),
    help="Memory that this process may use (8G, 512M), without its workers and mapped files. If --keep has a bound, "
    "no more pages are kept from nine tenths of it on, and the earliest expire; otherwise the run ends above it with "
    "an error, and a run with a higher limit goes on. Needs Linux. [default: no limit]",
)
"""The limit on memory."""

_WORK = "Workers that prepare pages (extraction, words, fingerprints)."
PROCESSES = click.option(
    "--processes", metavar="N", type=click.IntRange(1), help=f"{_WORK} [default: one for each core that it may use]"
)
SERVICE_PROCESSES = click.option(
    "--processes", metavar="N", type=click.IntRange(1), default=1, show_default=True, help=_WORK
)
"""Those of a service: on how many cores it runs beside others is for its owner to say."""


def preparer_from(options: Mapping[str, Any], space: SpaceOptions, *, keep_text: bool = True) -> "Preparer":
    """Return the workers that --processes names, by default one for each core that this process may use."""
    from dedup_service.runtime.workers.preparation import Preparer

    return Preparer(space, options.get("processes") or usable_cores(), keep_text=keep_text)


BROKER = (
    click.option(
        "--bootstrap",
        metavar="HOST:PORT,…",
        envvar="TWINSIEVE_BOOTSTRAP",
        show_envvar=True,
        help="Kafka brokers to connect to first.",
    ),
    click.option("--prefix", metavar="TEXT", default="", help="Prefix of all topic names. [default: none]"),
    click.option(
        "--properties",
        metavar="FILE",
        envvar="TWINSIEVE_PROPERTIES",
        show_envvar=True,
        help="Properties file of a Kafka client, such as for TLS and SASL: security.protocol, ssl.ca.location.",
    ),
)
"""Where a service's log is."""

OUTPUTS = click.option(
    "--outputs",
    type=click.Choice(["pages", "verdicts"]),
    default="pages",
    show_default=True,
    help="What is written for a page: its verdict and the page itself, or the verdict alone.",
)
"""What a service writes, and so which topics it needs."""

TARGET = (*BROKER, click.option("--state", metavar="DIR", help="State folder of `filter` or `crawl`; no broker."))
"""Where a log is: a service's (--bootstrap) or a state folder's (--state)."""


def connection_from(options: Mapping[str, Any]) -> Connection:
    """Return the connection that the options name. Raises UsageError without --bootstrap."""
    if not options["bootstrap"]:
        raise click.UsageError("no broker is named: give --bootstrap HOST:PORT")
    properties = read_properties(Path(options["properties"])) if options["properties"] else {}
    return Connection(options["bootstrap"], properties)


def bases_from(options: Mapping[str, Any]) -> "GivenBases":
    """Return where the bases of a log are, by name. Raises UsageError for one without a name, or given twice."""
    from dedup_service.runtime.kafka.state.mounted_bases import BASE_OPTION, GivenBases

    is_variable = _source_of("bases") is click.core.ParameterSource.ENVIRONMENT
    bases = GivenBases(given_by=f"the environment variable {_BASES_VARIABLE}" if is_variable else BASE_OPTION)
    for text in options["bases"]:
        name, equals, place = text.partition("=")
        if not (equals and place and _BASE_NAME.fullmatch(name)):
            raise click.UsageError(
                f"{bases.given_by}: {text!r} is no base: write NAME=FOLDER, as in corpus=/srv/corpus; a name has "
                "letters, digits, '.', '_' and '-', 100 at most"
            )
        if bases.setdefault(name, place) != place:
            raise click.UsageError(f"{bases.given_by} gives {name} twice: remove one of them")
    return bases


def _source_of(name: str) -> click.core.ParameterSource | None:
    """Return where the value of an option of the running command came from."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.get_parameter_source(name)


def topics_from(options: Mapping[str, Any]) -> "Topics":
    """Return the set of topics that the options name."""
    from dedup_service.runtime.kafka.topics import Topics

    return Topics(options["prefix"])


def state_folder(options: Mapping[str, Any]) -> str | None:
    """Return the state folder that the options of TARGET name, itself or as a JOBDIR; None if they name a broker.

    Raises UsageError for both or neither, and for a folder with bases of a service's log. What only the environment
    names, a broker or bases, yields to --state.
    """

    def is_given(name: str) -> bool:
        return bool(options.get(name)) and _source_of(name) is not click.core.ParameterSource.ENVIRONMENT

    if options["state"] and is_given("bootstrap"):
        raise click.UsageError("--bootstrap and --state name two logs: give one of them")
    if options["state"] and is_given("bases"):
        raise click.UsageError(
            "--base is for a service's log: a state is begun with `filter --base`, and knows its bases"
        )
    if not options["state"] and not options["bootstrap"]:
        raise click.UsageError("no log is named: give --bootstrap HOST:PORT, or --state DIR")
    return state_in(options["state"]) if options["state"] else None


_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_FOREVER_MS = -1
"""Kafka's value for no time limit."""


def parse_duration_ms(context: click.Context, parameter: click.Parameter, value: str) -> int:
    """Return a duration in milliseconds, or -1 for `forever`. For the `callback` of an option."""
    if value == "forever":
        return _FOREVER_MS
    found = re.fullmatch(r"([0-9]+)([smhd])", value.strip())
    if not found or not int(found[1]):
        raise click.BadParameter(f"{value!r} is not a duration: write 90s, 30m, 12h, 7d or forever", context, parameter)
    return int(found[1]) * _UNITS_MS[found[2]]


def format_duration_ms(duration_ms: int) -> str:
    """Return the shortest exact notation of a duration.

    >>> format_duration_ms(604_800_000), format_duration_ms(-1), format_duration_ms(90_000), format_duration_ms(1)
    ('7d', 'forever', '90s', '1ms')
    """
    if duration_ms < 0:
        return "forever"
    for unit, size_ms in sorted(_UNITS_MS.items(), key=lambda pair: -pair[1]):
        if duration_ms and duration_ms % size_ms == 0:
            return f"{duration_ms // size_ms}{unit}"
    return f"{duration_ms}ms"
