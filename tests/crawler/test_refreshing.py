"""A page with an address that is no URL is not lost on its way to the spider."""

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.utils.test import get_crawler

from twinsieve_crawler.refreshing import RefreshMiddleware
from twinsieve_crawler.running import project_settings

HOME = "https://example.org/"
REFRESH = '<meta http-equiv="refresh" content="0; url={}">'


def passed(head: str) -> Request | HtmlResponse:
    """Return what comes of a page behind Scrapy's own middlewares."""
    settings = project_settings({}).getdict("DOWNLOADER_MIDDLEWARES")
    assert settings["scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware"] is None
    assert settings[f"{RefreshMiddleware.__module__}.{RefreshMiddleware.__name__}"] == 580
    page = HtmlResponse(HOME, body=f"<head>{head}</head><p>An article".encode(), encoding="utf-8")
    return RefreshMiddleware.from_crawler(get_crawler()).process_response(Request(HOME), page)


@pytest.mark.parametrize("address", ["http://[", "//[x]/", "http://a:99999/", "http://℀/"])
@pytest.mark.parametrize("head", ['<base href="{}">', REFRESH])
def test_an_address_that_is_no_url_costs_no_page(head: str, address: str) -> None:
    """Scrapy's middleware raises ValueError, and the page has neither a verdict nor an item."""
    assert isinstance(passed(head.format(address)), HtmlResponse)


def test_a_refresh_is_followed() -> None:
    """As without our middleware."""
    assert passed(REFRESH.format("/b")).url == f"{HOME}b"
