"""Records into prepared pages, here or in worker processes: the part of a run that costs time.

Goal: JSON decoding, extraction, segmentation and fingerprints of a batch, wherever they happen.
How: `Preparer.submit` takes a batch and returns at once; the answers are asked for later, in order. The processes are
those of `runtime.workers.pool`: a page that ends its worker or takes too long is kept with that reason.
Invariant: the answers are the same however many processes work, one for each record, in their order.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cache, partial
from types import TracebackType
from typing import Self

from dedup_service.core.errors import RecordError, TwinsieveError
from dedup_service.core.extraction import Extraction, warm_up
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.runtime.readers import Record
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.extraction_cache import ExtractionCache
from dedup_service.runtime.workers.pool import Pool, PoolState
from dedup_service.runtime.workers.worker_process import Job

__all__ = ["Answer", "BadRecord", "Preparer", "get_ready", "page_of", "prepare_record"]

CHUNK_RECORDS = 32
"""Records a task: the hand-over waits for the interpreter lock of a busy owner, 5 ms at worst, and 10 to 300 ms of work
is ahead of it."""

UNJUDGED = "not judged: "


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that describes no page, and why."""

    problem: str


Answer = PreparedPage | BadRecord


class Preparer:
    """Prepare batches for the space of `choice` in this process (`processes` = 1) or in so many others.

    timeout_s: processor time that a page may use in a worker; in this process nothing can stop it.
    keep_text: False leaves the main text out of the answers, for callers that have no use for it.
    chunk: records that a worker gets at once, at most.
    inline: False has a single worker process work, too. depth: batches worth having in hand before the first
    answer is asked for.
    """

    def __init__(
        self,
        choice: SpaceOptions,
        processes: int = 1,
        *,
        timeout_s: float = 30.0,
        inline: bool | None = None,
        keep_text: bool = True,
        chunk: int = CHUNK_RECORDS,
    ) -> None:
        self._prepare = partial(prepare_record, choice, keep_text=keep_text)
        self._pool: Pool[Record, Answer] | None = None
        self.depth = 0
        if processes > 1 or inline is False:
            job = Job(self._prepare, partial(get_ready, choice), timeout_s, preload=(__name__,))
            self._pool = Pool(job, processes, lost=_unjudged, chunk=chunk, ahead=True)
            self.depth = 3

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers after what they hold; batches that still wait end with WorkersError."""
        if self._pool is not None:
            self._pool.close()

    def pool_state(self) -> PoolState | None:
        """Return how the processes stand, None where this one does the work."""
        return None if self._pool is None else self._pool.state()

    def submit(self, records: Sequence[Record]) -> Future[list[Answer]]:
        """Start on `records`; the future gives their answers in order, or the error that no record is to blame for."""
        if self._pool is not None:
            return self._pool.submit(records)
        done: Future[list[Answer]] = Future()
        done.set_running_or_notify_cancel()
        done.set_result([self._prepare(record) for record in records])
        return done


def prepare_record(choice: SpaceOptions, record: Record, *, keep_text: bool = True) -> Answer:
    """Return the answer to `record`, with its main text or without; the fingerprinter is built once a process."""
    fingerprinter = build_fingerprinter(choice)
    try:
        page = page_of(record)
        if isinstance(page, BadRecord):
            return page
        prepared = fingerprinter.prepare(page)
        return prepared if keep_text else replace(prepared, page=replace(page, text=""))
    except TwinsieveError:
        raise
    except Exception as error:  # one strange page must neither stop a stream nor come back for ever
        return _unjudged(record, f"{type(error).__name__}: {error}")


def page_of(record: Record) -> Page | BadRecord:
    """Return the page that `record` describes, its HTML extracted, or why it describes none."""
    try:
        return record.page(_extract)
    except RecordError as error:
        return BadRecord(str(error))


def get_ready(choice: SpaceOptions | None) -> None:
    """In a worker: load and compile what the first page would wait for. ConfigurationError where that is wrong."""
    warm_up()
    address = "https://a.example/"
    build_fingerprinter(choice).prepare(Page(url=address, canonical_url=address, id="", text="A page, 一个网页。"))


def _unjudged(record: Record, why: str) -> Answer:
    """The page of a record that nobody could prepare: named, and kept."""
    reason = UNJUDGED + why
    try:
        page = record.page(lambda _html, _declared: Extraction(problem=reason))
    except RecordError as error:
        return BadRecord(str(error))
    page = replace(page, text="", problem=reason)
    return PreparedPage(page=page, fingerprint=Fingerprint(), body_hash=None, reason=reason)


@cache
def _memory() -> ExtractionCache:
    """One memory of extractions per process."""
    return ExtractionCache()


def _extract(html: bytes | str, declared_encoding: str | None) -> Extraction:
    return _memory().extract(html, declared_encoding=declared_encoding)
