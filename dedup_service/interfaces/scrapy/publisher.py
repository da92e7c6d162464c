"""Pages of a crawl on their way to the broker: a bounded number, each until it is acknowledged.

How: a page waits for a place (`places`), is sent (`delivery`), and whoever published it waits for the broker's word.
Scrapy counts the page's response as being worked on all the while, and stops downloading when
`SCRAPER_SLOT_MAX_ACTIVE_SIZE` bytes of responses wait: with the broker away a crawl slows and stops, and then goes on.
Invariants: a page counts as published once the broker has acknowledged it, and not before. A page is given up only
where it can never be published (too large, refused), or after a crawl that is being closed has waited for
`close_timeout_s`; it is counted and named in the log then.

The item pipeline that publishes pages, and the spider middleware for projects whose items are no pages.

How: an item with `url` and `text` or `html` is a page and is published as it leaves the project's own pipelines;
any other passes. Where a callback gives items and none of them is a page, the page that they were made of is
published once: as it was extracted (`TWINSIEVE_KEEP_PAGE`), else as HTML, and the service extracts it.
Invariant: items are never changed, dropped or doubled here; each goes on once its page is acknowledged or given up.
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
from dedup_service.interfaces.scrapy.crawl_state import Counts, is_closing
from dedup_service.interfaces.scrapy.delivery import Delivery, UnpublishedError, need_client
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
from dedup_service.interfaces.scrapy.settings import BOOTSTRAP, KafkaSettings, NearDuplicateSettings

__all__ = ["PUBLISHING_FAILED", "KafkaPublisher", "PageOfItemsMiddleware", "Publishing"]

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from dedup_service.runtime.kafka.client.producers import Message


PUBLISHING_FAILED = "twinsieve_publishing_failed"
"""The reason with which a crawl is closed whose pages the brokers refuse."""

TICK_S = 0.25
STALLED_S = 10.0
"""A broker answers in milliseconds; after so long somebody should know why the crawl stands still."""

logger = logging.getLogger(__name__)


class Publishing:
    """Publishes the pages of one crawl, on its event loop."""

    def __init__(self, crawler: "Crawler", settings: KafkaSettings) -> None:
        self._crawler = crawler
        self._counts = Counts(crawler)
        self._settings = settings
        self._topic = ""
        self._places = InflightLimit(settings.buffer_pages, settings.buffer_bytes)
        self._delivery = Delivery(settings)
        self._acknowledged_at = 0.0
        self._watcher: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def connect(self) -> None:
        """Reach the brokers; what is wrong with address, TLS, password or topic is raised."""
        from dedup_service.runtime.kafka.topics import Topics

        self._topic = Topics(self._settings.prefix).pages
        self._delivery.connect(self._topic)

    def start(self) -> None:
        """Begin to watch; on the crawl's event loop."""
        self._watcher = asyncio.create_task(self._watch())

    async def publish(self, fields: Mapping[str, Any]) -> bool:
        """Publish a page (see `page_values`) and wait until it is acknowledged; False where it was given up."""
        page = page_value(fields)
        if page.left_out:
            self._counts.add("field_left_out_count", len(page.left_out))
            logger.warning("%s: JSON cannot hold its fields %s, they are left out", page.url, ", ".join(page.left_out))
        try:
            await self._deliver(self._message(page))
        except UnpublishedError as error:
            self._given_up(page, error)
            return False
        self._acknowledged_at = asyncio.get_running_loop().time()
        self._counts.add("published_count")
        return True

    async def room(self) -> None:
        """Wait while more than a few pages wait for a place: nothing more should be downloaded."""
        await self._places.few_waiting()

    async def close(self) -> None:
        """Wait for what is on its way, as long as a crawl that is being closed may; then close the client."""
        await self._places.emptied()  # items of Spider.start(), for which Scrapy before 2.19 does not wait
        if self._watcher is not None:
            self._watcher.cancel()
        await self._delivery.close()
        self._show()

    def _given_up(self, page: PageValue, error: UnpublishedError) -> None:
        self._counts.add(f"unpublished_count/{error.reason}")
        logger.error("%s is not published: %s", page.url, error)

    async def _deliver(self, message: "Message") -> None:
        with self._counts.timed("place"):
            try:
                await self._places.take(message.size_bytes)
            except NoRoomError:
                assert self._delivery.ended is not None
                raise self._delivery.ended from None
        try:
            with self._counts.timed("acknowledgement"):
                await self._delivery.send(message)
        except TwinsieveError as error:
            self._end(UnpublishedError("refused", str(error)))
            self._close_crawl(error)
            raise UnpublishedError("refused", str(error)) from error
        finally:
            self._places.give_back(message.size_bytes)

    async def _watch(self) -> None:
        """Say when the broker has not answered for long; end the wait of a crawl that is being closed."""
        now = asyncio.get_running_loop().time
        closing_since, idle_at, stalled = float("inf"), now(), False
        while now() - closing_since < self._settings.close_timeout_s:
            await asyncio.sleep(TICK_S)
            self._show()
            if is_closing(self._crawler):
                closing_since = min(closing_since, now())
            if not self._places.held:
                idle_at = now()
            silent = now() - max(self._acknowledged_at, idle_at) >= STALLED_S
            if silent != stalled:
                self._tell(stalled=silent)
            stalled = silent
        text = f"the crawl was closed, and no broker acknowledged it within {self._settings.close_timeout_s:g} s"
        self._end(UnpublishedError("broker_away", text))

    def _show(self) -> None:
        """Put into the stats what others count."""
        self._counts.set("publish_retried_count", self._delivery.retried)
        self._counts.set("publish_max_pages", self._places.maximum)
        self._counts.set("publish_max_bytes", self._places.max_bytes)

    def _tell(self, *, stalled: bool) -> None:
        if stalled:
            pages, size_bytes = self._places.held + self._places.waiting, self._places.held_bytes
            text = "No page was acknowledged for %g s: %d pages (%d bytes) wait for %s, and the crawl waits with them"
            logger.warning(text, STALLED_S, pages, size_bytes, self._settings.connection.bootstrap)
        else:
            logger.warning("%s acknowledges pages again: the crawl goes on", self._settings.connection.bootstrap)

    def _end(self, reason: UnpublishedError) -> None:
        if self._delivery.ended is None:
            self._delivery.end(reason)
            self._places.close()

    def _close_crawl(self, error: TwinsieveError) -> None:
        """Close the spider, once: a crawl whose pages go nowhere need not go on."""
        if self._closing is None and not is_closing(self._crawler):
            logger.critical("The brokers refuse pages, the crawl is closed: %s", error)
            self._closing = asyncio.create_task(self._crawler.engine.close_spider_async(reason=PUBLISHING_FAILED))

    def _message(self, page: PageValue) -> "Message":
        from dedup_service.runtime.kafka.client.producers import Message
        from dedup_service.runtime.kafka.messages.headers import page_headers, page_key

        headers = page_headers(self._topic, uuid.uuid4().hex)
        return Message(self._topic, page.value, page_key(page.canonical_url), headers)


