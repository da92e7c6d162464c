"""A crawl that publishes generated pages at full speed: the add-on and Scrapy's engine, without a network.

    python -m benchmarks.service.feed_crawl BOOTSTRAP PREFIX PAGES

Each request is a `data:` URL whose callback yields PER_RESPONSE pages as items. So the engine, its
back-pressure and the item pipeline work as in any crawl, and a page costs little more than publishing it.
"""

import random
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

from tests.crawls.texts import Writer

PER_RESPONSE = 100
SENTENCES = 5_000
SENTENCES_A_PAGE = 12
COPIES = 0.1
SEED = 2026


class FeedSpider(Spider):
    """Yields `pages` pages; a tenth of them repeat an earlier one at another URL."""

    name = "feed"
    pages: int

    async def start(self) -> AsyncIterator[Any]:
        """Yield a request for each PER_RESPONSE pages."""
        writer = Writer(random.Random(SEED))
        self._sentences = [writer.chinese(28) for _ in range(SENTENCES)]
        for first in range(0, self.pages, PER_RESPONSE):
            yield Request(f"data:,{first}", cb_kwargs={"first": first}, dont_filter=True)

    def parse(self, _response: Response, first: int = 0) -> Iterator[dict[str, Any]]:
        """Yield PER_RESPONSE pages, from number `first`."""
        for number in range(first, min(self.pages, first + PER_RESPONSE)):
            yield self._page(number)

    def _page(self, number: int) -> dict[str, Any]:
        chance = random.Random(number)
        original = chance.randrange(number) if number and chance.random() < COPIES else number
        text = "".join(random.Random(original).sample(self._sentences, SENTENCES_A_PAGE))
        return {"id": f"p{number}", "url": f"https://site{number % 997}.example/{number}", "title": "", "text": text}


def main(bootstrap: str, prefix: str, pages: str) -> None:
    """Run the crawl and print its publishing stats."""
    settings = {
        "ADDONS": {"dedup_service.scrapy.NearDuplicateAddon": 500},
        "TWINSIEVE_KAFKA_BOOTSTRAP": bootstrap,
        "TWINSIEVE_KAFKA_PREFIX": prefix,
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
    }
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(FeedSpider)
    process.crawl(crawler, pages=int(pages))
    process.start()
    stats = crawler.stats
    assert stats is not None
    names = ("published_count", "publish_retried_count", "publish_max_pages", "publish_max_bytes")
    print({name: stats.get_value(f"twinsieve/{name}") for name in names}, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
