"""The `site` spider: walks a site by links or sitemap, and yields an item for every kept page.

How: the add-on extracts each page and gives its verdict; the spider makes an item of it. A worker process
reads links (`twinsieve_crawler.reader`), so that the event loop parses no HTML. If the filter found no article, the
item has all text. If pages are published, every visit of a page yields an item, and one without an article
has its HTML, so that the service gives the verdict that the filter would have given here.

If a page names another URL as canonical, the spider follows it there as it follows a link, unless that URL
cannot be trusted (another host, a home page). A page that is fetched again in the same crawl, and has not
changed, yields no second item.

A page's item is yielded before its links are read, so that no link can cost it.

Invariant: no site makes a crawl with a depth endless. Every request that the spider makes for a page counts as
a link; canonical URLs in a row and sitemaps within sitemaps are limited in addition, because they are followed
without a depth too. Scrapy limits redirects and refreshes (`REDIRECT_MAX_TIMES`).
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.spiders import SitemapSpider

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page
from dedup_service.core.text.encoding import decode_html
from dedup_service.core.url import canonicalise
from twinsieve_crawler.items import JudgedItem, PageItem, PublishedItem
from twinsieve_crawler.reader import Reader
from twinsieve_crawler.reading import Reading, is_web_address

LINKS_AT_ONCE = 16
"""Requests that are yielded in a row (about 0.3 ms each) before other tasks get a turn."""

CANONICALS_IN_A_ROW = 3
"""Canonical URLs followed one after another. One is the rule; a chain of them is an error of the site."""

SITEMAP_LEVELS = 3
"""Sitemaps followed from one to the next, robots.txt not counted. The protocol knows two: an index and its sitemaps.
Source: https://www.sitemaps.org/protocol.html#index ("Sitemap index files may not list other index files")."""

FOLLOW = ("links", "sitemap", "both")


