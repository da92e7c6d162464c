"""Records into prepared pages, here or in worker processes: the part of a run that costs time.

Goal: JSON decoding, extraction, segmentation and fingerprints of a batch, wherever they happen.
How: `Preparer.submit` takes a batch and returns at once; the answers are asked for later, in order. Where a worker
dies, the records it held are tried again in a process of their own, in the end one by one, and the one that
kills is kept with that reason. (`runtime.workers` does the same for single fetched pages, with a time limit.)
Invariant: the answers are the same however many processes work, one for each record, in their order.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import cache
from types import TracebackType
from typing import Self

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.fingerprint import Fingerprint, PreparedPage
from dedup_service.core.page import Page
from dedup_service.runtime.extraction_cache import ExtractionCache
from dedup_service.runtime.readers import Record
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.worker_context import behave_as_worker, worker_context

__all__ = ["Answer", "BadRecord", "Preparer", "page_of", "prepare_records"]

CHUNK_RECORDS = 16
"""Records a task: at 0.3 to 10 ms a page the hand-over of a task (about 0.2 ms) stays in the noise."""

DEATH = "not judged: the worker process died over this page, twice"


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that describes no page, and why."""

    problem: str


Answer = PreparedPage | BadRecord


class Preparer:
    """Prepare batches for the space of `choice` in this process (`processes` = 1) or in so many others.

    depth: batches worth having in hand before the first answer is asked for.
    """

    def __init__(self, choice: SpaceOptions, processes: int = 1) -> None:
        self._choice = choice
        self._processes = processes
        self._pool = _pool(processes) if processes > 1 else None
        self.depth = 0 if self._pool is None else 3

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, records: Sequence[Record]) -> Callable[[], list[Answer]]:
        """Start on `records`; the callable returned gives their answers and waits for them."""
        if self._pool is None:
            answers = prepare_records(self._choice, records)
            return lambda: answers
        starts = range(0, len(records), CHUNK_RECORDS)
        chunks = [records[start : start + CHUNK_RECORDS] for start in starts]
        tasks = [(chunk, self._start(chunk)) for chunk in chunks]
        return lambda: [answer for chunk, future in tasks for answer in self._settle(chunk, future)]

    def _start(self, chunk: Sequence[Record]) -> Future[list[Answer]]:
        assert self._pool is not None
        try:
            return self._pool.submit(prepare_records, self._choice, chunk)
        except BrokenProcessPool:
            self._pool = _pool(self._processes)
            return self._pool.submit(prepare_records, self._choice, chunk)

    def _settle(self, chunk: Sequence[Record], future: Future[list[Answer]]) -> list[Answer]:
        try:
            return future.result()
        except BrokenProcessPool:
            return self._try_again(chunk)

    def _try_again(self, chunk: Sequence[Record]) -> list[Answer]:
        """The same in a process of its own, and where that dies too, record by record."""
        try:
            with _pool(1) as pool:
                return pool.submit(prepare_records, self._choice, chunk).result()
        except BrokenProcessPool:
            if len(chunk) == 1:
                return [_unjudged(chunk[0])]
            return [answer for record in chunk for answer in self._try_again([record])]


def prepare_records(choice: SpaceOptions, records: Sequence[Record]) -> list[Answer]:
    """Return the answer to each of `records`; the fingerprinter is built once a process."""
    fingerprinter = build_fingerprinter(choice)
    pages = (page_of(record) for record in records)
    return [page if isinstance(page, BadRecord) else fingerprinter.prepare(page) for page in pages]


def page_of(record: Record) -> Page | BadRecord:
    """Return the page that `record` describes, its HTML extracted, or why it describes none."""
    try:
        return record.page(_extract)
    except RecordError as error:
        return BadRecord(str(error))


def _unjudged(record: Record) -> Answer:
    """The page of a record that nobody could prepare: named, and kept."""
    try:
        page = record.page(lambda _html, _declared: Extraction(problem=DEATH))
    except RecordError as error:
        return BadRecord(str(error))
    page = replace(page, text="", problem=DEATH)
    return PreparedPage(page=page, fingerprint=Fingerprint(), body_hash=None, reason=DEATH)


@cache
def _memory() -> ExtractionCache:
    """One memory of extractions per process."""
    return ExtractionCache()


def _extract(html: bytes | str, declared_encoding: str | None) -> Extraction:
    return _memory().extract(html, declared_encoding=declared_encoding)


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, mp_context=worker_context(__name__), initializer=behave_as_worker)
