"""A worker process that reads links and text for the spider, so that the event loop does not parse HTML.

One process is enough: reading takes a fraction of the time of extraction in the filter's own workers. If the
process dies over a page, that page is read as empty and the next page gets a new process.
"""

import asyncio
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from scrapy.http import Response

from dedup_service.runtime.workers.worker_process import behave_as_worker, worker_context
from twinsieve_crawler.reading import Reading, read_page


class Reader:
    """Reads pages in one worker process, which starts with the first page. domains: as in `read_page`."""

    def __init__(self, domains: tuple[str, ...]) -> None:
        self._domains = domains
        self._pool: ProcessPoolExecutor | None = None

    async def read(self, response: Response, *, whole_text: bool) -> Reading:
        """Return the result of `read_page` for a response, empty if the process died over it."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=worker_context(), initializer=behave_as_worker)
        pool = self._pool
        header = response.headers.get("Content-Type")
        content_type = header.decode("latin-1") if header else None
        try:
            task = pool.submit(_read, response.body, response.url, content_type, self._domains, whole_text)
            return await asyncio.wrap_future(task)
        except BrokenProcessPool:
            if pool is self._pool:
                self.close()
            return Reading()

    def close(self) -> None:
        """End the process, after the page in progress."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _read(html: bytes, url: str, content_type: str | None, domains: tuple[str, ...], whole_text: bool) -> Reading:
    return read_page(html, url, content_type, domains, whole_text=whole_text)
