"""Chromium for a module's tests, and pages in it that must have no fault."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.integration.dashboard.browsing import Watched, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A module's, and not the session's: while it is open, nobody else in this thread can run an event loop."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def watch(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """A function that opens pages; at the end none of them has told of an error or asked another server."""
    opened: list[tuple[Watched, str]] = []

    def start(url: str, *arguments: object, **named: object) -> Watched:
        watched = Watched(browser, url, *arguments, **named)
        opened.append((watched, url))
        return watched

    yield start
    for watched, _ in opened:
        watched.close()
    for watched, url in opened:
        assert watched.faults == []
        assert {asked for asked in watched.asked if not asked.startswith((url, "data:"))} == set()
