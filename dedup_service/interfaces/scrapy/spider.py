"""The spider middleware: drops the items of duplicates, and lets their links pass.

A near-duplicate is not worth storing twice, but the pages it links to may be new. So only items are dropped,
only those of pages called `duplicate`, and requests always pass.
"""

from typing import TYPE_CHECKING, Any, Self

from itemadapter import ItemAdapter
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from dedup_service.interfaces.scrapy.meta import VERDICT_KEY, verdict_of
from dedup_service.interfaces.scrapy.settings import ItemPolicy, NearDuplicateSettings, explained

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class NearDuplicateSpiderMiddleware(BaseSpiderMiddleware):
    """Drops or annotates the items of pages that have a verdict.

    `TWINSIEVE_ITEMS = "drop"` drops the items of duplicates. `"annotate"` keeps every item and puts the
    verdict, as a dict, into its field `twinsieve` if it has, or can have, such a field. Added by
    `NearDuplicateAddon`.

    Args:
        crawler: The running crawler; its stats count what was dropped.
        policy: What happens to the items of a duplicate.
    """

    def __init__(self, crawler: "Crawler", policy: ItemPolicy) -> None:
        super().__init__(crawler)
        self._policy = policy

    @classmethod
    @explained()
    def from_crawler(cls, crawler: "Crawler") -> Self:
        """Read `TWINSIEVE_ITEMS`.

        Raises:
            ConfigurationError: A `TWINSIEVE_*` setting is wrong.
        """
        return cls(crawler, NearDuplicateSettings.from_settings(crawler.settings).items)

    def get_processed_item(self, item: Any, response: "Response | None") -> Any:
        """Return the item to pass on, or None to drop it."""
        verdict = verdict_of(response)
        if verdict is None:
            return item
        if self._policy is ItemPolicy.ANNOTATE:
            return self._annotated(item, verdict)
        if verdict["verdict"] != "duplicate":
            return item
        self.crawler.stats.inc_value("twinsieve/item_dropped_count")
        return None

    def _annotated(self, item: Any, verdict: dict[str, Any]) -> Any:
        try:
            ItemAdapter(item)[VERDICT_KEY] = dict(verdict)
        except (AttributeError, KeyError, TypeError, ValueError):  # no such field, frozen, or not an item
            self.crawler.stats.inc_value("twinsieve/item_unannotated_count")
        return item
