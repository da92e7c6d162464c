"""Whether a crawl is being closed: Scrapy sends no signal when that begins, only when it is done.

A component that holds items back must know it in between, since closing waits for those items.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

__all__ = ["is_closing"]


def is_closing(crawler: "Crawler") -> bool:
    """Whether somebody has asked for the end: a signal, an extension, `CloseSpider`, or all requests being done."""
    if not crawler.crawling:
        return True
    slot = getattr(crawler.engine, "_slot", None)  # not public; a crawl that is stopped is known without it
    return getattr(slot, "closing", None) is not None
