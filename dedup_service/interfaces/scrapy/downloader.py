"""A verdict on every page that a crawl downloads, before the spider sees it.

How: the response's bytes go to a worker process (`runtime.workers.html_workers`), the prepared page to the decision
thread
(`deciding`); the event loop only waits. The verdict is left in `request.meta["twinsieve"]`, on the response as a
flag, in the stats and in the signal `page_judged`; then `TWINSIEVE_ACTION` says what becomes of the response.
A crawl that publishes its pages gets no verdicts here: pages are extracted for the spider where it wants them
(`TWINSIEVE_KEEP_PAGE`), and nothing is downloaded while too many pages wait to be published. Scrapy's own bound counts
the bytes of responses, not the items that came of them.

Invariants: what is not a page of the site (robots.txt, media, redirects, errors, other types) passes untouched.
A page that we fail on passes too, counted and logged. Wrong settings or a refused state stop the crawl before its
first request, a state that cannot be written any more closes it: no crawl goes on unfiltered in silence.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self, TypeVar

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import is_asyncio_available

from dedup_service.core.errors import ConfigurationError, StateError, TwinsieveError
from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import Action, guard_in
from dedup_service.interfaces.scrapy.crawl_state import Counts, page_judged
from dedup_service.interfaces.scrapy.decision_thread import DecisionThread
from dedup_service.interfaces.scrapy.meta import flag_of, forget, remember, remember_page
from dedup_service.interfaces.scrapy.publisher import KafkaPublisher
from dedup_service.interfaces.scrapy.settings import NearDuplicateSettings
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import BatchEvent, Observer, Observers, ProblemEvent
from dedup_service.runtime.verdict_json import verdict_dict
from dedup_service.runtime.workers.html_workers import Html, HtmlWorkers

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from dedup_service.interfaces.http.dashboard import EmbeddedDashboard

__all__ = ["STATE_FAILED", "NearDuplicateDownloaderMiddleware"]

T = TypeVar("T")

STATE_FAILED = "twinsieve_state_failed"
"""The reason with which a crawl is closed whose state cannot be written any more."""

_PARTS = {"queue": "wait", "preparation": "prepare"}
"""Timed steps of a page → what observers know them as; the decision tells of itself."""

_STEPS = {"state": "decide", "page": "decide"}
"""The step in which a failure of a kind happens; others happen before."""

logger = logging.getLogger(__name__)


class NearDuplicateDownloaderMiddleware:
    """Judges pages and acts on the verdicts; made by `from_crawler`, closed with its spider."""

    def __init__(self, crawler: "Crawler", settings: NearDuplicateSettings) -> None:
        self._crawler = crawler
        self._settings = settings
        self._closing: asyncio.Task[None] | None = None
        self._watching = _watching(settings)
        observers = () if self._watching is None else self._watching.observers
        self._observers = Observers(observers)
        self._counts = Counts(crawler, self._timed)
        self._filter = _filter(settings, observers) if settings.kafka is None else None
        self._decisions = None if self._filter is None else DecisionThread(self._filter.decide_many)
        self._workers = _workers(settings) if settings.kafka is None or settings.keep_page else None
        self._places = asyncio.Semaphore(settings.concurrency)
        self._dashboard = self._serving()
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> Self:
        """Read the settings and open the state; an error here keeps the crawl from starting."""
        if not is_asyncio_available():
            raise ConfigurationError(
                f"the near-duplicate filter needs Scrapy's asyncio reactor, this project sets TWISTED_REACTOR to "
                f"{crawler.settings.get('TWISTED_REACTOR')!r}: leave it at its default"
            )
        settings = NearDuplicateSettings.from_settings(crawler.settings)
        if settings.kafka is None and settings.state is None:
            logger.info("TWINSIEVE_STATE and JOBDIR are not set: pages are remembered until this crawl ends")
        return cls(crawler, settings)

    async def process_request(self, request: "Request") -> None:  # noqa: ARG002 - given by that name
        """Let `request` go on, once there is room for what will come of it."""
        publisher = self._crawler.get_item_pipeline(KafkaPublisher) if self._settings.kafka is not None else None
        if publisher is not None:
            await publisher.publishing.room()

    async def process_response(self, request: "Request", response: "Response") -> "Response":
        """Pass `response` on with its verdict; IgnoreRequest for a duplicate where the action is `drop`."""
        forget(request)
        if request.callback is NO_CALLBACK or response.status != 200 or not isinstance(response, HtmlResponse):
            return response
        if self._workers is None:
            return response
        self._counts.add("page_count")
        prepared = await self._survived(response, self._prepared(response))
        if prepared is None:
            return response
        if self._keeps(prepared):
            remember_page(request, prepared.page)
        if self._decisions is None:
            return response
        verdict = await self._survived(response, self._verdict(prepared))
        return response if verdict is None else self._acted(request, response, verdict)

    def _acted(self, request: "Request", response: "Response", verdict: dict[str, Any]) -> "Response":
        """Leave the verdict where it can be found, and do what `TWINSIEVE_ACTION` says."""
        remember(request, verdict)
        self._tell(verdict, request, response)
        if self._settings.action is not Action.PASS:
            response.flags.append(flag_of(verdict))
        if self._settings.action is Action.DROP and verdict["verdict"] == "duplicate":
            self._counts.add("dropped_count")
            raise IgnoreRequest(f"near-duplicate of {verdict['duplicate_of_url']}")
        return response

    async def spider_closed(self) -> None:
        """End the dashboard, the workers and the decision thread, close the state."""
        await asyncio.get_running_loop().run_in_executor(None, self._end)

    def _end(self) -> None:
        self._dashboard.close()
        self._close()

    def _serving(self) -> ExitStack:
        """Serve the dashboard, where there is one; what is returned ends it."""
        stack = ExitStack()
        if self._watching is None or self._filter is None or self._workers is None:
            return stack
        try:
            serving = self._watching.serving(self._filter, self._workers.pool_state, option="TWINSIEVE_DASHBOARD")
            address = stack.enter_context(serving).address
        except BaseException:
            self._close()
            raise
        logger.warning("Dashboard: http://%s/", address)
        return stack

    def _close(self) -> None:
        for part in (self._workers, self._decisions, self._filter):
            if part is not None:
                part.close()

    def _keeps(self, prepared: PreparedPage) -> bool:
        return self._settings.keep_page and prepared.page.problem is None

    async def _survived(self, response: "Response", work: Awaitable[T]) -> T | None:
        """Return what `work` gives, or None where it fails: counted, logged, and the page passes as it is."""
        try:
            return await work
        except StateError as error:
            self._failed("state", response, error)
            self._close_crawl()
        except TwinsieveError as error:
            self._failed("page", response, error)
        except Exception as error:  # a page is never lost because we failed
            self._failed("bug", response, error)
        return None

    async def _verdict(self, prepared: PreparedPage) -> dict[str, Any]:
        assert self._decisions is not None
        with self._counts.timed("decision"):
            return verdict_dict(await asyncio.wrap_future(self._decisions.submit(prepared)))

    async def _prepared(self, response: "Response") -> PreparedPage:
        """A page that no worker can read says so in its `problem`."""
        assert self._workers is not None
        header = response.headers.get("Content-Type")
        page = Html(
            html=response.body, url=response.url, declared_encoding=header.decode("latin-1") if header else None
        )
        with self._counts.timed("queue"):
            await self._places.acquire()
        try:
            with self._counts.timed("preparation"):
                prepared = await asyncio.wrap_future(self._workers.submit(page))
        finally:
            self._places.release()
        if (prepared.page.problem or "").startswith("extraction failed"):
            self._failed("extraction", response, prepared.page.problem)
        return prepared

    def _tell(self, verdict: dict[str, Any], request: "Request", response: "Response") -> None:
        self._counts.add(f"verdict_count/{verdict['verdict']}")
        guard = guard_in(verdict["reason"]) if verdict["verdict"] == "undecided" else None
        if guard is not None:
            self._counts.add(f"guard_count/{guard}")
        self._crawler.signals.send_catch_log(page_judged, verdict=verdict, request=request, response=response)

    def _failed(self, kind: str, response: "Response", error: object) -> None:
        self._counts.add(f"error_count/{kind}")
        self._observers.problem(ProblemEvent(_STEPS.get(kind, "fingerprint"), kind, f"{response.url}: {error}"))
        trace = error if kind == "bug" and isinstance(error, Exception) else None
        logger.error("%s cannot be judged and is kept: %s", response, error, exc_info=trace)

    def _close_crawl(self) -> None:
        """Close the spider, once: a crawl whose pages cannot be remembered would keep every copy."""
        if self._closing is None and self._crawler.engine is not None:
            logger.critical("The near-duplicate state cannot be written: the crawl is closed")
            self._closing = asyncio.create_task(self._crawler.engine.close_spider_async(reason=STATE_FAILED))

    def _timed(self, step: str, seconds: float) -> None:
        if step in _PARTS and self._observers:
            fact = BatchEvent(step="fingerprint", records=int(step == "preparation"), seconds={_PARTS[step]: seconds})
            self._observers.batch(fact)


def _watching(settings: NearDuplicateSettings) -> "EmbeddedDashboard | None":
    """Return the dashboard that the settings ask for; its libraries are an extra."""
    if settings.dashboard is None:
        return None
    try:
        from dedup_service.interfaces.http.access_guard import token_for
        from dedup_service.interfaces.http.dashboard import EmbeddedDashboard
        from dedup_service.interfaces.http.server import Address
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"TWINSIEVE_DASHBOARD needs {error.name}, which is not installed: pip install 'twinsieve[dashboard]'"
        ) from error
    address = Address.parse(settings.dashboard)
    token = token_for(address, settings.dashboard_token, name="TWINSIEVE_DASHBOARD_TOKEN")
    return EmbeddedDashboard(address, token, "crawl")


def _filter(settings: NearDuplicateSettings, observers: Iterable[Observer]) -> NearDuplicateFilter:
    return NearDuplicateFilter.open(
        settings.state, space=settings.space, rule=settings.rule, shards=settings.shards, observers=observers
    )


def _workers(settings: NearDuplicateSettings) -> HtmlWorkers:
    return HtmlWorkers(
        settings.processes, settings.space, timeout_s=settings.timeout_s, fingerprints=settings.kafka is None
    )
