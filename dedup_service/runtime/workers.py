"""HTML → prepared pages in other processes: extraction and segmentation both hold the GIL.

Goal: whatever a page does to a worker, every page comes back, prepared or with the reason why not.
How: a pool of processes from a fork server. Where one dies, the pool is replaced and the pages it held are tried once
more, each alone, so that the page which kills is found out and takes no other along. A page that takes longer than
the limit is interrupted by a timer in its worker; where C code does not let go, the worker ends itself and
counts as dead. Pools are replaced after a number of pages, against growing memory: `max_tasks_per_child` would do it,
but hangs in CPython 3.11 to 3.14 (gh-115634).
Invariant: a future ends with a page or a RecordError (`url` is none); never with a broken pool.
"""

import faulthandler
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from types import FrameType, TracebackType
from typing import Self

from dedup_service.core.extraction import Extraction, to_page, warm_up
from dedup_service.core.fingerprint import Fingerprint, PreparedPage
from dedup_service.runtime.extraction_cache import ExtractionCache
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.worker_context import behave_as_worker, worker_context

__all__ = ["Html", "HtmlWorkers", "prepare_html"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Html:
    """A page as it was fetched. id: the caller's name, the URL where None. declared_encoding: label or Content-Type."""

    html: bytes | str
    url: str
    id: str | None = None
    declared_encoding: str | None = None


@cache
def _memory() -> ExtractionCache:
    """One memory of extractions per process."""
    return ExtractionCache()


def prepare_html(page: Html, options: SpaceOptions | None = None) -> PreparedPage:
    """Extract and fingerprint one page in this process. RecordError where `page.url` is no Web address."""
    extraction = _memory().extract(page.html, declared_encoding=page.declared_encoding)
    return build_fingerprinter(options).prepare(to_page(extraction, page.url, id=page.id))


class HtmlWorkers:
    """Worker processes that prepare pages of one space.

    timeout_s: the longest a page may take. pages_per_pool: pages after which the processes are replaced.
    A caller on an event loop awaits `asyncio.wrap_future(workers.submit(page))`.
    """

    def __init__(
        self,
        processes: int,
        options: SpaceOptions | None = None,
        *,
        timeout_s: float = 30.0,
        pages_per_pool: int = 20_000,
    ) -> None:
        self._processes = processes
        self._options = options
        self._timeout_s = timeout_s
        self._pages_per_pool = pages_per_pool
        self._lock = Lock()
        self._second_tries = ThreadPoolExecutor(1, "twinsieve-second-try")
        self._quarantine: ProcessPoolExecutor | None = None
        self._pool = _pool(processes, options)
        self._submitted = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers after the pages they hold; pages that still wait are cancelled."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._second_tries.shutdown(wait=True)
        if self._quarantine is not None:
            self._quarantine.shutdown(wait=True)

    def submit(self, page: Html) -> Future[PreparedPage]:
        """Start on a page; the future gives it prepared, or RecordError where its `url` is no Web address."""
        answer: Future[PreparedPage] = Future()
        answer.set_running_or_notify_cancel()
        with self._lock:
            pool = self._fresh_pool()
            try:
                task = pool.submit(_prepare_in_time, page, self._options, self._timeout_s)
            except BrokenProcessPool:
                pool = self._pool = _pool(self._processes, self._options)
                task = pool.submit(_prepare_in_time, page, self._options, self._timeout_s)
        task.add_done_callback(lambda done: self._settle(done, pool, page, answer))
        return answer

    def _fresh_pool(self) -> ProcessPoolExecutor:
        """The pool, or a new one after so many pages; the old one finishes what it holds."""
        self._submitted += 1
        if self._submitted % self._pages_per_pool == 0:
            self._pool.shutdown(wait=False)
            self._pool = _pool(self._processes, self._options)
        return self._pool

    def _settle(
        self, done: Future[PreparedPage], pool: ProcessPoolExecutor, page: Html, answer: Future[PreparedPage]
    ) -> None:
        """Hand the answer on, or have the page tried again where its pool broke."""
        if done.cancelled():
            answer.set_exception(RuntimeError("the workers were closed before this page's turn"))
        elif isinstance(done.exception(), BrokenProcessPool):
            with self._lock:
                if pool is self._pool:
                    self._pool = _pool(self._processes, self._options)
            self._second_tries.submit(self._try_alone, page, answer)
        else:
            _copy(done, answer)

    def _try_alone(self, page: Html, answer: Future[PreparedPage]) -> None:
        """The second try, in a process where no other page is; runs in the one thread of second tries."""
        if self._quarantine is None:
            self._quarantine = _pool(1, self._options)
        done = self._quarantine.submit(_prepare_in_time, page, self._options, self._timeout_s)
        if isinstance(done.exception(), BrokenProcessPool):
            self._quarantine = None
            answer.set_result(_failed(page, "extraction failed: the worker process died over this page, twice"))
        else:
            _copy(done, answer)


def _copy(done: Future[PreparedPage], answer: Future[PreparedPage]) -> None:
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(error)


def _failed(page: Html, problem: str) -> PreparedPage:
    """A page that cannot be judged: kept, with the reason."""
    kept = to_page(Extraction(problem=problem), page.url, id=page.id)
    return PreparedPage(page=kept, fingerprint=Fingerprint(), body_hash=None, reason=problem)


def _pool(processes: int, options: SpaceOptions | None) -> ProcessPoolExecutor:
    pool = ProcessPoolExecutor(
        processes, mp_context=worker_context(__name__), initializer=_get_ready, initargs=(options,)
    )
    for _ in range(processes):
        pool.submit(_nothing)  # starts a process, which loads its dictionaries before the first page comes
    return pool


def _nothing() -> None:
    """A task that only makes a worker start."""


def _get_ready(options: SpaceOptions | None) -> None:
    """In a worker: behave as one, load what the first page would wait for."""
    behave_as_worker()
    signal.signal(signal.SIGALRM, _interrupt)
    warm_up()
    build_fingerprinter(options)


def _prepare_in_time(page: Html, options: SpaceOptions | None, timeout_s: float) -> PreparedPage:
    """In a worker: prepare a page, or say that it took too long."""
    try:
        with _deadline(timeout_s):
            return prepare_html(page, options)
    except TimeoutError:
        return _failed(page, f"extraction failed: took longer than {timeout_s:g} s")


@contextmanager
def _deadline(timeout_s: float) -> Iterator[None]:
    """TimeoutError after the time given; after twice the time, the end of the process."""
    with open("/dev/null", "w") as nowhere:  # noqa: PTH123 - faulthandler needs a file descriptor
        faulthandler.dump_traceback_later(2 * timeout_s, exit=True, file=nowhere)
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError
