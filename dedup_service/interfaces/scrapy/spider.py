"""The spider middleware: lets the items of pages with some verdicts go on, and drops the others.

A near-duplicate is not worth storing twice, but the pages it links to may be new. So only items are dropped, by
default only those of pages called `duplicate`, and requests always pass. With `TWINSIEVE_ITEM_TEXT`, each item has a
verdict itself: items of a response are judged one after another, in the order in which the spider yields them.

Invariants: an item without a verdict goes on: its page is none or is skipped, the filter failed or was late, or the
item has no text to judge, which is counted. Each dropped item has a line of Scrapy's log, and is in the feeds whose
`item_filter` is `DroppedItems`.
"""

import logging
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.exceptions import DropItem
from scrapy.extensions.feedexport import FeedExporter, ItemFilter
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.utils.log import logformatter_adapter

from dedup_service.core.errors import RecordError
from dedup_service.core.verdict import VerdictKind
from dedup_service.interfaces.scrapy.downloader import NearDuplicateDownloaderMiddleware
from dedup_service.interfaces.scrapy.meta import VERDICT_KEY, is_skipped, verdict_of
from dedup_service.interfaces.scrapy.page_values import page_of_item
from dedup_service.interfaces.scrapy.settings import ItemFields, NearDuplicateSettings, explained
from dedup_service.interfaces.scrapy.stats import CrawlStats, verdict_text

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)


class DroppedItems(ItemFilter):
    """`item_filter` of a feed that has the items which the add-on drops, and no others.

    Example:
        In the project's `settings.py`:

            FEEDS = {
                "items.jsonl": {"format": "jsonlines"},
                "dropped.jsonl": {"format": "jsonlines", "item_filter": "dedup_service.scrapy.DroppedItems"},
            }
    """

    dropped: Any = None
    """The item that is dropped at this moment, else None."""

    def accepts(self, item: Any) -> bool:
        """Whether `item` is being dropped, and is of the feed's `item_classes`."""
        return item is self.dropped and super().accepts(item)


class NearDuplicateSpiderMiddleware(BaseSpiderMiddleware):
    """Drops the items whose verdict is not in `TWINSIEVE_ITEMS_OF`; added by `NearDuplicateAddon`.

    An item with a field `twinsieve` gets its verdict there, as a dict. A dict that is dropped gets that key in any
    case, since only feeds of dropped items see it.

    Args:
        crawler: The running crawler; its stats count what was dropped.
        items_of: The verdicts whose items go on.
    """

    def __init__(self, crawler: "Crawler", items_of: frozenset[VerdictKind]) -> None:
        super().__init__(crawler)
        self._gate = _Gate(crawler, items_of)

    @classmethod
    @explained()
    def from_crawler(cls, crawler: "Crawler") -> Any:
        """Read `TWINSIEVE_ITEMS_OF` and `TWINSIEVE_ITEM_TEXT`; with the latter, the middleware waits for verdicts.

        Raises:
            ConfigurationError: A `TWINSIEVE_*` setting is wrong.
        """
        settings = NearDuplicateSettings.from_settings(crawler.settings)
        if settings.item_text is not None:
            return _JudgedItems(crawler, settings.items_of, settings.item_text)
        return cls(crawler, settings.items_of)

    def get_processed_item(self, item: Any, response: "Response | None") -> Any:
        """Return the item to pass on, or None to drop it."""
        return item if self._gate.passes(item, verdict_of(response), response) else None


