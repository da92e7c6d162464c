"""Observers of a crawl, connected to Scrapy's signals and to the add-on's `page_judged`.

Each is connected to a crawler before it starts. They count, write and draw, and do not change the crawl;
only `Stay` keeps it open, and an output that cannot be written closes it: the state would know pages that are nowhere.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import msgspec
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.extensions.feedexport import FeedExporter

from dedup_service.scrapy import page_judged

Connect = Callable[[Crawler], None]

OUTPUT_ERROR = "twinsieve/output_error"
"""Stat: the OSError for which the crawl was closed."""

_closing: set[asyncio.Task[None]] = set()
"""Tasks that nobody awaits, so that they are not collected before they end."""


@contextmanager
def _closing_on_error(crawler: Crawler) -> Iterator[None]:
    """Close the crawl, once, if an output cannot be written."""
    try:
        yield
    except OSError as error:
        if crawler.stats.get_value(OUTPUT_ERROR) is not None:
            return
        crawler.stats.set_value(OUTPUT_ERROR, error)
        logging.getLogger(__name__).critical("An output cannot be written, so the crawl is closed: %s", error)
        task = asyncio.create_task(crawler.engine.close_spider_async(reason="twinsieve_output_failed"))
        _closing.add(task)
        task.add_done_callback(_closing.discard)


class Feed(FeedExporter):
    """Scrapy's feeds. A crawl whose feed cannot be written is closed."""

    def item_scraped(self, item: Any, spider: Spider) -> None:
        """Write an item."""
        with _closing_on_error(self.crawler):
            super().item_scraped(item, spider)


def verdict_lines(target: BinaryIO) -> Connect:
    """Write every verdict to `target` as a line of JSON, in order."""
    encode = msgspec.json.Encoder().encode

    def connect(crawler: Crawler) -> None:
        def write(verdict: dict[str, Any]) -> None:
            with _closing_on_error(crawler):
                target.write(encode(verdict) + b"\n")

        crawler.signals.connect(write, signal=page_judged, weak=False)

    return connect


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
