"""The dashboard: all routes behind the guard, on a server in a thread of its own.

    with dashboard(watched, registry, address, token) as server: ...

`dashboard_routes` is where further pages join: each module of routes takes what it asks from `Watched`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from dedup_service.faces.http.address import Address
from dedup_service.faces.http.app import metrics_route
from dedup_service.faces.http.feed_events import EventHub
from dedup_service.faces.http.feed_routes import feed_routes
from dedup_service.faces.http.guard import PROBES, Guard
from dedup_service.faces.http.page_routes import page_routes
from dedup_service.faces.http.server import HttpServer
from dedup_service.faces.http.token import Token, is_loopback
from dedup_service.faces.http.why_backends import backend_of
from dedup_service.faces.http.why_routes import WhyBackend, why_routes
from dedup_service.runtime.embedded import NearDuplicateFilter
from dedup_service.runtime.feed import Feed

if TYPE_CHECKING:
    from dedup_service.runtime.kafka.client.settings import Connection
    from dedup_service.runtime.kafka.service import Service
    from dedup_service.runtime.kafka.topics import Topics
    from dedup_service.runtime.kafka.why.serving import Recent

__all__ = ["Watched", "dashboard", "dashboard_routes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What routes may ask.

    feed: what the facts add up to. sieve: the embedded filter, None in the service. service, connection, topics: of
    the service, None elsewhere. recent: its observer that remembers where pages stand.
    """

    feed: Feed
    sieve: NearDuplicateFilter | None = None
    service: "Service | None" = None
    connection: "Connection | None" = None
    topics: "Topics | None" = None
    recent: "Recent | None" = None


def dashboard_routes(watched: Watched, backend: WhyBackend | None = None) -> list[BaseRoute]:
    """Return the routes of the dashboard, `/events` apart, which needs the server's own loop.

    backend: who explains; None has no routes for that.
    """
    why = [] if backend is None else why_routes(watched.feed, backend)
    return [*page_routes(), *feed_routes(watched.feed), *why]


@contextmanager
def dashboard(
    watched: Watched,
    registry: CollectorRegistry,
    address: Address,
    token: Token | None,
    *,
    more: Sequence[BaseRoute] = (),
    hub: EventHub | None = None,
    option: str = "--dashboard",
) -> Iterator[HttpServer]:
    """Serve the dashboard on `address` while entered; ConfigurationError where nothing can listen there.

    more: routes beside it, such as probes. hub: who spreads events; for tests. option: named where a port is taken.
    """
    hub = hub or EventHub(watched.feed)
    backend = backend_of(watched)
    app = _app(watched, registry, hub, more, backend)
    guarded = Guard(app, token=token, local=is_loopback(address.host), unguarded=PROBES)
    with HttpServer(guarded, address, option=option) as server:
        hub.cut_off = server.cut_off
        try:
            yield server
        finally:
            hub.close()
            if backend is not None:
                backend.close()


def _app(
    watched: Watched,
    registry: CollectorRegistry,
    hub: EventHub,
    more: Sequence[BaseRoute],
    backend: WhyBackend | None,
) -> ASGIApp:
    of_dashboard = dashboard_routes(watched, backend)
    routes = [Route("/events", hub, methods=["GET"]), metrics_route(registry), *of_dashboard, *more]
    return Starlette(routes=routes, lifespan=hub.lifespan)
