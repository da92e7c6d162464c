"""One line in a project's settings switches the filter on.

    ADDONS = {"dedup_service.scrapy.NearDuplicateAddon": 500}

A second one, `TWINSIEVE_KAFKA_BOOTSTRAP`, has pages published and leaves the verdicts to `twinsieve serve`.

Order 545 puts the downloader middleware below retries (550), decompression (590) and redirects (600): it
sees a page once, whole, and only when Scrapy has settled for it. A project that names one of the two
middlewares itself keeps its own order, or None to leave it out. The item pipeline comes after all of a project's
own (by custom 0 to 1000): what is published is the item as they leave it. The spider middleware that looks after
items that are no pages sits nearer to the engine than others: it sees what they let through.
"""

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from dedup_service.interfaces.scrapy.downloader import NearDuplicateDownloaderMiddleware
from dedup_service.interfaces.scrapy.publisher import KafkaPublisher, PageOfItemsMiddleware
from dedup_service.interfaces.scrapy.settings import BOOTSTRAP
from dedup_service.interfaces.scrapy.spider import NearDuplicateSpiderMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["ORDER", "NearDuplicateAddon"]

ORDER = 545
PIPELINE_ORDER = 1000
NEAR_THE_ENGINE = 50


class NearDuplicateAddon:
    """Adds middlewares and pipeline to a project, unless `TWINSIEVE_ENABLED` is false."""

    def update_settings(self, settings: "BaseSettings") -> None:
        """Register what the settings ask for; NotConfigured where the project has switched the filter off."""
        if not settings.getbool("TWINSIEVE_ENABLED", True):
            raise NotConfigured("TWINSIEVE_ENABLED is false")
        settings.setdefault_in_component_priority_dict(
            "DOWNLOADER_MIDDLEWARES", NearDuplicateDownloaderMiddleware, ORDER
        )
        if settings.get(BOOTSTRAP):
            settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", KafkaPublisher, PIPELINE_ORDER)
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", PageOfItemsMiddleware, NEAR_THE_ENGINE)
        else:
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", NearDuplicateSpiderMiddleware, ORDER)
