"""The option `--dashboard`, and the dashboard that it describes.

The HTTP libraries are an optional extra, so they are imported only if a dashboard is requested.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dedup_service.interfaces.http.access_guard import Token
    from dedup_service.interfaces.http.dashboard import EmbeddedDashboard
    from dedup_service.interfaces.http.server import Address

DASHBOARD = click.option(
    "--dashboard",
    metavar="[HOST:]PORT",
    help="Serve a live dashboard over HTTP during the run; on any address but loopback, $TWINSIEVE_DASHBOARD_TOKEN has "
    "the secret that opens it. [default: none; default host: loopback]",
)


def dashboard_from(options: Mapping[str, Any]) -> "tuple[Address, Token | None] | None":
    """Return the dashboard's address and its token, or None if no dashboard is requested.

    Raises ConfigurationError if the address is invalid or needs a token.
    """
    if options["dashboard"] is None:
        return None
    from dedup_service.interfaces.http.access_guard import token_for
    from dedup_service.interfaces.http.server import Address

    address = Address.parse(options["dashboard"])
    return address, token_for(address)


def embedded_dashboard(options: Mapping[str, Any], mode: str) -> "EmbeddedDashboard | None":
    """Return the dashboard of a filter in this process, or None if no dashboard is requested."""
    dashboard = dashboard_from(options)
    if dashboard is None:
        return None
    from dedup_service.interfaces.http.dashboard import EmbeddedDashboard

    return EmbeddedDashboard(*dashboard, mode)


def print_dashboard_url(address: object) -> None:
    """Print the dashboard's URL to stderr."""
    click.echo(f"Dashboard: http://{address}/", err=True)
