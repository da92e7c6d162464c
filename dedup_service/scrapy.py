"""The Scrapy add-on under the name that users type: `dedup_service.scrapy.NearDuplicateAddon`.

A project needs nothing but this module and its settings (docs/scrapy.md, docs/settings.md). The code is in
`dedup_service.interfaces.scrapy`.
"""

from dedup_service.interfaces.scrapy import (
    DroppedItems,
    KafkaPublisher,
    NearDuplicateAddon,
    NearDuplicateDownloaderMiddleware,
    NearDuplicateSpiderMiddleware,
    PageOfItemsMiddleware,
    page_judged,
)

__all__ = [
    "DroppedItems",
    "KafkaPublisher",
    "NearDuplicateAddon",
    "NearDuplicateDownloaderMiddleware",
    "NearDuplicateSpiderMiddleware",
    "PageOfItemsMiddleware",
    "page_judged",
]
