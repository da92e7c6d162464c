"""A worker process that reads links and text for the spider, so that the event loop does not parse HTML.

One process is enough: reading takes a fraction of the time of extraction in the filter's own workers. It has the
limits of those (`runtime.workers.page_limits`), and a shorter one of time, because all pages wait for this process. A
page that exceeds a limit, or that kills the process, has no links; the next page gets a new process.
Invariant: no page makes `read` raise.
"""

import asyncio
import logging
from functools import partial

from scrapy.http import Response

from dedup_service.runtime.workers.pool import Pool
from dedup_service.runtime.workers.worker_process import Job
from twinsieve_crawler.reading import Reading, read_page

READ_TIMEOUT_S = 5.0
"""Processor seconds of a page. 8 MiB of links take 0.7 to 0.9 s, 41 MiB 1.8 to 2.9 s."""

Fetched = tuple[bytes, str, str | None, bool]
"""HTML, URL, Content-Type, and whether all text is wanted."""

logger = logging.getLogger(__name__)


class Reader:
    """Reads pages in one worker process, which starts with the first page.

    domains: as in `read_page`. timeout_s: processor time that a page may use.
    """

    def __init__(self, domains: tuple[str, ...], *, timeout_s: float = READ_TIMEOUT_S) -> None:
        job: Job[Fetched, Reading] = Job(partial(_read, domains), _get_ready, timeout_s, preload=(__name__,))
        self._pool: Pool[Fetched, Reading] = Pool(job, 1, lost=_lost)

    async def read(self, response: Response, *, whole_text: bool) -> Reading:
        """Return the result of `read_page` for a response; what keeps it from being complete is logged."""
        header = response.headers.get("Content-Type")
        content_type = header.decode("latin-1") if header else None
        try:
            task = self._pool.submit([(response.body, response.url, content_type, whole_text)])
            [reading] = await asyncio.wrap_future(task)
        except Exception as error:  # its item, or the links of other pages, must not be lost for it
            reading = Reading(problem=repr(error))
        if reading.problem is not None:
            logger.warning("%s: not all links are followed: %s", response, reading.problem)
        return reading

    def close(self) -> None:
        """Kill the process, whatever it is doing. Takes up to a second."""
        self._pool.close(0.0)


def _read(domains: tuple[str, ...], fetched: Fetched) -> Reading:
    html, url, content_type, whole_text = fetched
    return read_page(html, url, content_type, domains, whole_text=whole_text)


def _lost(_fetched: Fetched, why: str) -> Reading:
    return Reading(problem=why)


def _get_ready() -> None:
    """Load what the first page needs, which is not its time."""
    _read((), (b"<p>A page</p>", "https://example.org/", None, True))
