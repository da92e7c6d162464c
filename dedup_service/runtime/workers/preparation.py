"""Prepare records as pages: the part of a run that takes the time.

Goal: decode JSON, extract, segment and fingerprint the records of a batch.
How: `Preparer.submit` takes a batch and returns a future at once; `submit_ahead` keeps several batches in progress and
yields the answers in order. A thread takes one batch after the other. It sends HTML, and texts so long that they need
limits of time and memory, to worker processes (`runtime.workers.pool`): a page that kills its process, or takes too
long or too much memory, is `undecided` with that reason. The short texts it prepares together, in native threads and
without the interpreter lock, so nothing is packed for another process (docs/adr/0037).
Invariant: there is one answer for each record, in the order of the records, whatever the number of workers.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from types import TracebackType
from typing import Self, TypeVar

from dedup_service.core.errors import InternalError, RecordError, TwinsieveError
from dedup_service.core.extraction import Extraction, warm_up
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.runtime.readers.record import Record
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.extraction_cache import ExtractionCache
from dedup_service.runtime.workers.page_limits import PAGE_MEMORY_MB, PAGE_TIMEOUT_S
from dedup_service.runtime.workers.pool import TOO_LARGE, Pool, PoolState
from dedup_service.runtime.workers.worker_process import Job, WorkersError

T = TypeVar("T")
R = TypeVar("R")

BATCHES_AHEAD = 3
"""Batches that `submit_ahead` keeps in progress: enough for the workers while the owner decides one."""

CHUNK_RECORDS = 32
"""Records of a task. Handing a task over may wait 5 ms for the interpreter lock of a busy owner; 32 records are 10 to
300 ms of work."""

MAX_CHARS_TOGETHER = 1 << 14
"""Characters of a page that is prepared together with others, without a time limit of its own: some milliseconds. Those
of its lists of metadata count, and each member as one more."""

UNJUDGED = "not judged: "
"""How the reason of a page begins over which a worker died, ran out of a limit, or failed twice."""

MAX_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that describes no page, and why."""

    problem: str


Answer = PreparedPage | BadRecord


class Preparer:
    """Prepare batches for the space of `choice`: short texts here, all else in worker processes. Thread-safe.

    processes: number of worker processes, which start with the first record that needs one, and of native threads.
    timeout_s, memory_mb: processor time that a page may use in a process, and MiB of memory beyond what that has.
    keep_text: False leaves the main text out of the answers, for callers that do not need it.
    chunk: maximum number of records that a process gets at once.
    """

    def __init__(
        self,
        choice: SpaceOptions,
        processes: int = 1,
        *,
        timeout_s: float = PAGE_TIMEOUT_S,
        memory_mb: int = PAGE_MEMORY_MB,
        keep_text: bool = True,
        chunk: int = CHUNK_RECORDS,
    ) -> None:
        work, ready = partial(prepare_record, choice, keep_text=keep_text), partial(get_ready, choice)
        job = Job(work, ready, timeout_s, memory_mb, preload=preload_for(choice))
        self._pool: Pool[Record, Answer] = Pool(job, processes, lost=_unjudged, chunk=chunk, ahead=True)
        self._prepare = partial(prepare_texts, choice, threads=processes, keep_text=keep_text)
        self._lock = threading.Lock()
        self._closed = False
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "twinsieve-preparer")
        self._thread.submit(build_fingerprinter, choice)  # what it raises, the first text will, too

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(None if kind is None else 0.0)  # after an error, nobody takes the answers

    def close(self, timeout_s: float | None = None) -> None:
        """Stop after the batch of the thread and the items of the workers; what waits ends with WorkersError.

        timeout_s: after which workers that are not done are killed; None waits for them.
        """
        with self._lock:
            self._closed = True
        self._thread.shutdown()
        self._pool.close(timeout_s)

    def pool_state(self) -> PoolState:
        """Return the state of the worker processes; records that the thread has not taken wait, too."""
        state = self._pool.state()
        return replace(state, waiting=state.waiting + self._waiting)

    def submit(self, records: Sequence[Record]) -> Future[list[Answer]]:
        """Start on `records`; the future gives their answers in order, or an error that no record caused."""
        answers: Future[list[Answer]] = Future()
        answers.set_running_or_notify_cancel()
        with self._lock:
            if self._closed:
                raise _closed_error()
            self._waiting += len(records)
            self._thread.submit(self._start, records, answers)
        return answers

    def _start(self, records: Sequence[Record], answers: Future[list[Answer]]) -> None:
        """Send the processes what is theirs, and prepare the rest; run by the thread."""
        with self._lock:
            self._waiting -= len(records)
        if self._closed:
            answers.set_exception(_closed_error())
            return
        try:
            pages = [short_page(record) for record in records]
            others = self._pool.submit([record for record, page in zip(records, pages, strict=True) if page is None])
            texts = [(record, page) for record, page in zip(records, pages, strict=True) if isinstance(page, Page)]
            prepared = iter(self._prepare(texts))
            here = [next(prepared) if isinstance(page, Page) else page for page in pages]
        except BaseException as error:  # whatever it is, nobody waits for the future for good
            answers.set_exception(error)
        else:
            others.add_done_callback(lambda done: _join(here, done, answers))

    def page_of(self, record: Record) -> Page | BadRecord:
        """Return the page that `record` describes, extracted from its HTML, or why it describes none."""
        (answer,) = self.submit([record]).result()
        return answer if isinstance(answer, BadRecord) else answer.page


def _join(here: Sequence[Answer | None], others: Future[list[Answer]], answers: Future[list[Answer]]) -> None:
    """Complete `answers`: those of the processes are in the places without one."""
    if (error := others.exception()) is not None:
        answers.set_exception(error)
        return
    given = iter(others.result())
    answers.set_result([next(given) if answer is None else answer for answer in here])


