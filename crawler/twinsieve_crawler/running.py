"""Runs the `site` spider in this process and returns the outcome.

Scrapy's own process object manages reactor, logging and signals: the first Ctrl-C ends the crawl after the
pages in flight, the second kills the process. Invariant: an error that kept the crawl from starting is raised here
unchanged, and not only logged.
"""

import asyncio
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings

from dedup_service.interfaces.cli.support.stop_signals import CODES, kill_at_second
from twinsieve_crawler.spiders.site import SiteSpider
from twinsieve_crawler.watching import Connect


@dataclass(frozen=True, slots=True)
class CrawlOutcome:
    """Outcome of a crawl.

    stats: Scrapy's. seconds: wall clock. reason: why the spider closed. signum: the signal that ended it, or
    None.
    """

    stats: dict[str, Any]
    seconds: float
    reason: str
    signum: int | None


class _Process(AsyncCrawlerProcess):
    """Scrapy's process, which also remembers the signal that ended it."""

    signum: int | None = None

    def _setup_reactor(self, install_signal_handlers: bool) -> None:
        super()._setup_reactor(install_signal_handlers)
        from twisted.internet import reactor

        reactor.callWhenRunning(kill_at_second)  # after Scrapy has set its handlers

    def _signal_shutdown(self, signum: int, frame: Any) -> None:
        self.signum = signum
        super()._signal_shutdown(signum, frame)
        for number in CODES:  # instead of Scrapy's, which waits for the reactor
            signal.signal(number, signal.SIG_DFL)


def project_settings(overrides: Mapping[str, Any]) -> Settings:
    """Return the project's settings, with `overrides` at the priority of the command line."""
    settings = Settings()
    settings.setmodule(import_module("twinsieve_crawler.settings"), priority="project")
    settings.setdict(dict(overrides), priority="cmdline")
    return settings


def run_site(settings: Settings, arguments: Mapping[str, Any], observers: Iterable[Connect] = ()) -> CrawlOutcome:
    """Crawl to the end and return the outcome; raise the error that kept the crawl from starting.

    arguments: of the spider. observers: connected to the crawler before it starts (`crawler.watching`).
    A process can crawl only once: Twisted's reactor does not start a second time.
    """
    process = _Process(settings)
    crawler = process.create_crawler(SiteSpider)
    for connect in observers:
        connect(crawler)
    started = time.monotonic()
    task: asyncio.Task[None] = process.crawl(crawler, **arguments)
    process.start(install_signal_handlers=True)
    seconds = time.monotonic() - started
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error
    stats = dict(crawler.stats.get_stats())
    reason = str(stats.get("finish_reason", "killed"))
    return CrawlOutcome(stats, seconds, reason, process.signum)
