"""The downloader middleware: a verdict on every page that a crawl downloads, before the spider sees it.

How: the bytes of a response go to a worker process (`runtime.workers.html_workers`), the prepared page to
the decision thread (`shared_filter`); the event loop only waits. The verdict is left in
`request.meta["twinsieve"]`, as a flag on the response, in the stats and in the signal `page_judged`. Then
`TWINSIEVE_ACTION` decides what happens to the response. A page that waits longer than `TWINSIEVE_DEADLINE_S` passes
without its verdict, which is given all the same (`LatePages`). A crawl that publishes its pages gets no verdicts
here. Pages are extracted if the spider wants them (`TWINSIEVE_KEEP_PAGE`), and downloads wait while too many
pages wait to be published: Scrapy's own limit counts the bytes of responses, not the items that came of
them. With `TWINSIEVE_ITEM_TEXT` no page gets a verdict: the spider middleware asks for one on each item (`judge_item`).

Invariants: whatever is not a page of the site (robots.txt, media, redirects, errors, other types) passes
unchanged. A page on which the filter fails passes too, counted and logged. A late verdict is durable and counted, and
changes nothing of the page that has passed; the crawl ends when all are given. Wrong settings or a refused state
stop the crawl before its first request, and a state that cannot be written closes it: no crawl silently
continues unfiltered.

Pages that went on to the spider without their verdict, because it was later than `TWINSIEVE_DEADLINE_S`.

How: judging a page is a task. A page whose task is not done at the deadline passes, and the task goes on. Scrapy
counts that page as downloaded, so it no longer slows the crawl down: new downloads wait here (`room`) while the pages
that are judged late are too many.

Invariants: every task ends, since each step of it has a limit of its own, and `finished` returns only when all have. At
most `max_pages` pages and `max_bytes` bytes of responses are judged late, beside those of the downloads that were in
progress when a limit was reached. All calls come from one event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import is_asyncio_available

from dedup_service.core.errors import ConfigurationError, RecordError, StateError, TwinsieveError
from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import Action, claim_refused_in, fault_in, guard_in
from dedup_service.interfaces.scrapy.meta import (
    LATE_FLAG,
    LATE_KEY,
    PAGE_KEY,
    VERDICT_KEY,
    flag_of,
    forget,
    grouped_verdict,
    is_skipped,
    page_judged,
)
from dedup_service.interfaces.scrapy.page_values import PageValue
from dedup_service.interfaces.scrapy.publisher import KafkaPublisher
from dedup_service.interfaces.scrapy.settings import BUFFER_BYTES, BUFFER_PAGES, NearDuplicateSettings, explained, named
from dedup_service.interfaces.scrapy.shared_filter import SharedFilter
from dedup_service.interfaces.scrapy.stats import Copies, CrawlStats
from dedup_service.runtime.events import BatchEvent, Observers, ProblemEvent
from dedup_service.runtime.memory_limit import MemoryLimitError
from dedup_service.runtime.readers.jsonlines import JsonLine
from dedup_service.runtime.workers.html_workers import Html, HtmlWorkers
from dedup_service.runtime.workers.preparation import UNJUDGED, BadRecord, Preparer


class LatePages:
    """Waits for tasks up to a deadline, and keeps those that were not done.

    max_pages, max_bytes: from how many late pages, and bytes of their responses, `room` waits. pending: late pages that
    are still judged. peak_pages: the most there were.
    """

    def __init__(self, deadline_s: float | None, max_pages: int, max_bytes: int) -> None:
        self._deadline_s = deadline_s
        self._max_pages, self._max_bytes = max_pages, max_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._size_bytes = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.peak_pages = 0

    @property
    def pending(self) -> int:
        """Number of late pages that are still judged."""
        return len(self._tasks)

    async def in_time(self, judging: Coroutine[Any, Any, None], size_bytes: int) -> bool:
        """Run `judging`; False if it was not done by the deadline, and then it goes on. size_bytes: of the response."""
        if self._deadline_s is None:
            await judging
            return True
        task = asyncio.create_task(judging)
        try:
            await asyncio.wait({task}, timeout=self._deadline_s)
        finally:  # also if Scrapy cancels the response: the page is in the hands of a worker, or of the state
            if not task.done():
                self._hold(task, size_bytes)
        if not task.done():
            return False
        task.result()
        return True

    async def room(self) -> None:
        """Wait while too many pages are judged late: nothing more should be downloaded then."""
        await self._has_room.wait()

    async def finished(self) -> None:
        """Wait until every late page is judged, or has failed."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _hold(self, task: asyncio.Task[None], size_bytes: int) -> None:
        self._tasks.add(task)
        self._size_bytes += size_bytes
        self.peak_pages = max(self.peak_pages, len(self._tasks))
        self._update_room()
        task.add_done_callback(lambda done: self._release(done, size_bytes))

    def _release(self, task: asyncio.Task[None], size_bytes: int) -> None:
        self._tasks.discard(task)
        self._size_bytes -= size_bytes
        self._update_room()

    def _update_room(self) -> None:
        if len(self._tasks) < self._max_pages and self._size_bytes < self._max_bytes:
            self._has_room.set()
        else:
            self._has_room.clear()


