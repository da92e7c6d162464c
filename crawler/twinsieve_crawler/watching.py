"""Observers of a crawl, connected to Scrapy's signals and to the add-on's `page_judged`.

Each is connected to a crawler before it starts. They count, write and draw, and do not change the crawl;
only `Stay` keeps it open.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import msgspec
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider

from dedup_service.scrapy import page_judged

Connect = Callable[[Crawler], None]


def verdict_lines(target: BinaryIO) -> Connect:
    """Write every verdict to `target` as a line of JSON, in order."""
    encode = msgspec.json.Encoder().encode

    def write(verdict: dict[str, Any]) -> None:
        target.write(encode(verdict) + b"\n")

    return lambda crawler: crawler.signals.connect(write, signal=page_judged, weak=False)


class Stay:
    """Keeps a crawl open when nothing is left to fetch, until a signal ends it.

    on_idle: called once, when nothing is left. stayed: whether that happened.
    """

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._on_idle = on_idle
        self.stayed = False

    def __call__(self, crawler: Crawler) -> None:
        """Connect to `crawler`."""
        crawler.signals.connect(self._idle, signal=signals.spider_idle, weak=False)

    def _idle(self) -> None:
        if not self.stayed:
            self.stayed = True
            self._on_idle()
        raise DontCloseSpider


@contextmanager
def progress() -> Iterator[Connect]:
    """Show counts during the block if stderr is a terminal."""
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
