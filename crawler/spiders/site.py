"""Walk a site from its start URLs, by links or by its sitemap, and give an item for every page kept.

How: pages come judged and extracted by the add-on; the spider makes items of them and has their links read in a
process of its own, so that the event loop parses no HTML. Where the filter found no article, the item holds all text.
Where pages are published, every visit of a page gives an item, and one without an article holds its HTML: the verdict
is the service's, and it is to be the one that the filter would have given here.
A page that names another address as its canonical one is followed there, at no cost in depth, unless
that address is not to be believed (another host, a home page). A page that was fetched again in the same
crawl and has not changed gives no second item.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.spiders import SitemapSpider

from crawler.items import JudgedItem, PageItem, PublishedItem
from crawler.reader import Reader
from crawler.reading import Reading
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page
from dedup_service.core.text.encoding import decode_html
from dedup_service.core.url import canonicalise

__all__ = ["SiteSpider"]

LINKS_AT_ONCE = 16
"""Requests that Scrapy schedules in one go (about 0.3 ms each) before other work has its turn."""

FOLLOW = ("links", "sitemap", "both")


class SiteSpider(SitemapSpider):
    """`scrapy crawl site -a urls=https://example.org/`.

    urls: start URLs, with commas between. domains: hosts to stay on, with commas (default: those of the start URLs).
    depth: links away from a start URL or sitemap entry, 0 for no limit. follow: links, sitemap or both.
    """

    name = "site"
    sitemap_rules = (("", "parse_page"),)

    def __init__(
        self, urls: str = "", domains: str = "", depth: str | int = 0, follow: str = "links", **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self.start_urls = _checked_urls(urls)
        self.allowed_domains = _split(domains) or sorted({urlsplit(url).hostname or "" for url in self.start_urls})
        self._depth = _checked_depth(depth)
        if follow not in FOLLOW:
            raise ConfigurationError(f"follow is one of {', '.join(FOLLOW)}, got {follow!r}")
        self._follow_links = follow in ("links", "both")
        self._follow_sitemap = follow in ("sitemap", "both")
        self._reader = Reader(tuple(self.allowed_domains))

    async def start(self) -> AsyncIterator[Any]:
        """The first requests: the start URLs themselves, the robots.txt of their hosts, or both."""
        if self._follow_links:
            for url in self.start_urls:
                yield Request(url, callback=self.parse_page)
        if self._follow_sitemap:
            for site in dict.fromkeys(urljoin(url, "/") for url in self.start_urls):
                yield Request(urljoin(site, "robots.txt"), callback=self._parse_sitemap)
                yield Request(urljoin(site, "sitemap.xml"), callback=self._parse_sitemap)

    async def parse_page(self, response: Response, hops: int = 0) -> AsyncIterator[Any]:
        """Give the page's item and the requests that it leads to; `hops` links away from the start."""
        if not isinstance(response, HtmlResponse):
            return
        page: Page | None = response.meta.get("twinsieve_page")
        onward = self._follow_links and (self._depth == 0 or hops < self._depth)
        whole = page is None and not self._publishes
        reading = await self._reader.read(response, whole_text=whole) if onward or whole else Reading()
        item = self._item(response, page, reading)
        if item is not None:
            yield item
        page = page or _whole_page(response, reading)
        if page.canonical_url != canonicalise(response.url):
            yield Request(page.canonical_url, callback=self.parse_page, cb_kwargs={"hops": hops})
        for number, link in enumerate(reading.links if onward else ()):
            if number % LINKS_AT_ONCE == 0:
                await asyncio.sleep(0)
            yield Request(link, callback=self.parse_page, cb_kwargs={"hops": hops + 1})

    def closed(self, reason: str) -> None:  # noqa: ARG002 - Scrapy's signature
        """End the reading process; `reason` is Scrapy's word for why the crawl ended."""
        self._reader.close()

    def _item(self, response: HtmlResponse, page: Page | None, reading: Reading) -> PageItem | None:
        """The item of a page, or None where this crawl gave it already."""
        if self._publishes:
            return PublishedItem.of(page) if page is not None else _unread_item(response)
        item = JudgedItem.decided(page or _whole_page(response, reading), response.meta.get("twinsieve"))
        return item if self._is_news(item) else None

    @property
    def _publishes(self) -> bool:
        """Whether the add-on publishes pages and leaves the verdicts to a service."""
        settings: Any = getattr(self, "settings", {})  # Scrapy gives them to the spiders that it makes
        return bool(settings.get("TWINSIEVE_KAFKA_BOOTSTRAP"))

    def _is_news(self, item: JudgedItem) -> bool:
        """Whether this crawl has not given this very page yet. The memory is part of a resumed job's state."""
        given: set[str] = self._state.setdefault("given", set())
        if item.verdict == "unchanged" and item.canonical_url in given:
            return False
        if item.verdict != "duplicate":
            given.add(item.canonical_url)
        return True

    @property
    def _state(self) -> dict[str, Any]:
        """Scrapy's `spider.state`, stored with `JOBDIR`; without one, a dict of our own."""
        if not hasattr(self, "state"):
            self.state: dict[str, Any] = {}
        return self.state


def _whole_page(response: HtmlResponse, reading: Reading) -> Page:
    """The page of a document in which the filter found no article, or about which it could not be asked."""
    return Page(
        id=response.url,
        url=response.url,
        canonical_url=canonicalise(response.url),
        title=reading.title,
        text=reading.text,
    )


def _unread_item(response: HtmlResponse) -> PublishedItem:
    """The item of a document in which no article was found: the document itself."""
    header = response.headers.get("Content-Type")
    html = decode_html(response.body, header.decode("latin-1") if header else None).text
    url = response.url
    return PublishedItem(id=url, url=url, canonical_url=canonicalise(url), title="", text=None, html=html)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _checked_urls(urls: str) -> list[str]:
    addresses = _split(urls)
    wrong = [url for url in addresses if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname]
    if wrong or not addresses:
        raise ConfigurationError(f"a start URL looks like https://example.org/, got {', '.join(wrong) or 'none'}")
    return addresses


def _checked_depth(depth: str | int) -> int:
    if not str(depth).isdecimal():
        raise ConfigurationError(f"depth is a whole number from 0 (no limit), got {depth!r}")
    return int(depth)
