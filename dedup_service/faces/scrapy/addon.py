"""One line in a project's settings switches the filter on.

    ADDONS = {"dedup_service.scrapy.NearDuplicateAddon": 500}

Order 545 puts the downloader middleware below retries (550), decompression (590) and redirects (600): it
sees a page once, whole, and only when Scrapy has settled for it. A project that names one of the two
middlewares itself keeps its own order, or None to leave it out.
"""

from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from dedup_service.faces.scrapy.downloader import NearDuplicateDownloaderMiddleware
from dedup_service.faces.scrapy.spider import NearDuplicateSpiderMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["ORDER", "NearDuplicateAddon"]

ORDER = 545


class NearDuplicateAddon:
    """Adds the two middlewares to a project, unless `NEARDUP_ENABLED` is false."""

    def update_settings(self, settings: "BaseSettings") -> None:
        """Register the middlewares; NotConfigured where the project has switched the filter off."""
        if not settings.getbool("NEARDUP_ENABLED", True):
            raise NotConfigured("NEARDUP_ENABLED is false")
        settings.setdefault_in_component_priority_dict(
            "DOWNLOADER_MIDDLEWARES", NearDuplicateDownloaderMiddleware, ORDER
        )
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", NearDuplicateSpiderMiddleware, ORDER)
