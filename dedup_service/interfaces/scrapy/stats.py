"""Counters and seconds of the add-on in Scrapy's stats, all under `twinsieve/`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class CrawlStats:
    """Writes to the stats of one crawl.

    on_timed: callback with the step and its seconds, for every measurement of `timed`.
    """

    def __init__(self, crawler: "Crawler", on_timed: Callable[[str, float], None] | None = None) -> None:
        self._crawler = crawler
        self._on_timed = on_timed

    def add(self, name: str, value: float = 1) -> None:
        """Add `value` to `twinsieve/<name>`."""
        self._crawler.stats.inc_value(f"twinsieve/{name}", value)  # type: ignore[arg-type]  # it adds any number

    def set(self, name: str, value: float) -> None:
        """Set `twinsieve/<name>` to `value`, for numbers that are counted elsewhere."""
        self._crawler.stats.set_value(f"twinsieve/{name}", value)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the seconds that the block takes to `twinsieve/seconds/<step>`."""
        started = perf_counter()
        try:
            yield
        finally:
            seconds = perf_counter() - started
            self.add(f"seconds/{step}", seconds)
            if self._on_timed is not None:
                self._on_timed(step, seconds)
