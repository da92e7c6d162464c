"""What the stats of a crawl say of us: counts and seconds, under `neardup/`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

__all__ = ["Counts"]


class Counts:
    """Adds to the stats of one crawl. also: told the step and its seconds of whatever is timed."""

    def __init__(self, crawler: "Crawler", also: Callable[[str, float], None] | None = None) -> None:
        self._crawler = crawler
        self._also = also

    def add(self, name: str, value: float = 1) -> None:
        """Add `value` to `neardup/<name>`."""
        self._crawler.stats.inc_value(f"neardup/{name}", value)  # type: ignore[arg-type]  # it adds any number

    def set(self, name: str, value: float) -> None:
        """Let `neardup/<name>` be `value`: what somebody else counts."""
        self._crawler.stats.set_value(f"neardup/{name}", value)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the seconds that pass while entered to `neardup/seconds/<step>`."""
        started = perf_counter()
        try:
            yield
        finally:
            seconds = perf_counter() - started
            self.add(f"seconds/{step}", seconds)
            if self._also is not None:
                self._also(step, seconds)