def _closed_error() -> WorkersError:
    return WorkersError("the workers are closed: start new ones")


def submit_ahead(
    submit: Callable[[T], Future[R]],
    items: Iterable[T],
    *,
    drain: Callable[[T], bool] = lambda _item: False,
) -> Iterator[tuple[T, R]]:
    """Yield (item, result) in the order of `items`, with further items submitted ahead.

    drain: called with the latest item; True yields the results of all submitted items before the next item is taken.
    Raises the exception of the first future that has one.
    """
    pending: deque[tuple[T, Future[R]]] = deque()
    for latest in items:
        pending.append((latest, submit(latest)))
        while pending and (len(pending) > BATCHES_AHEAD or drain(latest)):
            item, future = pending.popleft()
            yield item, future.result()
    while pending:
        item, future = pending.popleft()
        yield item, future.result()


def prepare_record(choice: SpaceOptions, record: Record, *, keep_text: bool = True) -> Answer:
    """Return the answer to `record`, with or without its main text. The fingerprinter is built once per process."""

    def attempt() -> Answer:
        page = page_in(record)
        if isinstance(page, BadRecord):
            return page
        return _without_text([build_fingerprinter(choice).prepare(page)], keep_text)[0]

    return twice(attempt, partial(_unjudged, record))


def prepare_texts(
    choice: SpaceOptions, texts: Sequence[tuple[Record, Page]], *, threads: int = 1, keep_text: bool = True
) -> list[Answer]:
    """Return the answers to records that are short texts. If it fails, each page is tried alone."""
    fingerprinter = build_fingerprinter(choice)
    try:
        return _without_text(fingerprinter.prepare_all([page for _, page in texts], threads=threads), keep_text)
    except Exception as error:
        if not _may_be_of_page(error):
            raise
    return [
        twice(lambda page=page: _without_text([fingerprinter.prepare(page)], keep_text)[0], partial(_unjudged, record))  # type: ignore[misc]
        for record, page in texts
    ]


def short_page(record: Record) -> Page | BadRecord | None:
    """Return the page of a record that is a short text, or why it is none; None for any other record."""
    try:
        page = record.text_page()
    except RecordError as error:
        return BadRecord(str(error))
    except Exception:  # a worker will say what is wrong with it
        return None
    return page if page is not None and _is_short(page) else None


def _is_short(page: Page) -> bool:
    """Whether all that is folded of a page, its lists of metadata included, is short."""
    lists = page.keywords, page.tags, page.references
    size = len(page.title) + len(page.text) + sum(map(len, lists))
    return size <= MAX_CHARS_TOGETHER and size + sum(len(one) for some in lists for one in some) <= MAX_CHARS_TOGETHER


def _without_text(pages: Sequence[PreparedPage], keep_text: bool) -> list[Answer]:
    return list(pages) if keep_text else [replace(page, page=replace(page.page, text="")) for page in pages]


def twice(attempt: Callable[[], T], failed: Callable[[str], T]) -> T:
    """Return the result of `attempt`, or what `failed` makes of the reason for which it failed twice.

    One page must neither stop the stream nor be retried indefinitely; a second attempt tells a page that fails from a
    moment that failed. Raises an error that no page caused, a ConfigurationError for example.
    """
    reason = ""
    for _ in range(2):
        try:
            return attempt()
        except Exception as error:
            if not _may_be_of_page(error):
                raise
            reason = reason_of(error)
    return failed(reason)


def _may_be_of_page(error: Exception) -> bool:
    """Whether another page may do without the error; a fault of the native core is one over this page."""
    return isinstance(error, InternalError) or not isinstance(error, TwinsieveError)


def reason_of(error: Exception) -> str:
    """Return what a verdict says of an error that a page caused twice.

    >>> reason_of(ValueError("no such  colour")), reason_of(MemoryError())
    ('ValueError: no such colour', 'MemoryError: needs more memory than a page may use')
    """
    text = TOO_LARGE if isinstance(error, MemoryError) else str(error)
    return f"{type(error).__name__}: {' '.join(text.split())[:MAX_REASON_CHARS]}"


def page_in(record: Record) -> Page | BadRecord:
    """Return the page that `record` describes, extracted from its HTML, or why it describes none."""
    try:
        return record.page(extract_cached)
    except RecordError as error:
        return BadRecord(str(error))


def get_ready(choice: SpaceOptions | None) -> None:
    """Load in a worker what the first page would wait for. ConfigurationError if a table is wrong."""
    warm_up()
    build_fingerprinter(choice)


def preload_for(choice: SpaceOptions | None) -> tuple[str, ...]:
    """Return the modules that the fork server imports; with those of the usual space, workers are ready at once."""
    usual = choice is None or choice == SpaceOptions()
    return (f"{__package__}.preloaded",) if usual else (__name__,)


def _unjudged(record: Record, why: str) -> Answer:
    """The page of a record that could not be prepared: it is `undecided`, with the reason."""
    reason = UNJUDGED + why
    try:
        page = record.unread()  # in this process nothing limits what is read
    except RecordError as error:
        return BadRecord(str(error))
    except Exception as error:  # without an address, it is no page
        return BadRecord(reason_of(error))
    page = replace(page, text="", problem=reason)
    return PreparedPage(page=page, fingerprint=Fingerprint(), body_hash=None, reason=reason)


@cache
def _extractions() -> ExtractionCache:
    """One cache of extractions per process."""
    return ExtractionCache()


def extract_cached(html: bytes | str, declared_encoding: str | None) -> Extraction:
    """Extract the main text of a body; that of equal bodies is extracted once per process."""
    return _extractions().extract(html, declared_encoding=declared_encoding)
