"""The filter inside a Scrapy crawl: an add-on, middlewares, and an item pipeline that publishes.

`settings` reads `TWINSIEVE_*` once; `deciding` gives verdicts in one thread, many with one commit; `downloader`
puts extraction in worker processes (`runtime.workers.html_workers`) and decisions around a response; `spider` keeps
the items of
duplicates out of the feeds; `addon` switches it all on.
Where verdicts are left to a service: `publisher` takes pages from items and responses, `page_values` puts them into
JSON, `publishing` bounds and counts (`places`, `closing`), `delivery` waits for the broker's word.

Invariant: the event loop never extracts, segments or waits for a disk or a broker, and no page is ever lost by us.
"""

from dedup_service.interfaces.scrapy.addon import NearDuplicateAddon
from dedup_service.interfaces.scrapy.crawl_state import page_judged
from dedup_service.interfaces.scrapy.downloader import NearDuplicateDownloaderMiddleware
from dedup_service.interfaces.scrapy.publisher import KafkaPublisher, PageOfItemsMiddleware
from dedup_service.interfaces.scrapy.spider import NearDuplicateSpiderMiddleware

__all__ = [
    "KafkaPublisher",
    "NearDuplicateAddon",
    "NearDuplicateDownloaderMiddleware",
    "NearDuplicateSpiderMiddleware",
    "PageOfItemsMiddleware",
    "page_judged",
]
