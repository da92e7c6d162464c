"""Records into prepared pages, here or in worker processes: the part of a run that costs time.

Goal: JSON decoding, extraction, segmentation and fingerprints of a batch, wherever they happen.
How: `Preparer.submit` takes a batch and returns at once; the answer is asked for later, in order.
Invariant: the answers are the same however many processes work, one for each record, in their order.
"""

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction, extract
from dedup_service.core.fingerprint import PreparedPage
from dedup_service.core.page import Page
from dedup_service.runtime.readers import Record
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

__all__ = ["Answer", "BadRecord", "Preparer", "page_of", "prepare_records"]

CHUNK_RECORDS = 16
"""Records a task: at 0.3 to 10 ms a page the hand-over of a task (about 0.2 ms) stays in the noise."""


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
        futures = [self._pool.submit(prepare_records, self._choice, chunk) for chunk in chunks]
        return lambda: [answer for future in futures for answer in future.result()]


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


def _extract(html: bytes | str, declared_encoding: str | None) -> Extraction:
    return extract(html, declared_encoding=declared_encoding)


def _pool(processes: int) -> ProcessPoolExecutor:
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_leave_signals_to_parent)


def _leave_signals_to_parent() -> None:
    """Ctrl-C reaches the whole process group, but the batch in hand is to be finished."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