class SiteSpider(SitemapSpider):
    """Walks a site: `scrapy crawl site -a urls=https://example.org/`.

    urls: start URLs, separated by commas. domains: hosts to stay on, separated by commas (default: those of
    the start URLs). depth: maximal number of links and canonical URLs from a start URL or sitemap entry, 0 for
    no limit.
    follow: links, sitemap or both.
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
            raise ConfigurationError(f"follow must be one of {', '.join(FOLLOW)}, got {follow!r}")
        self._follow_links = follow in ("links", "both")
        self._follow_sitemap = follow in ("sitemap", "both")
        self._reader = Reader(tuple(self.allowed_domains))

    async def start(self) -> AsyncIterator[Any]:
        """Yield the first requests: the start URLs, the sitemaps of their hosts, or both."""
        if self._follow_links:
            for url in self.start_urls:
                yield Request(url, callback=self.parse_page)
        if self._follow_sitemap:
            for site in dict.fromkeys(urljoin(url, "/") for url in self.start_urls):
                yield Request(urljoin(site, "robots.txt"), callback=self._parse_sitemap)
                yield Request(urljoin(site, "sitemap.xml"), callback=self._parse_sitemap)

    async def parse_page(self, response: Response, hops: int = 0, canonicals: int = 0) -> AsyncIterator[Any]:
        """Yield the page's item and the requests for its links.

        hops: links from the start to this page. canonicals: how many of the last of them were canonical URLs.
        """
        if not isinstance(response, HtmlResponse):
            return
        page: Page | None = response.meta.get("twinsieve_page")
        further = self._depth == 0 or hops < self._depth
        follow = self._follow_links and further
        reading = None
        if page is None and not self._publishes:
            reading = await self._reader.read(response, whole_text=True)
            page = _whole_page(response, reading)
        item = self._item(response, page)
        if item is not None:
            yield item
        if follow and reading is None:  # behind the item: the state has the page already, and copies of it are dropped
            reading = await self._reader.read(response, whole_text=False)
        if page is not None and page.claimed_url is not None and further and canonicals < CANONICALS_IN_A_ROW:
            came = {"hops": hops + 1, "canonicals": canonicals + 1}
            yield Request(page.claimed_url, callback=self.parse_page, cb_kwargs=came)
        for number, link in enumerate(reading.links if follow and reading else ()):
            if number % LINKS_AT_ONCE == 0:
                await asyncio.sleep(0)
            yield Request(link, callback=self.parse_page, cb_kwargs={"hops": hops + 1})

    def sitemap_filter(self, entries: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
        """Leave out what is no Web address: making a request of it would cost the whole sitemap."""
        return (entry for entry in entries if is_web_address(entry["loc"]))

    def _parse_sitemap(self, response: Response) -> Iterable[Request]:
        """Yield the requests for what a sitemap, or robots.txt, names; sitemaps only to SITEMAP_LEVELS."""
        level = response.meta.get("sitemap_level", 0)
        for request in super()._parse_sitemap(response):
            if request.callback == self._parse_sitemap:
                if level == SITEMAP_LEVELS:
                    self.logger.warning("%s names further sitemaps: %d levels are followed", response, level)
                    return
                request.meta["sitemap_level"] = level + 1
            yield request

    async def closed(self, reason: str) -> None:  # noqa: ARG002 - Scrapy's signature
        """End the reader process. reason: Scrapy's name for why the crawl ended."""
        await asyncio.to_thread(self._reader.close)

    def _item(self, response: HtmlResponse, page: Page | None) -> PageItem | None:
        """Return the item of a page, or None if this crawl has already yielded it. page: None only if published."""
        if page is None:
            return _html_item(response)
        if self._publishes:
            return PublishedItem.from_page(page)
        item = JudgedItem.from_verdict(page, response.meta.get("twinsieve"))
        return item if self._is_new(item) else None

    @property
    def _publishes(self) -> bool:
        """Whether the add-on publishes pages and leaves the verdicts to a service."""
        settings: Any = getattr(self, "settings", {})  # set by Scrapy on the spiders that it creates
        return bool(settings.get("TWINSIEVE_KAFKA_BOOTSTRAP"))

    def _is_new(self, item: JudgedItem) -> bool:
        """Whether this crawl has not yielded this page yet; a resumed job remembers that.

        A visit under another address of the same page (a print view) is that page.
        """
        yielded: set[str] = self._state.setdefault("given", set())
        earlier = item.duplicate_of_url if item.verdict in {"unchanged", "updated"} else None
        names = {canonicalise(url) for url in (item.url, earlier) if url}
        if item.verdict == "unchanged" and not names.isdisjoint(yielded):
            return False
        if item.verdict != "duplicate":
            yielded |= names
        return True

    @property
    def _state(self) -> dict[str, Any]:
        """Scrapy's `spider.state`, stored with `JOBDIR`; without Scrapy's, our own dict."""
        if not hasattr(self, "state"):
            self.state: dict[str, Any] = {}
        return self.state


def _whole_page(response: HtmlResponse, reading: Reading) -> Page:
    """Return the page of a document in which the filter found no article, or on which it failed."""
    return Page(
        id=response.url,
        url=response.url,
        canonical_url=canonicalise(response.url),
        title=reading.title,
        text=reading.text,
    )


def _html_item(response: HtmlResponse) -> PublishedItem:
    """Return the item of a document in which no article was found; it has the HTML."""
    header = response.headers.get("Content-Type")
    html = decode_html(response.body, header.decode("latin-1") if header else None).text
    url = response.url
    return PublishedItem(id=url, url=url, canonical_url=canonicalise(url), title="", text=None, html=html)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _checked_urls(urls: str) -> list[str]:
    addresses = _split(urls)
    wrong = [url for url in addresses if not is_web_address(url)]
    if wrong or not addresses:
        raise ConfigurationError(f"a start URL must look like https://example.org/, got {', '.join(wrong) or 'none'}")
    return addresses


def _checked_depth(depth: str | int) -> int:
    if not str(depth).isdecimal():
        raise ConfigurationError(f"depth must be an integer of at least 0 (0: no limit), got {depth!r}")
    return int(depth)
