"""The dashboard: all routes behind the access guard, on a server in a background thread.

`serve_dashboard` serves it for whatever `DashboardSources` name. `EmbeddedDashboard` is the dashboard of a
filter in this process, of `twinsieve filter` or of a crawl:

    dashboard = EmbeddedDashboard(address, token, "filter")
    with NearDuplicateFilter.open(…, observers=dashboard.observers) as dedup:
        with dashboard.serving(dedup, pool): ...

New pages of the dashboard join in `dashboard_routes`: each module of routes takes what it needs from the
sources.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from dedup_service.core.verdict import VerdictKind
from dedup_service.interfaces.http.access_guard import PROBES, AccessGuard, Token, is_loopback
from dedup_service.interfaces.http.event_stream import EventHub
from dedup_service.interfaces.http.explain_backends import DashboardSources, backend_for
from dedup_service.interfaces.http.explain_routes import CLOSE_S, ExplainBackend, explain_routes
from dedup_service.interfaces.http.group_routes import group_routes
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.page_routes import page_routes
from dedup_service.interfaces.http.probes import metrics_route
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.runtime.embedded.filter import NearDuplicateFilter, view_of
from dedup_service.runtime.events import Observer
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.figures import VERSION, stats
from dedup_service.runtime.live_stats.newest import DuplicateRow
from dedup_service.runtime.live_stats.recheck import Rechecker, Sampler
from dedup_service.runtime.workers.pool import PoolState

MAX_ROWS = 200
ROWS = 50

_encode = msgspec.json.Encoder().encode


class _InvalidParameterError(Exception):
    """A parameter is invalid; the message says what it may be."""


def stats_routes(live_stats: LiveStats) -> list[BaseRoute]:
    """Return the routes that answer from `live_stats`."""

    async def all_stats(request: Request) -> Response:
        history = request.query_params.get("history")
        if history not in {None, "none"}:
            return _refused(f"history must be none or left out, got {history[:50]!r}")
        return _json(stats(live_stats, history=history is None))

    async def duplicates(request: Request) -> Response:
        try:
            return _json(_newest(live_stats, request))
        except _InvalidParameterError as error:
            return _refused(str(error))

    return [Route("/api/stats", all_stats), Route("/api/duplicates", duplicates)]


def _newest(live_stats: LiveStats, request: Request) -> dict[str, Any]:
    """Return the rows that a request selects, newest first, and whether there are more."""
    text = request.query_params.get("search", "").strip().casefold()
    verdict = request.query_params.get("verdict") or None
    if verdict not in {None, *VerdictKind}:
        raise _InvalidParameterError(f"verdict must be one of {', '.join(sorted(VerdictKind))}")
    limit = _number(request, "limit", ROWS, MAX_ROWS)
    before = _number(request, "before", None, None)
    with live_stats.lock:
        rows = live_stats.newest.rows(verdict and VerdictKind(verdict))
    selected: list[DuplicateRow] = []
    for row in rows:
        if (before is None or row.number < before) and row.has(text):
            selected.append(row)
            if len(selected) > limit:
                break
    return {"version": VERSION, "rows": [row.shown() for row in selected[:limit]], "more": len(selected) > limit}


def _number(request: Request, name: str, default: Any, limit: int | None) -> Any:
    text = request.query_params.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 16) or int(text) < 1 or int(text) > (limit or 1 << 53):
        raise _InvalidParameterError(f"{name} must be an integer from 1" + (f" to {limit}" if limit else ""))
    return int(text)


def _json(value: Any) -> Response:
    return Response(_encode(value), media_type="application/json")


def _refused(error: str) -> Response:
    return JSONResponse({"error": error}, status_code=400)


class EmbeddedDashboard:
    """The dashboard of a filter in this process. mode: `filter` or `crawl`.

    observers: give them to the filter; live stats and metrics count from the start. The server runs while
    `serving`.
    """

    def __init__(self, address: Address, token: Token | None, mode: str) -> None:
        self._address, self._token = address, token
        self._sampler = Sampler()
        self.live_stats = LiveStats(mode, sampler=self._sampler)
        self._metrics = Metrics(live_stats=self.live_stats)
        self.observers: tuple[Observer, ...] = (self.live_stats, self._metrics)

    @contextmanager
    def serving(
        self, dedup: NearDuplicateFilter, pool: Callable[[], PoolState | None], *, option: str = "--dashboard"
    ) -> Iterator[HttpServer]:
        """Serve the dashboard of `dedup` during the block.

        pool: returns the state of the workers, or None without any. option: the option that the
        ConfigurationError names if the port is taken.
        """
        view = view_of(dedup)

        def texts(row: DuplicateRow) -> tuple[str | None, str | None]:
            original = row.original_sequence
            return view.text_at(row.sequence), None if original is None else view.text_at(original)

        stats = self.live_stats
        stats.pool, stats.space, stats.ask_index = pool, dedup.space_id, view.index_event
        sources = DashboardSources(live_stats=stats, dedup=dedup)
        with (
            serve_dashboard(sources, self._metrics.registry, self._address, self._token, option=option) as server,
            Rechecker(self._sampler, texts, stats.rechecked),
        ):
            yield server


@contextmanager
def serve_dashboard(
    sources: DashboardSources,
    registry: CollectorRegistry,
    address: Address,
    token: Token | None,
    *,
    more: Sequence[BaseRoute] = (),
    hub: EventHub | None = None,
    option: str = "--dashboard",
    close_s: Callable[[], float] = lambda: CLOSE_S,
) -> Iterator[HttpServer]:
    """Serve the dashboard on `address` during the block; ConfigurationError if nothing can listen there.

    more: additional routes, such as probes. hub: the event stream, for tests. option: the option that the error
    names. close_s: returns how long the end may wait for an explanation in progress.
    """
    hub = hub or EventHub(sources.live_stats)
    backend = backend_for(sources)
    app = _app(sources, registry, hub, more, backend)
    guarded = AccessGuard(app, token=token, local=is_loopback(address.host), unguarded=PROBES)
    with HttpServer(guarded, address, option=option) as server:
        hub.cut_off = server.cut_off
        try:
            yield server
        finally:
            hub.close()
            if backend is not None:
                backend.close(close_s())


def dashboard_routes(sources: DashboardSources, backend: ExplainBackend | None = None) -> list[BaseRoute]:
    """Return the routes of the dashboard, except `/events`, which needs the server's event loop.

    backend: answers explanations; None leaves their routes out.
    """
    explain = [] if backend is None else [*explain_routes(sources.live_stats, backend), *group_routes(backend)]
    return [*page_routes(), *stats_routes(sources.live_stats), *explain]


def _app(
    sources: DashboardSources,
    registry: CollectorRegistry,
    hub: EventHub,
    more: Sequence[BaseRoute],
    backend: ExplainBackend | None,
) -> ASGIApp:
    events = Route("/events", hub, methods=["GET"])
    routes = [events, metrics_route(registry), *dashboard_routes(sources, backend), *more]
    return Starlette(routes=routes, lifespan=hub.lifespan)
