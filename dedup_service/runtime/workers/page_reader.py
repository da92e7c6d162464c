"""Read records as pages once more, for explanations and rechecks: in a worker process, under the limits of a page.

How: the process is that of a `runtime.workers.pool` of one, which is started when the first page is asked for. It
extracts and makes no fingerprint. A page that kills the worker, or takes too long or too much memory, has a problem
instead of a text.
Invariant: nothing that a stranger published is extracted in the process that asks.
"""

from dedup_service.core.errors import TwinsieveError
from dedup_service.core.extraction import warm_up
from dedup_service.core.page import Page
from dedup_service.runtime.readers.record import Record
from dedup_service.runtime.workers.page_limits import PAGE_MEMORY_MB, PAGE_TIMEOUT_S
from dedup_service.runtime.workers.pool import Pool
from dedup_service.runtime.workers.preparation import UNJUDGED, BadRecord, page_in, reason_of
from dedup_service.runtime.workers.worker_process import Job

ReadPage = Page | BadRecord


class PageReader:
    """One worker process that reads pages; it starts with the first one. Thread-safe.

    timeout_s: processor time that a page may use.
    """

    def __init__(self, *, timeout_s: float = PAGE_TIMEOUT_S) -> None:
        job: Job[Record, ReadPage] = Job(_read, warm_up, timeout_s, PAGE_MEMORY_MB, preload=(__name__,))
        self._pool: Pool[Record, ReadPage] = Pool(job, 1, lost=_lost)

    def page_of(self, record: Record) -> ReadPage:
        """Return the page that `record` describes, extracted from its HTML, or why it has none.

        Waits for the pages that other threads ask for. WorkersError once it is closed, also for pages in progress.
        """
        return self._pool.submit([record]).result()[0]

    def close(self) -> None:
        """Kill the worker, whatever it is doing. May be called twice, and from any thread."""
        self._pool.close(0.0)


def _read(record: Record) -> ReadPage:
    try:
        return page_in(record)
    except (TwinsieveError, MemoryError):
        raise
    except Exception as error:  # one that cannot be read has no text
        return BadRecord(reason_of(error))


def _lost(_record: Record, why: str) -> ReadPage:
    return BadRecord(UNJUDGED + why)
