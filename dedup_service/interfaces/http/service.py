"""The service over HTTP: probes, metrics, and the dashboard where it may be shown.

`--http` carries the dashboard too, on loopback or where there is a token; elsewhere it has probes and metrics alone, as
they have no page content. With `--dashboard` that has an address of its own, and `--http` has the other two.
"""

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from dedup_service.interfaces.http.access_guard import Token
from dedup_service.interfaces.http.dashboard import dashboard
from dedup_service.interfaces.http.explain_backends import Watched
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.probes import LIVE_LIMIT_S, Health, app_of, probes
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.runtime.events import Observer
from dedup_service.runtime.kafka.explain.live_pages import RecentDecisions
from dedup_service.runtime.kafka.explain.page_lookup import PageTextLookup
from dedup_service.runtime.kafka.service import Service, ServiceSettings
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.newest import DuplicateRow
from dedup_service.runtime.live_stats.recheck import Rechecker, Sampler

__all__ = ["Addresses", "ServedService"]

_LOG = logging.getLogger(__name__)

TURN = 4
"""Transaction timeouts that a turn of a step may last: one given up, a new producer, a rewind, and one to spare."""

BETWEEN_S = 5.0
"""Between two checks: both pages are read and extracted again, 20 ms of this process."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to serve. http: probes and metrics. dashboard: all. token: opens the dashboard, None where none is needed.

    carried: whether http has the dashboard, too.
    """

    http: Address | None
    dashboard: Address | None
    token: Token | None
    carried: bool


class ServedService:
    """A service that is observed over HTTP. observers: others beside."""

    def __init__(self, settings: ServiceSettings, observers: Iterable[Observer], addresses: Addresses) -> None:
        self._settings, self._addresses = settings, addresses
        limit_s = max(LIVE_LIMIT_S, TURN * settings.transaction_timeout_s)
        self._health = Health(lambda: self.service.status(), limit_s=limit_s)  # noqa: PLW0108 - there is no service yet
        self._sampler = Sampler(between_s=BETWEEN_S)
        self._feed = LiveStats("serve", scope="log", sampler=self._sampler)
        self._recent = RecentDecisions()
        self._metrics = Metrics(lambda: self.service.status(), self._health, self._feed)  # noqa: PLW0108
        self.service = Service(settings, [*observers, self._health, self._metrics, self._feed, self._recent])
        self._feed.pool = self.service.pool_state

    def stopping(self) -> None:
        """From now on the service drains: no longer ready."""
        self._health.stopping()

    def serve(self, stack: ExitStack) -> None:
        """Serve until `stack` is closed; ConfigurationError where nothing can listen."""
        where = self._addresses
        registry, settings = self._metrics.registry, self._settings
        topics = Topics(settings.prefix)
        watched = Watched(
            feed=self._feed,
            service=self.service,
            connection=settings.connection,
            topics=topics,
            recent=self._recent,
        )
        more = probes(self._health)
        facts = {}
        if where.http is not None and where.carried:
            server = stack.enter_context(
                dashboard(watched, registry, where.http, where.token, more=more, option="--http")
            )
            facts["http"] = f"http://{server.address}"
        elif where.http is not None:
            server = stack.enter_context(HttpServer(app_of(self._health, registry), where.http))
            facts["http"] = f"http://{server.address}"
        if where.dashboard is not None:
            server = stack.enter_context(dashboard(watched, registry, where.dashboard, where.token, more=more))
            facts["dashboard"] = f"http://{server.address}"
        if where.dashboard is not None or where.carried:
            self._check(stack, PageTextLookup(settings.connection, topics))
        _LOG.info("listening", extra={"facts": facts})

    def _check(self, stack: ExitStack, pages: PageTextLookup) -> None:
        """Compare some duplicates again until `stack` is closed."""

        def texts(row: DuplicateRow) -> tuple[str | None, str | None]:
            original = row.original_sequence
            return pages.text_at(row.sequence), None if original is None else pages.text_at(original)

        stack.callback(pages.close)
        stack.enter_context(Rechecker(self._sampler, texts, self._feed.told_checked))
