"""Whether a service lives and whether it is ready, from the facts it tells and the clock.

It lives while its steps take turns (while it restores: while that goes on); one that stands still for longer than the
limit is stuck, and whoever watches should start it anew. It is ready once its state is restored and each step has
partitions of `pages`, so that pages go through it.

The routes: `/livez`, `/readyz`, `/metrics`.

`app_of` takes further routes and answers with one Starlette application.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from dedup_service.runtime.events import NullObserver, RestoreEvent
from dedup_service.runtime.kafka.status import ServiceStatus

__all__ = ["LIVE_LIMIT_S", "Health", "ProbeAnswer", "app_of", "metrics_route", "probes"]

LIVE_LIMIT_S = 120.0
"""Longer than any single turn: a transaction that is given up, a page at its time limit, tried twice."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What is said: whether it is so, and in one line why not."""

    good: bool
    text: str


class Health(NullObserver):
    """Judges `status()` at the time it is asked; also an observer, since a restore shows life by its facts.

    clock: monotonic seconds, the clock of `StepStatus.ticked_at`.
    """

    def __init__(
        self,
        status: Callable[[], ServiceStatus],
        *,
        limit_s: float = LIVE_LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._status = status
        self._limit_s = limit_s
        self._clock = clock
        self._sign_of_life = clock()
        self._stopping = False

    def live(self) -> ProbeAnswer:
        """Whether every part took a turn within the limit."""
        status, now = self._status(), self._clock()
        signs = {step.step: max(step.ticked_at, self._sign_of_life) for step in status.steps}
        if not status.steps:
            signs["restore" if status.restore else "start"] = self._sign_of_life
        for name, at in signs.items():
            if now - at > self._limit_s:
                return ProbeAnswer(
                    False, f"{name} has stood still for {now - at:.0f} s, the limit is {self._limit_s:g} s"
                )
        return ProbeAnswer(True, "live")

    def ready(self) -> ProbeAnswer:
        """Whether pages go through."""
        status = self._status()
        if self._stopping:
            return ProbeAnswer(False, "stopping")
        if not status.ready:
            return ProbeAnswer(False, _unrestored(status))
        waiting = [step.step for step in status.steps if not step.assigned]
        if waiting:
            return ProbeAnswer(False, f"{' and '.join(waiting)}: no partitions of pages are assigned")
        return ProbeAnswer(True, "ready")

    def stopping(self) -> None:
        """From now on the service drains: no longer ready."""
        self._stopping = True

    def restore(self, fact: RestoreEvent) -> None:  # noqa: ARG002 - an observer's signature
        """A restore that goes on is alive."""
        self._sign_of_life = self._clock()


def _unrestored(status: ServiceStatus) -> str:
    if status.restore is None:
        return "starting"
    if status.restore.done:
        return "restored, starting"
    return f"restoring: {status.restore.records:,} of {status.restore.total:,} records"


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


def _probe(ask: Callable[[], ProbeAnswer]) -> Callable[[Request], Response]:
    def probe(request: Request) -> Response:  # noqa: ARG001 - Starlette's signature
        answer = ask()
        headers = {"cache-control": "no-store"}
        return PlainTextResponse(answer.text + "\n", status_code=200 if answer.good else 503, headers=headers)

    return probe
