"""The add-on under the name that users type: `dedup_service.scrapy.NearDuplicateAddon`."""

from dedup_service.faces.scrapy import (
    NearDuplicateAddon,
    NearDuplicateDownloaderMiddleware,
    NearDuplicateSpiderMiddleware,
    page_judged,
)

__all__ = [
    "NearDuplicateAddon",
    "NearDuplicateDownloaderMiddleware",
    "NearDuplicateSpiderMiddleware",
    "page_judged",
]
