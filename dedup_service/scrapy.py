"""The add-on under the name that users type: `dedup_service.scrapy.NearDuplicateAddon`."""

from dedup_service.interfaces.scrapy import (
    KafkaPublisher,
    NearDuplicateAddon,
    NearDuplicateDownloaderMiddleware,
    NearDuplicateSpiderMiddleware,
    PageOfItemsMiddleware,
    page_judged,
)

__all__ = [
    "KafkaPublisher",
    "NearDuplicateAddon",
    "NearDuplicateDownloaderMiddleware",
    "NearDuplicateSpiderMiddleware",
    "PageOfItemsMiddleware",
    "page_judged",
]