class _Gate:
    """Lets items go on by their verdicts."""

    def __init__(self, crawler: "Crawler", items_of: frozenset[VerdictKind]) -> None:
        self._crawler = crawler
        self._items_of = items_of
        self._stats = CrawlStats(crawler)

    def passes(self, item: Any, verdict: dict[str, Any] | None, response: "Response | None") -> bool:
        """Whether `item` goes on. One that does not is logged, counted and exported."""
        if verdict is None:
            return True
        goes_on = verdict["verdict"] in self._items_of
        adapter = ItemAdapter(item) if ItemAdapter.is_item(item) else None
        if adapter is not None and (VERDICT_KEY in adapter.field_names() or (isinstance(item, dict) and not goes_on)):
            try:
                adapter[VERDICT_KEY] = dict(verdict)
            except (AttributeError, TypeError, ValueError):  # frozen, or of another type
                self._stats.add("item_unannotated_count")
        if not goes_on:
            self._drop(item, verdict, response)
        return goes_on

    def _drop(self, item: Any, verdict: dict[str, Any], response: "Response | None") -> None:
        self._stats.add("item_dropped_count")
        spider = self._crawler.spider
        assert spider is not None
        dropping = DropItem(verdict_text(verdict), log_level="DEBUG")
        line = self._crawler.logformatter.dropped(item, dropping, response, spider)
        if line is not None:
            logger.log(*logformatter_adapter(line), extra={"spider": spider, "item": item})
        exporter = self._crawler.get_extension(FeedExporter)
        if exporter is not None:
            _export(exporter, item, spider)


class _JudgedItems:
    """The middleware if items are judged.

    It has to wait, so what comes of it is asynchronous, whatever a callback is. fields: of an item, what is judged.
    """

    def __init__(self, crawler: "Crawler", items_of: frozenset[VerdictKind], fields: ItemFields) -> None:
        self._crawler = crawler
        self._gate = _Gate(crawler, items_of)
        self._stats = CrawlStats(crawler)
        self._fields = fields
        self._named: set[str] = set()

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Judge the items that the spider yields before any response."""
        async for output in self._outputs(start, None):
            yield output

    async def process_spider_output(self, response: "Response", result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Judge the items of a response; requests pass."""
        async for output in self._outputs(result, response):
            yield output

    async def _outputs(self, outputs: AsyncIterator[Any], response: "Response | None") -> AsyncIterator[Any]:
        addresses = iter(() if response is None else (response.url,))
        async for output in outputs:
            if isinstance(output, Request) or self._gate.passes(
                output, await self._verdict(output, response, addresses), response
            ):
                yield output

    async def _verdict(self, item: Any, response: "Response | None", addresses: Iterator[str]) -> dict[str, Any] | None:
        """Return the verdict on an item, or None if it has none. addresses: for items that have no address."""
        if response is not None and is_skipped(response.request):
            return None
        judge = self._crawler.get_downloader_middleware(NearDuplicateDownloaderMiddleware)
        if judge is None:
            self._unjudged(item, response, "the project leaves out NearDuplicateDownloaderMiddleware, which judges")
            return None
        try:
            page = page_of_item(item, self._fields, response, addresses)
        except RecordError as error:
            self._unjudged(item, response, str(error))
            return None
        return await judge.judge_item(item, page, response)

    def _unjudged(self, item: Any, response: "Response | None", problem: str) -> None:
        """Count an item that cannot be judged; the first one with a problem is named in the log."""
        self._stats.add("item_unjudged_count")
        if problem not in self._named:
            self._named.add(problem)
            text = "An item (%s) of %s is passed on without a verdict, as are others like it: %s"
            logger.warning(text, type(item).__name__, response, problem)


def _export(exporter: FeedExporter, item: Any, spider: "Spider") -> None:
    """Write `item` to the feeds of dropped items."""
    feeds = {slot: slot.filter for slot in exporter.slots if isinstance(slot.filter, DroppedItems)}
    others = [slot for slot in exporter.slots if slot not in feeds]
    exporter.slots = list(feeds)
    try:
        for accepting in feeds.values():
            accepting.dropped = item
        exporter.item_scraped(item, spider)
    finally:
        for accepting in feeds.values():
            accepting.dropped = None
        exporter.slots = others + exporter.slots  # a feed in batches has another slot now
