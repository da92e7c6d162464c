"""The item pipeline that publishes pages, and the spider middleware for projects whose items are no pages.

How: an item with `url` and `text` or `html` is a page and is published as it leaves the project's own pipelines;
any other passes. Where a callback gives items and none of them is a page, the page that they were made of is
published once: as it was extracted (`NEARDUP_KEEP_PAGE`), else as HTML, and the service extracts it.
Invariant: items are never changed, dropped or doubled here; each goes on once its page is acknowledged or given up.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse
from scrapy.utils.asyncio import is_asyncio_available

from dedup_service.core.errors import ConfigurationError
from dedup_service.faces.scrapy.delivery import need_client
from dedup_service.faces.scrapy.kafka_settings import BOOTSTRAP
from dedup_service.faces.scrapy.meta import page_of
from dedup_service.faces.scrapy.page_values import fields_of_item, fields_of_page, fields_of_response, is_page
from dedup_service.faces.scrapy.publishing import Publishing
from dedup_service.faces.scrapy.settings import NearDuplicateSettings

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

__all__ = ["KafkaPublisher", "PageOfItemsMiddleware"]


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
            self._crawler.stats.inc_value("neardup/item_passed_count")
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
