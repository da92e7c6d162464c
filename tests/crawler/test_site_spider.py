"""The `site` spider, response by response."""

import asyncio
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from crawler.items import PageItem
from crawler.spiders.site import SiteSpider
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page

HOME = "https://example.org/"


def spider(**arguments: Any) -> SiteSpider:
    return SiteSpider(urls=HOME, **arguments)


def page(url: str, body: str, verdict: str | None = "unique", canonical: str | None = None) -> HtmlResponse:
    meta: dict[str, Any] = {}
    if verdict:
        meta["neardup"] = {"id": url, "url": url, "verdict": verdict, "sequence": 1}
        meta["neardup_page"] = Page(id=url, url=url, canonical_url=canonical or url, title="t", text="the article")
    return HtmlResponse(url, body=body.encode(), encoding="utf-8", request=Request(url, meta=meta))


def results(of: SiteSpider, response: Response, hops: int = 0) -> tuple[list[PageItem], list[Request]]:
    found = list(of.parse_page(response, hops))
    return [o for o in found if isinstance(o, PageItem)], [o for o in found if isinstance(o, Request)]


def first_requests(of: SiteSpider) -> list[str]:
    async def collect() -> list[str]:
        return [request.url async for request in of.start()]

    return asyncio.run(collect())


def test_it_stays_on_the_hosts_of_its_start_urls() -> None:
    """Subdomains belong to a host, other hosts do not; a link marked nofollow is not followed."""
    body = """<a href="/a">a</a> <a href="https://news.example.org/b">b</a> <a href="https://example.com/c">c</a>
    <a href="/d" rel="nofollow">d</a> <a href="/e.pdf">e</a>"""
    _, requests = results(spider(), page(HOME, body))
    assert [r.url for r in requests] == ["https://example.org/a", "https://news.example.org/b"]


def test_a_host_with_a_port_is_a_host() -> None:
    """A site on localhost:8000 links to itself."""
    site = SiteSpider(urls="http://127.0.0.1:8000/")
    _, requests = results(site, page("http://127.0.0.1:8000/", '<a href="/a">a</a>'))
    assert [r.url for r in requests] == ["http://127.0.0.1:8000/a"]


def test_depth_counts_links_from_the_start() -> None:
    """At the last depth a page still gives its item and no more links."""
    site, response = spider(depth=2), page(HOME, '<a href="/a">a</a>')
    assert [r.cb_kwargs["hops"] for r in results(site, response, hops=1)[1]] == [2]
    items, requests = results(site, response, hops=2)
    assert (len(items), requests) == (1, [])


def test_a_canonical_address_is_followed_at_no_cost_in_depth() -> None:
    """A mobile page leads to the full one, also at the last depth."""
    body = '<head><link rel="canonical" href="/full"></head><body></body>'
    _, requests = results(spider(depth=1), page(f"{HOME}m/full", body), hops=1)
    assert [(r.url, r.cb_kwargs["hops"]) for r in requests] == [("https://example.org/full", 1)]


@pytest.mark.parametrize("link", ["https://elsewhere.example/x", "/", "", "http://[", "/m/full"])
def test_a_canonical_address_that_is_not_to_be_believed_is_not_followed(link: str) -> None:
    """Another host, the home page, nonsense, and the page itself lead nowhere."""
    body = f'<head><link rel="canonical" href="{link}"></head><body></body>'
    assert results(spider(), page(f"{HOME}m/full", body))[1] == []


def test_a_page_seen_again_in_the_same_crawl_gives_no_second_item() -> None:
    """An unchanged page whose item this crawl gave is not news; one of an earlier crawl is."""
    site = spider()
    assert len(results(site, page(f"{HOME}full", "", "unchanged"))[0]) == 1
    assert len(results(site, page(f"{HOME}m/full", "", "unchanged", canonical=f"{HOME}full"))[0]) == 0
    assert len(results(site, page(f"{HOME}full", "", "updated"))[0]) == 1


def test_a_page_that_the_filter_could_not_read_is_kept_whole() -> None:
    """Its item holds all text of the document."""
    body = "<html><head><title> Tide table </title><script>x()</script></head><body><p>High water 6:40</p></body></html>"
    [item], _ = results(spider(), page(f"{HOME}tides", body, verdict=None))
    assert (item.title, item.text, item.verdict) == ("Tide table", "Tide table High water 6:40", None)


def test_what_is_no_html_gives_nothing() -> None:
    """A PDF behind an innocent address is neither item nor source of links."""
    assert list(spider().parse_page(Response(f"{HOME}file", body=b"%PDF"))) == []


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
    "arguments", [{"urls": ""}, {"urls": "example.org"}, {"urls": "ftp://example.org/"}, {"urls": HOME, "depth": "-1"}, {"urls": HOME, "follow": "rss"}]
)
def test_arguments_that_cannot_be_meant_are_refused(arguments: dict[str, Any]) -> None:
    """The message shows what it got."""
    with pytest.raises(ConfigurationError, match="got"):
        SiteSpider(**arguments)
