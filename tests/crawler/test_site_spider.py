"""The `site` spider, response by response."""

import asyncio
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings

from crawler.items import JudgedItem, PageItem, PublishedItem
from crawler.spiders.site import SiteSpider
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page

HOME = "https://example.org/"


def spider(**arguments: Any) -> SiteSpider:
    return SiteSpider(urls=HOME, **arguments)


def page(url: str, body: str, verdict: str | None = "unique", canonical: str | None = None) -> HtmlResponse:
    meta: dict[str, Any] = {}
    if verdict:
        meta["twinsieve"] = {"id": url, "url": url, "verdict": verdict, "sequence": 1}
        meta["twinsieve_page"] = Page(id=url, url=url, canonical_url=canonical or url, title="t", text="the article")
    return HtmlResponse(url, body=body.encode(), encoding="utf-8", request=Request(url, meta=meta))


def results(original: SiteSpider, response: Response, hops: int = 0) -> tuple[list[PageItem], list[Request]]:
    async def collect() -> list[Any]:
        return [found async for found in original.parse_page(response, hops)]

    try:
        found = asyncio.run(collect())
    finally:
        original.closed("finished")
    return [o for o in found if isinstance(o, PageItem)], [o for o in found if isinstance(o, Request)]


def publishing(**arguments: Any) -> SiteSpider:
    original = spider(**arguments)
    original.settings = Settings({"TWINSIEVE_KAFKA_BOOTSTRAP": "a:9092"})
    return original


def first_requests(original: SiteSpider) -> list[str]:
    async def collect() -> list[str]:
        return [request.url async for request in original.start()]

    return asyncio.run(collect())


def test_depth_counts_links_from_the_start() -> None:
    """At the last depth a page still gives its item and no more links."""
    site, response = spider(depth=2), page(HOME, '<a href="/a">a</a>')
    assert [r.cb_kwargs["hops"] for r in results(site, response, hops=1)[1]] == [2]
    items, requests = results(site, response, hops=2)
    assert (len(items), requests) == (1, [])


def test_a_canonical_address_is_followed_at_no_cost_in_depth() -> None:
    """A mobile page leads to the full one, also at the last depth."""
    _, requests = results(spider(depth=1), page(f"{HOME}m/full", "", canonical=f"{HOME}full"), hops=1)
    assert [(r.url, r.cb_kwargs["hops"]) for r in requests] == [("https://example.org/full", 1)]


def test_a_page_that_is_its_own_canonical_address_leads_nowhere() -> None:
    """Also where it was fetched under a campaign's parameters."""
    response = page(f"{HOME}full?utm_source=letter", "", canonical=f"{HOME}full")
    assert results(spider(), response)[1] == []


def test_a_page_seen_again_in_the_same_crawl_gives_no_second_item() -> None:
    """An unchanged page whose item this crawl gave is not news; one of an earlier crawl is."""
    site = spider()
    assert len(results(site, page(f"{HOME}full", "", "unchanged"))[0]) == 1
    assert len(results(site, page(f"{HOME}m/full", "", "unchanged", canonical=f"{HOME}full"))[0]) == 0
    assert len(results(site, page(f"{HOME}full", "", "updated"))[0]) == 1


def test_a_page_that_the_filter_could_not_read_is_kept_whole() -> None:
    """Its item holds all text of the document."""
    body = (
        "<html><head><title> Tide table </title><script>x()</script></head><body><p>High water 6:40</p></body></html>"
    )
    [item], _ = results(spider(), page(f"{HOME}tides", body, verdict=None))
    assert (item.title, item.text, item.verdict) == ("Tide table", "Tide table High water 6:40", None)


def test_a_page_to_be_published_gives_an_item_at_every_visit() -> None:
    """What is new about it the service will say; the item has no verdict of its own."""
    site = publishing()
    for _ in range(2):
        [item], _ = results(site, page(f"{HOME}full", "", "unchanged"))
        assert (type(item), item.text, item.html) == (PublishedItem, "the article", None)


def test_a_page_without_an_article_is_published_as_its_document() -> None:
    """The service finds no article either, and whoever stores the page has it whole; its links are followed."""
    body = "<html><body><p>高潮六点</p><a href='/a'>a</a></body></html>"
    [item], requests = results(publishing(), page(f"{HOME}tides", body, verdict=None))
    assert (type(item), item.text, item.html) == (PublishedItem, None, body)
    assert [request.url for request in requests] == [f"{HOME}a"]


def test_a_judged_page_says_what_was_said_of_it() -> None:
    """The keys of the verdict are fields of the item."""
    [item], _ = results(spider(), page(HOME, ""))
    assert (type(item), item.verdict, item.sequence) == (JudgedItem, "unique", 1)


def test_what_is_no_html_gives_nothing() -> None:
    """A PDF behind an innocent address is neither item nor source of links."""
    assert results(spider(), Response(f"{HOME}file", body=b"%PDF")) == ([], [])


@pytest.mark.parametrize(
    ("follow", "expected"),
    [
        ("links", [HOME]),
        ("sitemap", [f"{HOME}robots.txt", f"{HOME}sitemap.xml"]),
        ("both", [HOME, f"{HOME}robots.txt", f"{HOME}sitemap.xml"]),
    ],
)
def test_pages_come_from_links_or_from_the_sitemap(follow: str, expected: list[str]) -> None:
    """The sitemap is where robots.txt says, or where it usually is."""
    assert first_requests(spider(follow=follow)) == expected


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
def test_arguments_that_cannot_be_meant_are_refused(arguments: dict[str, Any]) -> None:
    """The message shows what it got."""
    with pytest.raises(ConfigurationError, match="got"):
        SiteSpider(**arguments)
