"""Chromium for the tests of a module, and pages that must have no faults."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.integration.dashboard.browsing import BrowserPage, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser, for one module: while it is open, no other event loop can run in this thread."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def watch(browser: Browser) -> Iterator[Callable[..., BrowserPage]]:
    """A function that opens pages; at the end none may have an error or a request to another server."""
    opened: list[tuple[BrowserPage, str]] = []

    def start(url: str, *arguments: object, **named: object) -> BrowserPage:
        browser_page = BrowserPage(browser, url, *arguments, **named)
        opened.append((browser_page, url))
        return browser_page

    yield start
    for browser_page, _ in opened:
        browser_page.close()
    for browser_page, url in opened:
        assert browser_page.faults == []
        assert {asked for asked in browser_page.asked if not asked.startswith((url, "data:"))} == set()
