"""The dashboard of a filter in this process: of `twinsieve filter`, of a crawl.

watching = EmbeddedDashboard(address, token, "filter")
with NearDuplicateFilter.open(…, observers=watching.observers) as sieve, watching.serving(sieve, pool): ...
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dedup_service.faces.http.address import Address
from dedup_service.faces.http.dashboard import Watched, dashboard
from dedup_service.faces.http.metrics import Metrics
from dedup_service.faces.http.server import HttpServer
from dedup_service.faces.http.token import Token
from dedup_service.runtime.embedded import NearDuplicateFilter
from dedup_service.runtime.facts import Observer
from dedup_service.runtime.feed import Feed
from dedup_service.runtime.feed.checking import Checker, Sampler
from dedup_service.runtime.feed.newest import Row
from dedup_service.runtime.pool import PoolState

__all__ = ["EmbeddedDashboard"]


class EmbeddedDashboard:
    """Feed and metrics from the beginning; the server while `serving`. mode: filter or crawl."""

    def __init__(self, address: Address, token: Token | None, mode: str) -> None:
        self._address, self._token = address, token
        self._sampler = Sampler()
        self.feed = Feed(mode, sampler=self._sampler)
        self._metrics = Metrics(feed=self.feed)
        self.observers: tuple[Observer, ...] = (self.feed, self._metrics)

    @contextmanager
    def serving(
        self, sieve: NearDuplicateFilter, pool: Callable[[], PoolState | None], *, option: str = "--dashboard"
    ) -> Iterator[HttpServer]:
        """Serve what `sieve` tells. pool: asked how the worker processes stand. option: named where a port is taken."""

        def texts(row: Row) -> tuple[str | None, str | None]:
            return sieve.text_at(row.sequence), None if row.of_sequence is None else sieve.text_at(row.of_sequence)

        self.feed.pool, self.feed.space, self.feed.ask_index = pool, sieve.space_id, sieve.index_fact
        watched = Watched(feed=self.feed, sieve=sieve)
        with (
            dashboard(watched, self._metrics.registry, self._address, self._token, option=option) as server,
            Checker(self._sampler, texts, self.feed.told_checked),
        ):
            yield server
