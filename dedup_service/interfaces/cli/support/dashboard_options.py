"""`--dashboard`: what the commands that have it share.

The server's libraries are an extra; they are imported only where a dashboard is asked for.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dedup_service.interfaces.http.access_guard import Token
    from dedup_service.interfaces.http.dashboard import EmbeddedDashboard
    from dedup_service.interfaces.http.server import Address

__all__ = ["DASHBOARD", "dashboard_of", "embedded_dashboard", "tell_where"]

DASHBOARD = (
    click.option(
        "--dashboard",
        metavar="[HOST:]PORT",
        help="Show live what is found, over HTTP, while it runs. [default host: loopback]",
    ),
    click.option(
        "--dashboard-token",
        metavar="TOKEN",
        help="Opens the dashboard; needed on any address but loopback. [default: $TWINSIEVE_DASHBOARD_TOKEN]",
    ),
)
"""For `with_options`."""


def dashboard_of(options: Mapping[str, Any]) -> "tuple[Address, Token | None] | None":
    """Return where the dashboard is to be and what opens it, None where none is asked for.

    UsageError for a token alone; ConfigurationError for an address that is none or needs a token.
    """
    if options["dashboard"] is None:
        if options["dashboard_token"] is not None:
            raise click.UsageError("--dashboard-token means nothing without --dashboard [HOST:]PORT")
        return None
    from dedup_service.interfaces.http.access_guard import token_for
    from dedup_service.interfaces.http.server import Address

    address = Address.parse(options["dashboard"])
    return address, token_for(address, options["dashboard_token"])


def embedded_dashboard(options: Mapping[str, Any], mode: str) -> "EmbeddedDashboard | None":
    """Return the dashboard of a filter in this process, None where none is asked for."""
    wanted = dashboard_of(options)
    if wanted is None:
        return None
    from dedup_service.interfaces.http.dashboard import EmbeddedDashboard

    return EmbeddedDashboard(*wanted, mode)


def tell_where(address: object) -> None:
    """Say on stderr where the dashboard is."""
    click.echo(f"Dashboard: http://{address}/", err=True)
