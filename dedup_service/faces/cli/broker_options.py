"""How a command reaches the brokers, and which set of topics it means: the same options for all of them.

The client library is imported when an option is used, so that `crawl`, which can do without, needs it only then.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dedup_service.runtime.kafka.client.settings import Connection, read_properties

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.topics import Topics

__all__ = ["BROKER", "connection_of", "topics_of"]

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
