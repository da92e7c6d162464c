"""The filter inside a Scrapy crawl: an add-on, a downloader middleware and a spider middleware.

`settings` reads `NEARDUP_*` once; `deciding` gives verdicts in one thread, many with one commit; `downloader`
puts extraction in worker processes (`runtime.pool`) and decisions around a response; `spider` keeps the items of
duplicates out of the feeds; `addon` switches it all on.

Invariant: the event loop never extracts, segments or waits for a disk, and no page is ever lost by us.
"""

from dedup_service.faces.scrapy.addon import NearDuplicateAddon
from dedup_service.faces.scrapy.downloader import NearDuplicateDownloaderMiddleware
from dedup_service.faces.scrapy.signals import page_judged
from dedup_service.faces.scrapy.spider import NearDuplicateSpiderMiddleware

__all__ = [
    "NearDuplicateAddon",
    "NearDuplicateDownloaderMiddleware",
    "NearDuplicateSpiderMiddleware",
    "page_judged",
]
