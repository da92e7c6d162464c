"""Health of a service, and the routes `/startupz`, `/livez`, `/readyz` and `/metrics`.

A service has started once its state is restored, or when it waits for somebody to put a base there. It is live
while the loop of each step is running, or, before that, while bases are downloaded and entered, tables loaded and
the log restored: as long as that makes progress. A step that completes no turn of its loop within the limit is
stuck, and the process should be restarted. A service is ready once its state is restored and each step has
partitions of `pages`, so that it can process pages, and as long as it does: it is not ready while records of one
of its partitions wait and none is done for too long, or while nobody knows whether they wait. A service that is
behind but makes progress is ready.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dedup_service.runtime.events import Observer, RestoreEvent
from dedup_service.runtime.kafka.status import Backlog, PartitionBacklog, ServiceStatus, StepStatus

LIVE_LIMIT_S = 120.0
"""Longer than any single turn: a transaction that is given up, or a page that twice reaches its time limit."""

STALL_LIMIT_S = 90.0
"""Longer than a page that twice reaches its time limit of 20 s, and a rebalance after it."""

WAIT_LIMIT_S = 5.0
"""For which a step waits for a shard or a resolver, before that is said: a batch takes far less."""

BLIND_LIMIT_S = 15.0
"""The backlog is measured every 5 s: brokers that answer are heard of three times."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The answer of a probe: good or not, and one line of text that says why not."""

    good: bool
    text: str


class Health(Observer):
    """Evaluates `status()` when a probe asks; an observer, because a restore reports progress by events.

    limit_s: a step without a turn for longer is stuck. stall_s: a partition whose records wait for longer while none
    is done makes the service not ready. clock: monotonic seconds, as in `StepStatus.ticked_at`.
    """

    def __init__(
        self,
        status: Callable[[], ServiceStatus],
        *,
        limit_s: float = LIVE_LIMIT_S,
        stall_s: float = STALL_LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._status = status
        self._limit_s = limit_s
        self._stall_s = stall_s
        self._clock = clock
        self._last_progress = clock()
        self._stopping = False

    def started(self) -> ProbeAnswer:
        """Whether the state is restored, so that `live` and `ready` are to be asked."""
        status = self._status()
        if status.ready or status.waits_for:
            return ProbeAnswer(True, "started")
        return ProbeAnswer(False, _unrestored(status))

    def live(self) -> ProbeAnswer:
        """Whether every step took a turn within the limit."""
        status, now = self._status(), self._clock()
        if status.waits_for:
            return ProbeAnswer(True, f"waiting: {status.waits_for}")  # a restart would not change that
        last_turns = {step.step: max(step.ticked_at, self._last_progress) for step in status.steps}
        if not status.steps:
            last_turns["restore" if status.restore else "start"] = max(self._last_progress, status.start[1])
        for name, turn_at in last_turns.items():
            if now - turn_at > self._limit_s:
                idle = f"{name} has made no progress for {now - turn_at:.0f} s"
                return ProbeAnswer(False, f"{idle}, the limit is {self._limit_s:g} s: restart the process")
        return ProbeAnswer(True, "live")

    def ready(self) -> ProbeAnswer:
        """Whether the service can process pages, and does."""
        status = self._status()
        if self._stopping:
            return ProbeAnswer(False, "stopping")
        if not status.ready:
            return ProbeAnswer(False, _unrestored(status))
        waiting = [step for step in status.steps if not step.assigned]
        if waiting:
            why = next((step.waits_for for step in waiting if step.waits_for), "no partitions of pages are assigned")
            return ProbeAnswer(False, f"{' and '.join(step.step for step in waiting)}: {why}")
        held_up = next((step for step in status.steps if step.waits_for and step.waits_s > WAIT_LIMIT_S), None)
        if held_up is not None:
            return ProbeAnswer(False, f"{held_up.step}: {held_up.waits_for}, for {held_up.waits_s:.0f} s")
        problem = self._blindness(status.backlog) or self._stall(status.backlog, status.steps)
        return ProbeAnswer(True, "ready") if problem is None else ProbeAnswer(False, problem)

    def _blindness(self, backlog: Backlog) -> str | None:
        """Return since when it is unknown whether records wait, and why; None if it is known."""
        if backlog.measured_at is None or (age_s := self._clock() - backlog.measured_at) <= BLIND_LIMIT_S:
            return None
        return f"for {age_s:.0f} s it is not known whether pages wait: {backlog.problem or 'no answer yet'}" + _open(
            backlog
        )

    def _stall(self, backlog: Backlog, steps: Iterable[StepStatus]) -> str | None:
        """Return which partition of this process makes no progress, for how long, and what is missing; None if none."""
        mine = {(step.step, number) for step in steps for number in step.assigned}
        stalled = [
            row for row in backlog.partitions if (row.step, row.number) in mine and row.stalled_s > self._stall_s
        ]
        if not stalled:
            return None
        worst = max(stalled, key=lambda row: row.stalled_s)
        others = len({row.partition for row in stalled}) - 1
        return (
            f"{worst.step}: {_what_waits(worst)}, and none was done for "
            f"{worst.stalled_s:.0f} s, the limit is {self._stall_s:g} s"
            + ("; the first is not in the log yet" if _is_unprepared(worst, backlog) else "")
            + (f"; {others} more partitions" if others else "")
            + _open(backlog)
        )

    def stopping(self) -> None:
        """Report not ready from now on, because the service drains."""
        self._stopping = True

    def restore(self, event: RestoreEvent) -> None:  # noqa: ARG002 - an observer's signature
        """Note the progress of a restore."""
        self._last_progress = self._clock()


def _what_waits(row: PartitionBacklog) -> str:
    """Return which records of a partition wait."""
    if not row.blocked:
        return f"{row.lag:,} records of {row.partition} wait"
    return f"records of {row.partition} wait in or behind a transaction that a publisher has not ended"


def _open(backlog: Backlog) -> str:
    """Return which transactions keep topics from being read, and what to do."""
    if not backlog.transactions:
        return ""
    return (
        f"; {'; '.join(map(str, backlog.transactions))}; if its producer does not end it, run "
        "`twinsieve topics repair-transactions`"
    )


def _is_unprepared(row: PartitionBacklog, backlog: Backlog) -> bool:
    """Whether the deciding step waits for the fingerprinting step."""
    return row.step == "decide" and any(
        other.step == "fingerprint" and other.partition == row.partition and other.offset <= row.offset
        for other in backlog.partitions
    )


def _unrestored(status: ServiceStatus) -> str:
    if status.waits_for:
        return status.waits_for
    if status.restore is None:
        return status.start[0]
    if status.restore.done:
        return "restored, starting"
    return f"restoring: {status.restore.messages:,} of {status.restore.total:,} messages"


def probes_app(health: Health, registry: CollectorRegistry, said: str) -> Starlette:
    """Return an application with the probes and metrics alone; said: to a person who looks at `/`."""
    routes = [*probes(health), metrics_route(registry)]
    said = f"{said}; here are {', '.join(route.path for route in routes)}\n"
    return Starlette(routes=[*routes, Route("/", lambda _: PlainTextResponse(said))])


def probes(health: Health) -> list[Route]:
    """Return the routes `/startupz`, `/livez` and `/readyz`."""
    asked = {"/startupz": health.started, "/livez": health.live, "/readyz": health.ready}
    return [Route(path, _probe(answer)) for path, answer in asked.items()]


def metrics_route(registry: CollectorRegistry) -> Route:
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
