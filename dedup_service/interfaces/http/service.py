"""A Kafka service over HTTP: probes, metrics, and the dashboard where it may be shown.

`--http` carries the dashboard too, on loopback or if there is a token. Elsewhere it has only probes and
metrics, which contain nothing of the pages. With `--dashboard`, the dashboard has its own address, and
`--http` has the other two.
"""

import logging
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from dedup_service.interfaces.http.access_guard import ENV_VARIABLE, AccessGuard, Token
from dedup_service.interfaces.http.dashboard import serve_dashboard
from dedup_service.interfaces.http.explain_backends import DashboardSources
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.probes import BLIND_LIMIT_S, LIVE_LIMIT_S, Health, probes, probes_app
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.runtime.events import Observer
from dedup_service.runtime.kafka.explain.live_pages import RecentDecisions
from dedup_service.runtime.kafka.explain.page_lookup import PageTextLookup
from dedup_service.runtime.kafka.service import DECIDE, FINGERPRINT, Service, ServiceSettings
from dedup_service.runtime.kafka.status import ServiceStatus
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.newest import DuplicateRow
from dedup_service.runtime.live_stats.recheck import Rechecker, Sampler
from dedup_service.runtime.workers.page_reader import PageReader

_LOG = logging.getLogger(__name__)

TURN_TIMEOUTS = 4
"""Transaction timeouts that a turn of a step may last: an abort, a new producer, a rewind, one to spare."""

RECHECK_S = 5.0
"""Time between two rechecks: each reads both pages again and extracts them in a worker process."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to serve. http: probes, metrics. dashboard: everything, or the same as `http`. token: of the dashboard."""

    http: Address | None
    dashboard: Address | None
    token: Token | None


class ServedService:
    """A service with its HTTP server. observers: additional observers of the service."""

    def __init__(self, settings: ServiceSettings, observers: Iterable[Observer], addresses: Addresses) -> None:
        self._settings, self._addresses = settings, addresses
        limit_s = max(LIVE_LIMIT_S, TURN_TIMEOUTS * settings.transaction_timeout_s)
        self._health = Health(self._status, limit_s=limit_s, stall_s=settings.stall_s)
        self._sampler = Sampler(between_s=RECHECK_S)
        self._live_stats = LiveStats("serve", scope="log", sampler=self._sampler)
        self._recent = RecentDecisions()
        self._metrics = Metrics(self._status, self._health, self._live_stats)
        self._reader = PageReader(timeout_s=settings.page_timeout_s)
        self.service = Service(settings, [*observers, self._health, self._metrics, self._live_stats, self._recent])
        self._live_stats.pool = self.service.pool_state
        self._live_stats.lag, self._live_stats.lag_age_s = self._lag, self._lag_age_s
        self._live_stats.not_ready = self._not_ready
        self._live_stats.processes = lambda: [asdict(one) for one in self._status().backlog.members]

    def stopping(self) -> None:
        """Report not ready from now on, because the service drains."""
        self._health.stopping()

    def serve(self, stack: ExitStack) -> None:
        """Serve until `stack` is closed; ConfigurationError if nothing can listen on an address."""
        addresses = self._addresses
        registry, settings = self._metrics.registry, self._settings
        topics = Topics(settings.prefix)
        sources = DashboardSources(
            live_stats=self._live_stats,
            service=self.service,
            connection=settings.connection,
            topics=topics,
            recent=self._recent,
            reader=self._reader,
        )
        urls = {}
        if addresses.http is not None and addresses.http is not addresses.dashboard:
            urls["dashboard"] = f"off: no token in {ENV_VARIABLE}" if addresses.dashboard is None else "elsewhere"
            app = probes_app(self._health, registry, f"dashboard {urls['dashboard']}")
            server = stack.enter_context(HttpServer(AccessGuard(app, token=None, local=False), addresses.http))
            urls["http"] = f"http://{server.address}"
        if addresses.dashboard is not None:
            name = "http" if addresses.http is addresses.dashboard else "dashboard"
            server = stack.enter_context(
                serve_dashboard(
                    sources,
                    registry,
                    addresses.dashboard,
                    addresses.token,
                    more=probes(self._health),
                    option=f"--{name}",
                    close_s=self.service.left_s,
                )
            )
            urls[name] = f"http://{server.address}"
            self._recheck(stack, PageTextLookup(settings.connection, topics, self._reader))
        _LOG.info("listening", extra={"facts": urls})

    def _status(self) -> ServiceStatus:
        return self.service.status()

    def _lag(self) -> dict[str, dict[str, int]]:
        """Return the lag by step and partition; nothing if it is not known any more."""
        if (self._lag_age_s() or 0.0) > BLIND_LIMIT_S:
            return {}
        backlog = self._status().backlog
        return {step: backlog.lag(step) for step in (FINGERPRINT, DECIDE)}

    def _lag_age_s(self) -> float | None:
        measured_at = self._status().backlog.measured_at
        return None if measured_at is None else time.monotonic() - measured_at

    def _not_ready(self) -> str:
        answer = self._health.ready()
        return "" if answer.good else answer.text

    def _recheck(self, stack: ExitStack, pages: PageTextLookup) -> None:
        """Compare some duplicates again, by their texts, until `stack` is closed."""

        def texts(row: DuplicateRow) -> tuple[str | None, str | None]:
            original = row.original_sequence
            return pages.text_at(row.sequence), None if original is None else pages.text_at(original)

        rechecker = Rechecker(
            self._sampler, texts, self._live_stats.rechecked, close_s=self.service.left_s, last=pages.close
        )
        stack.enter_context(rechecker)
        stack.callback(self._reader.close)  # first of all, so that neither a recheck nor an explanation waits for it
        stack.callback(rechecker.stop)
