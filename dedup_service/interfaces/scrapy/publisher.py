"""Publishes the pages of a crawl to Kafka: the item pipeline, and a spider middleware beside it.

Which pages: an item with `url` and `text` or `html` is a page, and is published as it leaves the project's
own pipelines; other items pass. If a callback yields items and none of them is a page, the page of the
response is published once: as extracted (`TWINSIEVE_KEEP_PAGE`), else as HTML, which the service extracts.

How: a page waits for room (`inflight_limit`), is sent (`delivery`), and its item waits for the
acknowledgement. Meanwhile Scrapy counts the response as in progress, and it stops downloading when
`SCRAPER_SLOT_MAX_ACTIVE_SIZE` bytes of responses wait. So a crawl slows down and stops while the broker is
unavailable, and then continues.

Invariants: a page counts as published once the broker has acknowledged it. A page is given up only if it can
never be published (too large, refused), or if a closing crawl has waited for `close_timeout_s`; it is then
counted and named in the log. Items are never changed, dropped or duplicated: each continues once its page is
acknowledged or given up.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse
from scrapy.utils.asyncio import is_asyncio_available

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.interfaces.scrapy.delivery import Delivery, UnpublishedError, require_client
from dedup_service.interfaces.scrapy.inflight_limit import InflightLimit, NoRoomError
from dedup_service.interfaces.scrapy.meta import page_of
from dedup_service.interfaces.scrapy.page_values import (
    PageValue,
    fields_of_item,
    fields_of_page,
    fields_of_response,
    is_page,
    page_value,
)
from dedup_service.interfaces.scrapy.settings import (
    BOOTSTRAP,
    BUFFER_PAGES,
    KafkaSettings,
    NearDuplicateSettings,
    explained,
    named,
)
from dedup_service.interfaces.scrapy.stats import CrawlStats

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from dedup_service.runtime.kafka.client.producers import Message

PUBLISHING_FAILED = "twinsieve_publishing_failed"
"""Reason with which a crawl is closed if the brokers refuse its pages."""

TICK_S = 0.25
STALLED_S = 10.0
"""A broker answers in milliseconds; after this long, a warning says why the crawl has stopped."""

logger = logging.getLogger(__name__)


class KafkaPublisher:
    """Item pipeline that publishes items that are pages, and waits until the broker has acknowledged each.

    Switched on by `TWINSIEVE_KAFKA_BOOTSTRAP`; added by `NearDuplicateAddon` with order 1000. See
    docs/scrapy.md.

    Args:
        crawler: The running crawler; its stats count what was published.
        publishing: The publisher of the crawl, which `PageOfItemsMiddleware` shares.

    Example:
        In the project's `settings.py`:

            ADDONS = {"dedup_service.scrapy.NearDuplicateAddon": 500}
            TWINSIEVE_KAFKA_BOOTSTRAP = "kafka-1:9092,kafka-2:9092"
    """

    def __init__(self, crawler: "Crawler", publishing: "PagePublisher") -> None:
        self._crawler = crawler
        self.publishing = publishing

    @classmethod
    @explained()
    def from_crawler(cls, crawler: "Crawler") -> Self:
        """Read the settings and connect to the brokers, which blocks: nothing else can run before.

        Raises:
            NotConfigured: No brokers are named. Scrapy then continues without the pipeline.
            ConfigurationError: A setting is wrong, or the client is not installed. The crawl does not start.
            TwinsieveError: The brokers cannot be used as configured. The crawl does not start.
        """
        settings = NearDuplicateSettings.from_settings(crawler.settings).kafka
        if settings is None:
            raise NotConfigured(f"{BOOTSTRAP} is not set")
        if not is_asyncio_available():
            raise ConfigurationError(
                f"{BOOTSTRAP} needs Scrapy's asyncio reactor: leave TWISTED_REACTOR at its default"
            )
        require_client()
        publishing = PagePublisher(crawler, settings)
        publishing.connect()
        return cls(crawler, publishing)

    async def open_spider(self) -> None:
        """Start the task that watches the pages in flight."""
        self.publishing.start()

    async def process_item(self, item: Any) -> Any:
        """Return `item` when its page is acknowledged or given up, or at once if it is not a page."""
        if is_page(item):
            await self.publishing.publish(fields_of_item(item))
        else:
            self._crawler.stats.inc_value("twinsieve/item_passed_count")
        return item

    async def close_spider(self) -> None:
        """Wait for the pages in flight, then close the client."""
        await self.publishing.close()


class PageOfItemsMiddleware:
    """Spider middleware that publishes the page of a response, if its items are not pages themselves.

    Added by `NearDuplicateAddon` together with `KafkaPublisher`, which it needs.
    """

    def __init__(self, crawler: "Crawler") -> None:
        self._crawler = crawler

    @classmethod
    @explained()
    def from_crawler(cls, crawler: "Crawler") -> Self:
        """Read the settings.

        Raises:
            NotConfigured: The project does not publish. Scrapy then continues without the middleware.
        """
        if NearDuplicateSettings.from_settings(crawler.settings).kafka is None:
            raise NotConfigured(f"{BOOTSTRAP} is not set")
        return cls(crawler)

    async def process_spider_output(self, response: "Response", result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass everything on; then publish the page of `response` if there were items and none was a page."""
        items = pages = 0
        try:
            async for output in result:
                if not isinstance(output, Request):
                    items += 1
                    pages += is_page(output)
                yield output
        except Exception:  # the callback failed half-way; the items that it had yielded are stored all the same
            await self._publish(response, items, pages)
            raise
        await self._publish(response, items, pages)

    async def _publish(self, response: "Response", items: int, pages: int) -> None:
        publisher = self._crawler.get_item_pipeline(KafkaPublisher)
        if items and not pages and publisher is not None and isinstance(response, HtmlResponse):
            page = page_of(response)
            await publisher.publishing.publish(fields_of_response(response) if page is None else fields_of_page(page))


