"""The `site` spider on single responses."""

import asyncio
import multiprocessing
import re
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response, XmlResponse
from scrapy.settings import Settings

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page
from dedup_service.core.url import page_addresses
from twinsieve_crawler.items import PageItem, PublishedItem
from twinsieve_crawler.spiders.site import CANONICALS_IN_A_ROW, SiteSpider

HOME = "https://example.org/"


def new_spider(**arguments: Any) -> SiteSpider:
    return SiteSpider(urls=HOME, **arguments)


def page(
    url: str,
    body: str,
    verdict: str | None = "unique",
    canonical: str | None = None,
    *,
    duplicate_of_url: str | None = None,
) -> HtmlResponse:
    meta: dict[str, Any] = {}
    if verdict:
        meta["twinsieve"] = {"id": url, "url": url, "verdict": verdict, "sequence": 1}
        meta["twinsieve"]["duplicate_of_url"] = duplicate_of_url
        own, claimed = page_addresses(url, canonical)
        meta["twinsieve_page"] = Page(
            id=url, url=url, canonical_url=own, claimed_url=claimed, title="t", text="the article"
        )
    return HtmlResponse(url, body=body.encode(), encoding="utf-8", request=Request(url, meta=meta))


def results(
    spider: SiteSpider, response: Response, hops: int = 0, canonicals: int = 0
) -> tuple[list[PageItem], list[Request]]:
    async def collect() -> list[Any]:
        return [output async for output in spider.parse_page(response, hops, canonicals)]

    try:
        outputs = asyncio.run(collect())
    finally:
        asyncio.run(spider.closed("finished"))
    return [o for o in outputs if isinstance(o, PageItem)], [o for o in outputs if isinstance(o, Request)]


def first_output(spider: SiteSpider, response: Response) -> tuple[Any, int]:
    """Return what the spider yields first, and how many processes it has started by then."""

    async def collect() -> tuple[Any, int]:
        before = set(multiprocessing.active_children())
        outputs = spider.parse_page(response)
        first = await anext(outputs)
        started = len(set(multiprocessing.active_children()) - before)
        await outputs.aclose()  # type: ignore[attr-defined]
        return first, started

    try:
        return asyncio.run(collect())
    finally:
        asyncio.run(spider.closed("finished"))


def publishing_spider(**arguments: Any) -> SiteSpider:
    spider = new_spider(**arguments)
    spider.settings = Settings({"TWINSIEVE_KAFKA_BOOTSTRAP": "a:9092"})
    return spider


def first_requests(spider: SiteSpider) -> list[str]:
    async def collect() -> list[str]:
        return [request.url async for request in spider.start()]

    return asyncio.run(collect())


def test_depth_counts_links_from_the_start() -> None:
    """At the last depth a page yields its item, but no links."""
    site, response = new_spider(depth=2), page(HOME, '<a href="/a">a</a>')
    assert [r.cb_kwargs["hops"] for r in results(site, response, hops=1)[1]] == [2]
    items, requests = results(site, response, hops=2)
    assert (len(items), requests) == (1, [])


@pytest.mark.parametrize("create", [new_spider, publishing_spider])
def test_an_item_comes_before_the_links_of_its_page_are_read(create: Callable[[], SiteSpider]) -> None:
    """The state knows the page already, so nothing in its links may cost its item."""
    item, started = first_output(create(), page(HOME, '<a href="/a">a</a>'))
    assert (item.text, started) == ("the article", 0)


def test_a_base_behind_the_first_4_kib_that_is_no_url_costs_no_item() -> None:
    """Scrapy looks for the base in the first 4 KiB, so such a page comes to the spider, with its verdict."""
    items, requests = results(new_spider(), page(HOME, " " * 5000 + '<base href="http://["><a href="/a">a</a>'))
    assert ([item.text for item in items], [request.url for request in requests]) == (["the article"], [f"{HOME}a"])


def test_an_entry_of_a_sitemap_that_is_no_url_costs_no_other() -> None:
    """A relative address, or one with a wrong port, is left out."""
    locs = "".join(f"<url><loc>{loc}</loc></url>" for loc in ("/a", f"{HOME}b", "https://example.org:x/", f"{HOME}c"))
    url = f"{HOME}sitemap.xml"
    sitemap = XmlResponse(url, body=f"<urlset>{locs}</urlset>".encode(), request=Request(url))
    assert [request.url for request in new_spider()._parse_sitemap(sitemap)] == [f"{HOME}b", f"{HOME}c"]


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org/", "http://[", "http://example.org:99999/"])
def test_a_start_that_is_no_url_is_refused(url: str) -> None:
    """The message shows it."""
    with pytest.raises(ConfigurationError, match=re.escape(f"got {url}")):
        SiteSpider(urls=url)


