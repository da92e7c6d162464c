"""Health of a service, and the routes `/livez`, `/readyz` and `/metrics`.

A service is live while the loop of each step is running, or, during a restore, while the restore makes
progress. A step that completes no turn of its loop within the limit is stuck, and the process should be
restarted. A service is ready once its state is restored and each step has partitions of `pages`, so that it
can process pages.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from dedup_service.runtime.events import NullObserver, RestoreEvent
from dedup_service.runtime.kafka.status import ServiceStatus

__all__ = ["LIVE_LIMIT_S", "Health", "ProbeAnswer", "metrics_route", "probes", "probes_app"]

LIVE_LIMIT_S = 120.0
"""Longer than any single turn: a transaction that is given up, or a page that twice reaches its time limit."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The answer of a probe: good or not, and one line of text that says why not."""

    good: bool
    text: str


class Health(NullObserver):
    """Evaluates `status()` when a probe asks; an observer, because a restore reports progress by events.

    limit_s: a step without a turn for longer is stuck. clock: monotonic seconds, as in
    `StepStatus.ticked_at`.
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
        self._last_progress = clock()
        self._stopping = False

    def live(self) -> ProbeAnswer:
        """Whether every step took a turn within the limit."""
        status, now = self._status(), self._clock()
        last_turns = {step.step: max(step.ticked_at, self._last_progress) for step in status.steps}
        if not status.steps:
            last_turns["restore" if status.restore else "start"] = self._last_progress
        for name, turn_at in last_turns.items():
            if now - turn_at > self._limit_s:
                idle = f"{name} has made no progress for {now - turn_at:.0f} s"
                return ProbeAnswer(False, f"{idle}, the limit is {self._limit_s:g} s: restart the process")
        return ProbeAnswer(True, "live")

    def ready(self) -> ProbeAnswer:
        """Whether the service can process pages."""
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
        """Report not ready from now on, because the service drains."""
        self._stopping = True

    def restore(self, event: RestoreEvent) -> None:  # noqa: ARG002 - an observer's signature
        """Note the progress of a restore."""
        self._last_progress = self._clock()


def _unrestored(status: ServiceStatus) -> str:
    if status.restore is None:
        return "starting"
    if status.restore.done:
        return "restored, starting"
    return f"restoring: {status.restore.records:,} of {status.restore.total:,} records"


def probes_app(health: Health, registry: CollectorRegistry) -> Starlette:
    """Return an application with the probes and metrics alone."""
    return Starlette(routes=[*probes(health), metrics_route(registry)])


def probes(health: Health) -> list[BaseRoute]:
    """Return the routes `/livez` and `/readyz`."""
    return [Route("/livez", _probe(health.live)), Route("/readyz", _probe(health.ready))]


def metrics_route(registry: CollectorRegistry) -> BaseRoute:
    """Return the route `/metrics`."""

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
