"""Where a person's record goes: into the log of a service (--bootstrap) or of a state folder (--state)."""

from collections.abc import Mapping
from typing import Any

import click

from dedup_service.faces.cli.broker_options import BROKER

__all__ = ["TARGET", "state_folder"]

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
