"""The dashboard: all routes behind the guard, on a server in a thread of its own.

    with dashboard(watched, registry, address, token) as server: ...

`dashboard_routes` is where further pages join: each module of routes takes what it asks from `Watched`.

The dashboard of a filter in this process: of `twinsieve filter`, of a crawl.

watching = EmbeddedDashboard(address, token, "filter")
with NearDuplicateFilter.open(…, observers=watching.observers) as sieve, watching.serving(sieve, pool): ...
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from dedup_service.interfaces.http.access_guard import PROBES, AccessGuard, Token, is_loopback
from dedup_service.interfaces.http.event_stream import EventHub
from dedup_service.interfaces.http.explain_backends import Watched, backend_of
from dedup_service.interfaces.http.explain_routes import ExplainBackend, explain_routes
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.page_routes import page_routes
from dedup_service.interfaces.http.probes import metrics_route
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.interfaces.http.stats_routes import stats_routes
from dedup_service.runtime.embedded.filter import NearDuplicateFilter, view_of
from dedup_service.runtime.events import Observer
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.newest import DuplicateRow
from dedup_service.runtime.live_stats.recheck import Rechecker, Sampler
from dedup_service.runtime.workers.pool import PoolState

__all__ = ["EmbeddedDashboard", "dashboard", "dashboard_routes"]


def dashboard_routes(watched: Watched, backend: ExplainBackend | None = None) -> list[BaseRoute]:
    """Return the routes of the dashboard, `/events` apart, which needs the server's own loop.

    backend: who explains; None has no routes for that.
    """
    why = [] if backend is None else explain_routes(watched.feed, backend)
    return [*page_routes(), *stats_routes(watched.feed), *why]


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
    guarded = AccessGuard(app, token=token, local=is_loopback(address.host), unguarded=PROBES)
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
    backend: ExplainBackend | None,
) -> ASGIApp:
    of_dashboard = dashboard_routes(watched, backend)
    routes = [Route("/events", hub, methods=["GET"]), metrics_route(registry), *of_dashboard, *more]
    return Starlette(routes=routes, lifespan=hub.lifespan)


class EmbeddedDashboard:
    """Feed and metrics from the beginning; the server while `serving`. mode: filter or crawl."""

    def __init__(self, address: Address, token: Token | None, mode: str) -> None:
        self._address, self._token = address, token
        self._sampler = Sampler()
        self.feed = LiveStats(mode, sampler=self._sampler)
        self._metrics = Metrics(feed=self.feed)
        self.observers: tuple[Observer, ...] = (self.feed, self._metrics)

    @contextmanager
    def serving(
        self, dedup: NearDuplicateFilter, pool: Callable[[], PoolState | None], *, option: str = "--dashboard"
    ) -> Iterator[HttpServer]:
        """Serve what `sieve` tells. pool: asked how the worker processes stand. option: named where a port is taken."""
        view = view_of(dedup)

        def texts(row: DuplicateRow) -> tuple[str | None, str | None]:
            original = row.original_sequence
            return view.text_at(row.sequence), None if original is None else view.text_at(original)

        self.feed.pool, self.feed.space, self.feed.ask_index = pool, dedup.space_id, view.index_event
        watched = Watched(feed=self.feed, dedup=dedup)
        with (
            dashboard(watched, self._metrics.registry, self._address, self._token, option=option) as server,
            Rechecker(self._sampler, texts, self.feed.rechecked),
        ):
            yield server