if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class KafkaPublisher:
    """Publishes items that are pages; `publishing` is what it shares with the spider middleware."""

    def __init__(self, crawler: "Crawler", publishing: Publishing) -> None:
        self._crawler = crawler
        self.publishing = publishing

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> Self:
        """Read the settings and reach the brokers; NotConfigured where none are named.

        An error here keeps the crawl from starting. It is waited for, because nothing else can be done before.
        """
        settings = NearDuplicateSettings.from_settings(crawler.settings).kafka
        if settings is None:
            raise NotConfigured(f"{BOOTSTRAP} is not set")
        if not is_asyncio_available():
            raise ConfigurationError(f"{BOOTSTRAP} needs Scrapy's asyncio reactor: leave TWISTED_REACTOR as it is")
        need_client()
        publishing = Publishing(crawler, settings)
        publishing.connect()
        return cls(crawler, publishing)

    async def open_spider(self) -> None:
        """Begin to watch what is on its way."""
        self.publishing.start()

    async def process_item(self, item: Any) -> Any:
        """Return `item` when its page is acknowledged, or given up, or when it is none."""
        if is_page(item):
            await self.publishing.publish(fields_of_item(item))
        else:
            self._crawler.stats.inc_value("twinsieve/item_passed_count")
        return item

    async def close_spider(self) -> None:
        """Flush and close."""
        await self.publishing.close()


class PageOfItemsMiddleware:
    """Publishes the page of items that are none themselves, after the last of them."""

    def __init__(self, crawler: "Crawler") -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> Self:
        """NotConfigured where the project does not publish."""
        if NearDuplicateSettings.from_settings(crawler.settings).kafka is None:
            raise NotConfigured(f"{BOOTSTRAP} is not set")
        return cls(crawler)

    async def process_spider_output(self, response: "Response", result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass everything on, and publish the page of `response` where items came and none was a page."""
        items = pages = 0
        try:
            async for found in result:
                if not isinstance(found, Request):
                    items += 1
                    pages += is_page(found)
                yield found
        except Exception:  # the callback failed half-way: the items that it gave are stored all the same
            await self._publish(response, items, pages)
            raise
        await self._publish(response, items, pages)

    async def _publish(self, response: "Response", items: int, pages: int) -> None:
        publisher = self._crawler.get_item_pipeline(KafkaPublisher)
        if items and not pages and publisher is not None and isinstance(response, HtmlResponse):
            page = page_of(response)
            await publisher.publishing.publish(fields_of_response(response) if page is None else fields_of_page(page))