class PagePublisher:
    """Publishes the pages of one crawl, on its event loop."""

    def __init__(self, crawler: "Crawler", settings: KafkaSettings) -> None:
        self._crawler = crawler
        self._stats = CrawlStats(crawler)
        self._settings = settings
        self._topic = ""
        self._limit = InflightLimit(BUFFER_PAGES, settings.buffer_bytes)
        self._delivery = Delivery(settings)
        self._acknowledged_at = 0.0
        self._watcher: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def connect(self) -> None:
        """Connect to the brokers; raise if address, TLS, password or topic are wrong."""
        from dedup_service.runtime.kafka.topics import Topics

        with named("TWINSIEVE_KAFKA_PREFIX", self._settings.prefix):
            self._topic = Topics(self._settings.prefix).pages
        self._delivery.connect(self._topic)

    def start(self) -> None:
        """Start to watch the pages in flight; on the crawl's event loop."""
        self._watcher = asyncio.create_task(self._watch())

    async def publish(self, fields: Mapping[str, Any]) -> bool:
        """Publish a page (see `page_values`) and wait until it is acknowledged; False if it was given up."""
        page = page_value(fields)
        if page.left_out:
            self._stats.add("field_left_out_count", len(page.left_out))
            names = ", ".join(page.left_out)
            logger.warning("%s: published without the fields %s, which JSON cannot hold", page.url, names)
        try:
            await self._deliver(self._message(page))
        except UnpublishedError as error:
            self._give_up(page, error)
            return False
        self._acknowledged_at = asyncio.get_running_loop().time()
        self._stats.add("published_count")
        return True

    async def room(self) -> None:
        """Wait while more than a few pages wait for room: nothing more should be downloaded then."""
        await self._limit.short_queue()

    async def close(self) -> None:
        """Wait for the pages in flight, as long as a closing crawl may; then close the client."""
        await self._limit.emptied()  # items of Spider.start(), for which Scrapy before 2.19 does not wait
        if self._watcher is not None:
            self._watcher.cancel()
        await self._delivery.close()
        self._update_stats()

    def _give_up(self, page: PageValue, error: UnpublishedError) -> None:
        self._stats.add(f"unpublished_count/{error.reason}")
        logger.error("%s is not published: %s", page.url, error)

    async def _deliver(self, message: "Message") -> None:
        with self._stats.timed("place"):
            try:
                await self._limit.acquire(message.size_bytes)
            except NoRoomError:
                assert self._delivery.ended is not None
                raise self._delivery.ended from None
        try:
            with self._stats.timed("acknowledgement"):
                await self._delivery.send(message)
        except TwinsieveError as error:
            self._end(UnpublishedError("refused", str(error)))
            self._close_crawl(error)
            raise UnpublishedError("refused", str(error)) from error
        finally:
            self._limit.release(message.size_bytes)

    async def _watch(self) -> None:
        """Log when the broker has not answered for long; end the waiting of a crawl that is being closed."""
        now = asyncio.get_running_loop().time
        closing_since, idle_at, stalled = float("inf"), now(), False
        while now() - closing_since < self._settings.close_timeout_s:
            await asyncio.sleep(TICK_S)
            self._update_stats()
            if _is_closing(self._crawler):
                closing_since = min(closing_since, now())
            if not self._limit.held:
                idle_at = now()
            silent = now() - max(self._acknowledged_at, idle_at) >= STALLED_S
            if silent != stalled:
                self._log_stall(stalled=silent)
            stalled = silent
        text = f"the crawl was closed, and no broker acknowledged it within {self._settings.close_timeout_s:g} s"
        self._end(UnpublishedError("broker_away", text))

    def _update_stats(self) -> None:
        """Copy the numbers that limit and client count into the stats."""
        self._stats.set("publish_retried_count", self._delivery.retried)
        self._stats.set("publish_max_pages", self._limit.peak_messages)
        self._stats.set("publish_max_bytes", self._limit.peak_bytes)

    def _log_stall(self, *, stalled: bool) -> None:
        if stalled:
            pages, size_bytes = self._limit.held + self._limit.waiting, self._limit.held_bytes
            text = "No page was acknowledged for %g s: %d pages (%d bytes) wait for %s, and the crawl waits with them"
            logger.warning(text, STALLED_S, pages, size_bytes, self._settings.connection.bootstrap)
        else:
            logger.warning("%s acknowledges pages again: the crawl continues", self._settings.connection.bootstrap)

    def _end(self, reason: UnpublishedError) -> None:
        if self._delivery.ended is None:
            self._delivery.end(reason)
            self._limit.close()

    def _close_crawl(self, error: TwinsieveError) -> None:
        """Close the spider, once: a crawl whose pages are refused has no reason to continue."""
        if self._closing is None and not _is_closing(self._crawler):
            logger.critical("The brokers refuse pages, so the crawl is closed: %s", error)
            self._closing = asyncio.create_task(self._crawler.engine.close_spider_async(reason=PUBLISHING_FAILED))

    def _message(self, page: PageValue) -> "Message":
        from dedup_service.runtime.kafka.client.producers import Message
        from dedup_service.runtime.kafka.messages.headers import page_headers, page_key

        headers = page_headers(self._topic, uuid.uuid4().hex)
        return Message(self._topic, page.value, page_key(page.canonical_url), headers)


def _is_closing(crawler: "Crawler") -> bool:
    """Whether the crawl is being closed: by a signal, an extension, `CloseSpider`, or for lack of requests.

    Scrapy sends a signal only when closing is done, and it waits for the items that we hold until then.
    """
    if not crawler.crawling:
        return True
    slot = getattr(crawler.engine, "_slot", None)  # private; without it, `crawling` still shows a stopped crawl
    return getattr(slot, "closing", None) is not None
