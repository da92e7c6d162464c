"""Prepare fetched HTML pages in worker processes, because extraction holds the interpreter lock.

Goal: every page comes back, prepared or with the reason why it could not be, whatever it does to its worker.
How: the processes are those of `runtime.workers.pool`, with one page a task. For batches of records see
`runtime.workers.preparation`.
Invariant: a future ends with a page, with RecordError (`url` is not a Web address), or with WorkersError once the
workers are closed.
"""

from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from dedup_service.core.extraction import Extraction, to_page, warm_up
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.page_limits import PAGE_MEMORY_MB, PAGE_TIMEOUT_S
from dedup_service.runtime.workers.pool import Pool, PoolState
from dedup_service.runtime.workers.preparation import extract_cached, get_ready, preload_for, twice
from dedup_service.runtime.workers.worker_process import Job

_PAGES_PER_WORKER = 20_000
"""After which a process is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Html:
    """A fetched page. id: the caller's name for it, None for the URL. declared_encoding: label or Content-Type."""

    html: bytes | str
    url: str
    id: str | None = None
    declared_encoding: str | None = None


def prepare_html(page: Html, options: SpaceOptions | None = None) -> PreparedPage:
    """Extract and fingerprint one page in this process. RecordError if `page.url` is not a Web address."""
    fingerprinter = build_fingerprinter(options)
    return twice(lambda: fingerprinter.prepare(_extracted(page)), partial(_failed, page))


def extract_html(page: Html) -> PreparedPage:
    """Extract one page in this process without a fingerprint, which is made elsewhere."""
    return twice(lambda: _unprepared(_extracted(page)), partial(_failed, page))


def _extracted(page: Html) -> Page:
    return to_page(extract_cached(page.html, page.declared_encoding), page.url, id=page.id)


class HtmlWorkers:
    """Worker processes that prepare pages of one space.

    fingerprints: False only extracts; then no dictionary is loaded.
    On an event loop, await `asyncio.wrap_future(workers.submit(page))`.
    """

    def __init__(
        self,
        processes: int,
        options: SpaceOptions | None = None,
        *,
        fingerprints: bool = True,
    ) -> None:
        work = partial(prepare_html, options=options) if fingerprints else extract_html
        ready = partial(get_ready, options) if fingerprints else warm_up
        job: Job[Html, PreparedPage] = Job(
            work,
            ready,
            PAGE_TIMEOUT_S,
            PAGE_MEMORY_MB,
            preload=(__name__, *(preload_for(options) if fingerprints else ())),
        )
        self._pool: Pool[Html, PreparedPage] = Pool(job, processes, lost=_failed, items_per_worker=_PAGES_PER_WORKER)
        self._pool.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(None if kind is None else 0.0)  # after an error, nobody takes the pages

    def close(self, timeout_s: float | None = None) -> None:
        """Stop the workers after the pages they have; pages that still wait end with WorkersError.

        timeout_s: after which workers that are not done are killed; None waits for them.
        """
        self._pool.close(timeout_s)

    def pool_state(self) -> PoolState:
        """Return the state of the worker processes."""
        return self._pool.state()

    def submit(self, page: Html) -> Future[PreparedPage]:
        """Start on a page; the future gives it prepared, or RecordError if its `url` is not a Web address."""
        prepared: Future[PreparedPage] = Future()
        prepared.set_running_or_notify_cancel()
        self._pool.submit([page]).add_done_callback(lambda batch: _copy_result(batch, prepared))
        return prepared


def _copy_result(batch: Future[list[PreparedPage]], prepared: Future[PreparedPage]) -> None:
    error = batch.exception()
    if error is None:
        prepared.set_result(batch.result()[0])
    else:
        prepared.set_exception(error)


def _failed(page: Html, why: str) -> PreparedPage:
    """A page that could not be prepared: it is `undecided`, with the reason."""
    problem = f"extraction failed: {why}"
    return _unprepared(to_page(Extraction(problem=problem), page.url, id=page.id))


def _unprepared(page: Page) -> PreparedPage:
    return PreparedPage(page=page, fingerprint=Fingerprint(), body_hash=None, reason=page.problem)