def test_a_canonical_url_counts_as_a_link() -> None:
    """A mobile page leads to the full page, but not at the last depth, and not at the end of a chain."""
    mobile = page(f"{HOME}m/full", "", canonical=f"{HOME}full")
    _, requests = results(new_spider(depth=2), mobile, hops=1)
    assert [(r.url, r.cb_kwargs) for r in requests] == [("https://example.org/full", {"hops": 2, "canonicals": 1})]
    assert results(new_spider(depth=1), mobile, hops=1)[1] == []
    assert results(new_spider(), mobile, hops=9, canonicals=CANONICALS_IN_A_ROW)[1] == []


def test_a_link_begins_a_new_chain_of_canonical_urls() -> None:
    """Only canonical URLs in a row are limited; frames and the next page of a series are not followed."""
    head = '<link rel="next" href="/next"><iframe src="/frame"></iframe>'
    response = page(HOME, f'{head}<a href="/a">a</a>', canonical=f"{HOME}other")
    _, requests = results(new_spider(depth=9), response, hops=1, canonicals=1)
    assert [(r.url, r.cb_kwargs) for r in requests] == [
        (f"{HOME}other", {"hops": 2, "canonicals": 2}),
        (f"{HOME}a", {"hops": 2}),
    ]


def test_a_page_fetched_again_in_the_same_crawl_yields_no_second_item() -> None:
    """An unchanged page is yielded if only an earlier crawl has yielded it."""
    site = new_spider()
    full = f"{HOME}full"
    assert len(results(site, page(full, "", "unchanged", duplicate_of_url=full))[0]) == 1
    assert len(results(site, page(f"{HOME}m/full", "", "unchanged", full, duplicate_of_url=full))[0]) == 0
    assert len(results(site, page(full, "", "updated", duplicate_of_url=full))[0]) == 1


def test_a_page_visited_by_a_claim_first_yields_no_second_item() -> None:
    """The mobile page of a page from an earlier crawl stands for it; a page of another text does not."""
    site, full, mobile = new_spider(), f"{HOME}full", f"{HOME}m/full"
    assert len(results(site, page(mobile, "", "unchanged", full, duplicate_of_url=full))[0]) == 1
    assert len(results(site, page(full, "", "unchanged", duplicate_of_url=full))[0]) == 0
    section = f"{HOME}section"
    assert len(results(site, page(f"{HOME}news", "", "unique", canonical=section))[0]) == 1
    assert len(results(site, page(section, "", "unchanged", duplicate_of_url=section))[0]) == 1


def test_a_page_to_be_published_yields_an_item_at_every_visit() -> None:
    """The service decides what has changed; the item has no verdict."""
    site = publishing_spider()
    for _ in range(2):
        [item], _ = results(site, page(f"{HOME}full", "", "unchanged"))
        assert (type(item), item.text, item.html) == (PublishedItem, "the article", None)


def test_a_page_without_an_article_is_published_as_html() -> None:
    """The stored page is then complete; its links are followed."""
    body = "<html><body><p>高潮六点</p><a href='/a'>a</a></body></html>"
    [item], requests = results(publishing_spider(), page(f"{HOME}tides", body, verdict=None))
    assert (type(item), item.text, item.html) == (PublishedItem, None, body)
    assert [request.url for request in requests] == [f"{HOME}a"]


def test_a_response_that_is_not_html_yields_nothing() -> None:
    """A PDF with an ordinary URL yields neither item nor links."""
    assert results(new_spider(), Response(f"{HOME}file", body=b"%PDF")) == ([], [])


@pytest.mark.parametrize(
    ("follow", "expected"),
    [
        ("links", [HOME]),
        ("sitemap", [f"{HOME}robots.txt", f"{HOME}sitemap.xml"]),
        ("both", [HOME, f"{HOME}robots.txt", f"{HOME}sitemap.xml"]),
    ],
)
def test_pages_come_from_links_or_from_the_sitemap(follow: str, expected: list[str]) -> None:
    """The sitemap is looked for in robots.txt and at its usual path."""
    assert first_requests(new_spider(follow=follow)) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"urls": ""},
        {"urls": "example.org"},
        {"urls": "ftp://example.org/"},
        {"urls": HOME, "depth": "-1"},
        {"urls": HOME, "follow": "rss"},
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any]) -> None:
    """The message shows the value."""
    with pytest.raises(ConfigurationError, match="got"):
        SiteSpider(**arguments)
