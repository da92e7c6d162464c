"""The routes: `/livez`, `/readyz`, `/metrics`.

`app_of` takes further routes and answers with one Starlette application.
"""

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from dedup_service.faces.http.health import Answer, Health

__all__ = ["app_of", "metrics_route", "probes"]


def app_of(health: Health, registry: CollectorRegistry, more: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the application. `more`: routes beside those of this module."""
    return Starlette(routes=[*probes(health), metrics_route(registry), *more])


def probes(health: Health) -> list[BaseRoute]:
    """Return `/livez` and `/readyz`."""
    return [Route("/livez", _probe(health.live)), Route("/readyz", _probe(health.ready))]


def metrics_route(registry: CollectorRegistry) -> BaseRoute:
    """Return `/metrics`."""

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return Route("/metrics", metrics)


def _probe(ask: Callable[[], Answer]) -> Callable[[Request], Response]:
    def probe(request: Request) -> Response:  # noqa: ARG001 - Starlette's signature
        answer = ask()
        headers = {"cache-control": "no-store"}
        return PlainTextResponse(answer.text + "\n", status_code=200 if answer.good else 503, headers=headers)

    return probe
