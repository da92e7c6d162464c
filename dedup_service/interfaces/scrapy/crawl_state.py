"""The one signal we send, so that counting, logging and drawing can watch without being in the way.

Whether a crawl is being closed: Scrapy sends no signal when that begins, only when it is done.

A component that holds items back must know it in between, since closing waits for those items.

What the stats of a crawl say of us: counts and seconds, under `twinsieve/`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

__all__ = ["Counts", "is_closing", "page_judged"]

page_judged = object()
"""Sent after each verdict with `verdict` (a dict, as in `request.meta["twinsieve"]`), `request` and `response`."""


if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def is_closing(crawler: "Crawler") -> bool:
    """Whether somebody has asked for the end: a signal, an extension, `CloseSpider`, or all requests being done."""
    if not crawler.crawling:
        return True
    slot = getattr(crawler.engine, "_slot", None)  # not public; a crawl that is stopped is known without it
    return getattr(slot, "closing", None) is not None


if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Counts:
    """Adds to the stats of one crawl. also: told the step and its seconds of whatever is timed."""

    def __init__(self, crawler: "Crawler", also: Callable[[str, float], None] | None = None) -> None:
        self._crawler = crawler
        self._also = also

    def add(self, name: str, value: float = 1) -> None:
        """Add `value` to `twinsieve/<name>`."""
        self._crawler.stats.inc_value(f"twinsieve/{name}", value)  # type: ignore[arg-type]  # it adds any number

    def set(self, name: str, value: float) -> None:
        """Let `twinsieve/<name>` be `value`: what somebody else counts."""
        self._crawler.stats.set_value(f"twinsieve/{name}", value)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the seconds that pass while entered to `twinsieve/seconds/<step>`."""
        started = perf_counter()
        try:
            yield
        finally:
            seconds = perf_counter() - started
            self.add(f"seconds/{step}", seconds)
            if self._also is not None:
                self._also(step, seconds)
