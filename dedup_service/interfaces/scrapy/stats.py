"""Counters and seconds of the add-on in Scrapy's stats, all under `twinsieve/`, and what its log says of copies."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.live_stats.top_k import TopK

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

HOSTS_COUNTED = 1000
SHOWN = 5
"""Hosts and examples at the end of a crawl: a few lines that a person reads."""

logger = logging.getLogger(__name__)


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


class Copies:
    """The duplicates of a crawl: which hosts copy which, and the first few as examples. Its memory is bounded."""

    def __init__(self) -> None:
        self._count = 0
        self._hosts: TopK[tuple[str, str]] = TopK(HOSTS_COUNTED)
        self._examples: list[str] = []

    def add(self, verdict: Mapping[str, Any]) -> None:
        """Count a verdict, as it is in `request.meta`, if it is `duplicate`."""
        if verdict["verdict"] != "duplicate":
            return
        self._count += 1
        self._hosts.add((_host(verdict["url"]), _host(verdict["duplicate_of_url"])))
        if len(self._examples) < SHOWN:
            self._examples.append(verdict_text(verdict))

    def log(self) -> None:
        """Log what was counted, at the end of a crawl; nothing if there was no duplicate."""
        if not self._count:
            return
        pairs = [
            f"{copying} from {'itself' if kept == copying else kept} ({top.count:,})"
            for top in self._hosts.top(SHOWN)
            for copying, kept in [top.item]
        ]
        plural = "" if self._count == 1 else "s"
        logger.info("%d duplicate%s. Hosts that copy most: %s", self._count, plural, ", ".join(pairs))
        for example in self._examples:
            logger.info("For example: %s", example)


def verdict_text(verdict: Mapping[str, Any]) -> str:
    """Return a verdict, as it is in `request.meta`, as a line of a log: of which page, what it says, and why."""
    other = f"repeats {verdict['duplicate_of_url']}" if verdict["verdict"] == "duplicate" else verdict["verdict"]
    reason = f" ({verdict['reason']})" if verdict["reason"] else ""
    return terminal_safe(f"{verdict['url']}, {other}{reason}")


def _host(url: str) -> str:
    """Return the host of an address, or the address if it has none."""
    try:
        return terminal_safe(urlsplit(url).hostname or url)
    except ValueError:
        return terminal_safe(url)
