"""Pages of a crawl on their way to the broker: a bounded number, each until it is acknowledged.

How: a page waits for a place (`places`), is sent (`delivery`), and whoever published it waits for the broker's word.
Scrapy counts the page's response as being worked on all the while, and stops downloading when
`SCRAPER_SLOT_MAX_ACTIVE_SIZE` bytes of responses wait: with the broker away a crawl slows and stops, and then goes on.
Invariants: a page counts as published once the broker has acknowledged it, and not before. A page is given up only
where it can never be published (too large, refused), or after a crawl that is being closed has waited for
`close_timeout_s`; it is counted and named in the log then.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dedup_service.core.errors import TwinsieveError
from dedup_service.faces.scrapy.closing import is_closing
from dedup_service.faces.scrapy.counts import Counts
from dedup_service.faces.scrapy.delivery import Delivery, UnpublishedError
from dedup_service.faces.scrapy.kafka_settings import KafkaSettings
from dedup_service.faces.scrapy.page_values import PageValue, page_value
from dedup_service.faces.scrapy.places import NoPlaceError, Places

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from dedup_service.runtime.kafka.client.messages import Message

__all__ = ["PUBLISHING_FAILED", "Publishing"]

PUBLISHING_FAILED = "neardup_publishing_failed"
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
        self._places = Places(settings.buffer_pages, settings.buffer_bytes)
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
            except NoPlaceError:
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
        self._counts.set("publish_most_pages", self._places.most)
        self._counts.set("publish_most_bytes", self._places.most_bytes)

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
        from dedup_service.runtime.kafka.client.messages import Message
        from dedup_service.runtime.kafka.wire.headers import page_headers
        from dedup_service.runtime.kafka.wire.keys import page_key

        headers = page_headers(self._topic, uuid.uuid4().hex)
        return Message(self._topic, page.value, page_key(page.canonical_url), headers)