if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from dedup_service.interfaces.http.dashboard import EmbeddedDashboard

T = TypeVar("T")

STATE_FAILED = "twinsieve_state_failed"
"""Reason with which a crawl is closed if its state cannot be written any more."""

MEMORY_LIMIT = "twinsieve_memory_limit"
"""Reason with which a crawl is closed if it has reached `TWINSIEVE_MAX_MEMORY` and no bound lets pages expire."""

_CLOSED_FOR = {
    STATE_FAILED: "The near-duplicate state cannot be written",
    MEMORY_LIMIT: "The limit on memory is reached",
}

_PART_NAMES = {"queue": "wait", "preparation": "prepare"}
"""Timed steps of a page → their names in `BatchEvent.seconds`; the filter itself reports the decision."""

FAILURES = ("extraction failed", UNJUDGED)
"""How the problem of a page begins that no worker could extract, or of a text that none could judge."""

_STEP_OF_FAILURE = {"state": "decide", "page": "decide"}
"""Kind of failure → the step in which it happens; all others happen in `fingerprint`."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Judging:
    """A page or item that is judged, and what is known of it so far.

    name: as the log shows it. item: None for a page. late: it has passed.
    """

    name: str
    url: str
    request: "Request | None"
    response: "Response | None"
    item: Any = None
    prepared: PreparedPage | None = None
    verdict: dict[str, Any] | None = None
    late: bool = False


class NearDuplicateDownloaderMiddleware:
    """Downloader middleware that gives each HTML page a verdict, and drops or flags duplicates.

    Added by `NearDuplicateAddon` with order 545. `TWINSIEVE_ACTION` says what happens to the response of a
    duplicate; docs/settings.md has all settings. It opens the state in `from_crawler` and closes it with the
    spider.

    Args:
        crawler: The running crawler: its signals, stats and engine.
        settings: The project's settings, as read by `from_crawler`.

    Example:
        A spider reads the verdict:

            verdict = response.meta.get("twinsieve")  # None if the response was no page, or the filter failed
            if verdict and verdict["verdict"] == "duplicate": ...
    """

    def __init__(self, crawler: "Crawler", settings: NearDuplicateSettings) -> None:
        self._crawler = crawler
        self._settings = settings
        self._closing: asyncio.Task[None] | None = None
        self._ending = False
        self._late = LatePages(settings.deadline_s, BUFFER_PAGES, BUFFER_BYTES)
        self._dashboard = _dashboard(settings)
        observers = () if self._dashboard is None else self._dashboard.observers
        self._observers = Observers(observers)
        self._stats = CrawlStats(crawler, self._report_time)
        self._filter = SharedFilter.open(settings, observers) if settings.kafka is None else None
        self._judges_pages = settings.kafka is None and settings.item_text is None
        self._copies = Copies()
        if self._filter is not None and settings.keep is None and self._filter.dedup.keep:
            logger.info("The state keeps %s, as it was told before: TWINSIEVE_KEEP changes it", self._filter.dedup.keep)
        self._workers = self._start_workers() if self._judges_pages or settings.keep_page else None
        self._texts = Preparer(settings.space, settings.processes) if settings.item_text is not None else None
        self._worker_places = asyncio.Semaphore(2 * settings.processes)
        self._server = self._serve_dashboard()
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    @classmethod
    @explained()
    def from_crawler(cls, crawler: "Crawler") -> Self:
        """Read the settings and open the state.

        Raises:
            ConfigurationError: A setting is wrong, or the project does not use Scrapy's asyncio reactor.
            StateError: The state cannot be opened: in use, of another space, or of a newer version.
        """
        if not is_asyncio_available():
            raise ConfigurationError(
                f"the near-duplicate filter needs Scrapy's asyncio reactor, but this project sets TWISTED_REACTOR to "
                f"{crawler.settings.get('TWISTED_REACTOR')!r}: leave it at its default"
            )
        settings = NearDuplicateSettings.from_settings(crawler.settings)
        if settings.kafka is None and settings.state is None:
            logger.info("Pages are remembered until this crawl ends; set TWINSIEVE_STATE or JOBDIR to keep them")
        return cls(crawler, settings)

    async def process_request(self, request: "Request") -> None:  # noqa: ARG002 - Scrapy passes it by name
        """Delay `request` while too many pages wait to be published, or are judged late."""
        await self._late.room()
        publisher = self._crawler.get_item_pipeline(KafkaPublisher) if self._settings.kafka is not None else None
        if publisher is not None:
            await publisher.publishing.room()

    async def process_response(self, request: "Request", response: "Response") -> "Response":
        """Return `response`, with its verdict left on it and on `request`.

        Raises:
            IgnoreRequest: The page is a duplicate, and `TWINSIEVE_ACTION` is `drop`.
        """
        forget(request)
        if request.callback is NO_CALLBACK or response.status != 200 or not isinstance(response, HtmlResponse):
            return response
        if self._workers is None or (is_skipped(request) and self._filter is not None):
            return response
        self._stats.add("page_count")
        judging = _Judging(str(response), response.url, request, response)
        work = self._judge(judging, self._prepare(response), decides=self._judges_pages)
        in_time = await self._late.in_time(work, len(response.body))
        if self._settings.keep_page and judging.prepared is not None and judging.prepared.page.problem is None:
            request.meta[PAGE_KEY] = judging.prepared.page
        if not in_time:
            return self._pass_late(request, response, judging)
        return self._act(request, response, judging)

    async def judge_item(self, item: Any, page: PageValue, response: "Response | None") -> dict[str, Any] | None:
        """Return the verdict on an item, or None if the filter failed on it, or was too slow for it.

        page: what of `item` is judged. response: where it was found, if anywhere.
        """
        self._stats.add("page_count")
        request = None if response is None else response.request
        judging = _Judging(f"item {page.url}", page.url, request, response, item)
        work = self._judge(judging, self._prepare_text(page), decides=True)
        if not await self._late.in_time(work, len(page.value)):
            self._note_late(judging)
            return None
        if judging.verdict is not None:
            self._report_verdict(judging.verdict, judging)
        return judging.verdict

    async def _judge(self, judging: _Judging, preparing: Awaitable[PreparedPage], *, decides: bool) -> None:
        """Prepare and decide a page or item; a verdict for which nobody waits any more is reported here."""
        judging.prepared = await self._guarded(judging, preparing)
        if judging.prepared is None:
            return
        problem = judging.prepared.page.problem or ""
        if problem.startswith(FAILURES):
            self._failed("extraction", judging, problem)
        if not decides:
            return
        judging.verdict = await self._guarded(judging, self._decide(judging.prepared))
        if judging.late and judging.verdict is not None:
            self._stats.add(f"late_verdict_count/{judging.verdict['verdict']}")
            self._report_verdict(judging.verdict, judging)

    def _pass_late(self, request: "Request", response: "Response", judging: _Judging) -> "Response":
        """Let a page pass before its verdict."""
        self._note_late(judging)
        request.meta[LATE_KEY] = True
        if self._settings.action is not Action.PASS:
            response.flags.append(LATE_FLAG)
        return response

    def _note_late(self, judging: _Judging) -> None:
        judging.late = True
        self._stats.add("late_count")
        self._stats.set("late_max_pages", self._late.peak_pages)

    def _act(self, request: "Request", response: "Response", judging: _Judging) -> "Response":
        """Publish the verdict inside the crawl, and do what `TWINSIEVE_ACTION` says."""
        verdict = judging.verdict
        if verdict is None:
            return response
        request.meta[VERDICT_KEY] = verdict
        self._report_verdict(verdict, judging)
        if self._settings.action is not Action.PASS:
            response.flags.append(flag_of(verdict))
        if self._settings.action is Action.DROP and verdict["verdict"] == "duplicate":
            self._stats.add("dropped_count")
            raise IgnoreRequest(f"near-duplicate of {verdict['duplicate_of_url']}")
        return response

    async def spider_closed(self) -> None:
        """Wait for late verdicts, end dashboard and workers, leave the state, which a process's last crawl closes."""
        self._ending = True
        if self._late.pending:
            logger.info("%d pages that have passed still get their verdicts", self._late.pending)
        await self._late.finished()
        self._copies.log()
        await asyncio.get_running_loop().run_in_executor(None, self._end)

    def _end(self) -> None:
        self._server.close()
        self._close()

    def _serve_dashboard(self) -> ExitStack:
        """Serve the dashboard, if one is configured; closing the returned stack ends it."""
        stack = ExitStack()
        pool = self._texts or self._workers
        if self._dashboard is None or self._filter is None or pool is None:
            return stack
        try:
            serving = self._dashboard.serving(self._filter.dedup, pool.pool_state, option="TWINSIEVE_DASHBOARD")
            address = stack.enter_context(serving).address
        except BaseException:
            self._close()
            raise
        logger.warning("Dashboard: http://%s/", address)
        return stack

    def _close(self) -> None:
        for part in (self._workers, self._texts, self._filter):
            if part is not None:
                part.close()

    async def _guarded(self, judging: _Judging, work: Awaitable[T]) -> T | None:
        """Return the result of `work`, or None if it fails, which is counted and logged; page or item passes."""
        try:
            return await work
        except MemoryLimitError as error:
            self._failed("state", judging, error)
            self._close_crawl(MEMORY_LIMIT)
        except StateError as error:
            self._failed("state", judging, error)
            self._close_crawl(STATE_FAILED)
        except TwinsieveError as error:
            self._failed("page", judging, error)
        except Exception as error:  # a failure of ours never loses a page
            self._failed("bug", judging, error)
        return None

    def _start_workers(self) -> HtmlWorkers:
        settings = self._settings
        return HtmlWorkers(settings.processes, settings.space, fingerprints=self._judges_pages)

    async def _decide(self, prepared: PreparedPage) -> dict[str, Any]:
        assert self._filter is not None
        with self._stats.timed("decision"):
            return grouped_verdict(await asyncio.wrap_future(self._filter.submit(prepared)))

    async def _prepare(self, response: "Response") -> PreparedPage:
        """Extract and fingerprint in a worker; a page that no worker can read says so in its `problem`."""
        assert self._workers is not None
        header = response.headers.get("Content-Type")
        page = Html(
            html=response.body, url=response.url, declared_encoding=header.decode("latin-1") if header else None
        )
        return await self._prepared(partial(self._workers.submit, page))

    async def _prepare_text(self, page: PageValue) -> PreparedPage:
        """Fingerprint a text; what is no page raises RecordError."""
        assert self._texts is not None
        [answer] = await self._prepared(partial(self._texts.submit, [JsonLine(1, page.value)]))
        if isinstance(answer, BadRecord):
            raise RecordError(answer.problem)
        return answer

    async def _prepared(self, submit: Callable[[], Future[T]]) -> T:
        """Return what the workers that `submit` asks make of a page, once there is a place for it."""
        with self._stats.timed("queue"):
            await self._worker_places.acquire()
        try:
            with self._stats.timed("preparation"):
                return await asyncio.wrap_future(submit())
        finally:
            self._worker_places.release()

    def _report_verdict(self, verdict: dict[str, Any], judging: _Judging) -> None:
        self._stats.add(f"verdict_count/{verdict['verdict']}")
        guard = guard_in(verdict["reason"]) if verdict["verdict"] == "undecided" else None
        if guard is not None:
            self._stats.add(f"guard_count/{guard}")
        if verdict["verdict"] == "undecided" and fault_in(verdict["reason"]):
            self._stats.add("error_count/fault")  # the filter has logged and reported it
        if claim_refused_in(verdict["reason"]):
            self._stats.add("claim_refused_count")
        self._copies.add(verdict)
        about = {"request": judging.request, "response": judging.response, "item": judging.item, "late": judging.late}
        self._crawler.signals.send_catch_log(page_judged, verdict=verdict, **about)

    def _failed(self, kind: str, judging: _Judging, error: object) -> None:
        self._stats.add(f"error_count/{kind}")
        self._observers.problem(
            ProblemEvent(_STEP_OF_FAILURE.get(kind, "fingerprint"), kind, f"{judging.url}: {error}")
        )
        trace = error if kind == "bug" and isinstance(error, Exception) else None
        logger.error("%s cannot be decided and is passed on: %s", judging.name, error, exc_info=trace)

    def _close_crawl(self, reason: str) -> None:
        """Close the spider, once: a crawl that cannot remember its pages would keep every copy."""
        if self._closing is None and not self._ending and self._crawler.engine is not None:
            logger.critical("%s, so the crawl is closed: see the error above", _CLOSED_FOR[reason])
            self._closing = asyncio.create_task(self._crawler.engine.close_spider_async(reason=reason))

    def _report_time(self, step: str, seconds: float) -> None:
        """Report a timed step to the observers."""
        if step in _PART_NAMES and self._observers:
            records = int(step == "preparation")
            self._observers.batch(BatchEvent(step="fingerprint", records=records, seconds={_PART_NAMES[step]: seconds}))


def _dashboard(settings: NearDuplicateSettings) -> "EmbeddedDashboard | None":
    """Return the dashboard that the settings ask for, or None; its libraries are an extra."""
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
    with named("TWINSIEVE_DASHBOARD", settings.dashboard):
        address = Address.parse(settings.dashboard)
        token = token_for(address, settings.dashboard_token)
    return EmbeddedDashboard(address, token, "crawl")
