"""The filter inside a Scrapy crawl: an add-on, its middlewares, and an item pipeline that publishes pages.

- `addon` switches everything on; `settings` reads and checks `TWINSIEVE_*`.
- Verdicts in the crawl: `downloader` extracts pages in worker processes and acts on verdicts,
  `shared_filter` decides many pages with one commit, and opens one filter for all crawls of a
  process with the same state, `spider` drops items by their verdicts.
- Publishing to Kafka, where a service decides: `publisher` is the pipeline, `page_values` makes message
  values, `inflight_limit` bounds memory, `delivery` waits for the broker's acknowledgement.
- Shared: `meta` (what is left on a request, and the signal `page_judged`), `stats` (counters of the crawl).

Invariants: the event loop never extracts, segments, or waits for a disk or a broker. A failure of the filter
never loses a page.
"""

from dedup_service.interfaces.scrapy.addon import NearDuplicateAddon
from dedup_service.interfaces.scrapy.downloader import NearDuplicateDownloaderMiddleware
from dedup_service.interfaces.scrapy.meta import page_judged
from dedup_service.interfaces.scrapy.publisher import KafkaPublisher, PageOfItemsMiddleware
from dedup_service.interfaces.scrapy.spider import DroppedItems, NearDuplicateSpiderMiddleware

__all__ = [
    "DroppedItems",
    "KafkaPublisher",
    "NearDuplicateAddon",
    "NearDuplicateDownloaderMiddleware",
    "NearDuplicateSpiderMiddleware",
    "PageOfItemsMiddleware",
    "page_judged",
]
