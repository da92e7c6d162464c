"""The add-on: one line in a project's settings switches the filter on.

Why these orders:

- The downloader middleware has order 545, below retries (550), decompression (590) and redirects (600). It
  sees each page once, complete, and only when Scrapy has accepted the response.
- The item pipeline comes after all of a project's own (by custom 0 to 1000): it publishes items as they
  leave those.
- `PageOfItemsMiddleware` is closer to the engine than other spider middlewares: it sees the items that they
  let pass.
"""

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from dedup_service.interfaces.scrapy.downloader import NearDuplicateDownloaderMiddleware
from dedup_service.interfaces.scrapy.publisher import KafkaPublisher, PageOfItemsMiddleware
from dedup_service.interfaces.scrapy.settings import BOOTSTRAP, explained, flag
from dedup_service.interfaces.scrapy.spider import NearDuplicateSpiderMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

ORDER = 545
PIPELINE_ORDER = 1000
ENGINE_SIDE_ORDER = 50


class NearDuplicateAddon:
    """Scrapy add-on that filters near-duplicate pages, or publishes pages to Kafka for a service to filter.

    By default, each HTML page gets a verdict before the spider sees it, and items of pages called
    `duplicate` are dropped; with `TWINSIEVE_ITEM_TEXT`, items have verdicts themselves. With
    `TWINSIEVE_KAFKA_BOOTSTRAP`, the crawl publishes its pages and leaves verdicts to `twinsieve serve`. All
    settings are in docs/settings.md. A project that names one of the middlewares in its own settings keeps its
    order; `None` leaves that middleware out.

    Example:
        In the project's `settings.py`:

            ADDONS = {"dedup_service.scrapy.NearDuplicateAddon": 500}
    """

    @explained()
    def update_settings(self, settings: "BaseSettings") -> None:
        """Add middlewares and pipeline to `settings`; Scrapy calls this before the crawl is set up.

        Args:
            settings: The project's settings. Components that it names itself are left as they are.

        Raises:
            NotConfigured: `TWINSIEVE_ENABLED` is false. Scrapy then continues without the add-on.
            ConfigurationError: `TWINSIEVE_ENABLED` is neither true nor false.
        """
        if not flag(settings, "TWINSIEVE_ENABLED", default=True):
            raise NotConfigured("TWINSIEVE_ENABLED is false")
        settings.setdefault_in_component_priority_dict(
            "DOWNLOADER_MIDDLEWARES", NearDuplicateDownloaderMiddleware, ORDER
        )
        if settings.get(BOOTSTRAP):
            settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", KafkaPublisher, PIPELINE_ORDER)
            settings.setdefault_in_component_priority_dict(
                "SPIDER_MIDDLEWARES", PageOfItemsMiddleware, ENGINE_SIDE_ORDER
            )
        else:
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", NearDuplicateSpiderMiddleware, ORDER)
