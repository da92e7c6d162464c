"""Watch a crawl from outside: observers of the add-on's one signal.

Each is connected to a crawler before it starts. None is in the way: they count, write and draw, and a crawl
without them is the same crawl.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter
from typing import Any

import msgspec
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider

from dedup_service.scrapy import page_judged

__all__ = ["Connect", "Stay", "progress", "verdict_lines"]

Connect = Callable[[Crawler], None]


def verdict_lines(target: BufferedWriter) -> Connect:
    """Write every verdict to `target`, one JSON line each, in the order they were given."""
    encode = msgspec.json.Encoder().encode

    def write(verdict: dict[str, Any]) -> None:
        target.write(encode(verdict) + b"\n")

    return lambda crawler: crawler.signals.connect(write, signal=page_judged, weak=False)


class Stay:
    """Keeps a crawl open when there is nothing left to fetch, until a signal ends it. tell: is called once, then."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self.stayed = False

    def __call__(self, crawler: Crawler) -> None:
        """Connect to a crawler."""
        crawler.signals.connect(self._idle, signal=signals.spider_idle, weak=False)

    def _idle(self) -> None:
        if not self.stayed:
            self.stayed = True
            self._tell()
        raise DontCloseSpider


@contextmanager
def progress() -> Iterator[Connect]:
    """Show counts on a terminal while the block lasts; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _crawler: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("starting")
        pages = duplicates = 0

        def count(verdict: dict[str, Any]) -> None:
            nonlocal pages, duplicates
            pages += 1
            duplicates += verdict["verdict"] == "duplicate"
            bar.update(task, description=f"{pages:,} pages, {duplicates:,} duplicates")

        def closing(reason: str) -> None:
            bar.update(task, description=f"{pages:,} pages, {duplicates:,} duplicates, closing ({reason})")

        def connect(crawler: Crawler) -> None:
            crawler.signals.connect(count, signal=page_judged, weak=False)
            crawler.signals.connect(closing, signal=signals.spider_closed, weak=False)

        yield connect
