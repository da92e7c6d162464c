"""Prepare records as pages in workers: the part of a run that takes the time.

Goal: decode JSON, extract, segment and fingerprint the records of a batch.
How: `Preparer.submit` takes a batch and returns a future; `submit_ahead` keeps several batches in progress and yields
the answers in order. The workers are those of `runtime.workers.pool`. Its threads prepare short texts themselves, in
compiled loops that give up the interpreter lock: nothing is packed for another process (docs/adr/0028). HTML, and texts
so long that they need limits of time and memory, go to the processes: a page that kills its process, or takes too long
or too much memory, is `undecided` with that reason. There is at least one worker, because a process cannot end its own
work on a page and continue.
Invariant: there is one answer for each record, in the order of the records, whatever the number of workers.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cache, partial
from types import TracebackType
from typing import Self, TypeVar

from dedup_service.core.errors import RecordError, TwinsieveError
from dedup_service.core.extraction import Extraction, warm_up
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.runtime.readers.record import Record
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.extraction_cache import ExtractionCache
from dedup_service.runtime.workers.page_limits import PAGE_MEMORY_MB, PAGE_TIMEOUT_S
from dedup_service.runtime.workers.pool import TOO_LARGE, Light, Pool, PoolState
from dedup_service.runtime.workers.worker_process import Job, Unfinished

T = TypeVar("T")
R = TypeVar("R")

CHUNK_RECORDS = 32
"""Records of a task. Handing a task over may wait 5 ms for the interpreter lock of a busy owner; 32 records are 10 to
300 ms of work."""

TEXTS_TOGETHER = 256
"""Texts that a thread takes at once, at most: some 15 ms of work, most of it without the interpreter lock."""

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
    """Prepare batches for the space of `choice` in `processes` workers: threads, each with a process if needed.

    timeout_s, memory_mb: processor time that a page may use, and MiB of memory beyond what its worker has.
    keep_text: False leaves the main text out of the answers, for callers that do not need it.
    chunk: maximum number of records that a worker gets at once.
    threads: False gives short texts to the processes, too: for owners that are busy themselves in several threads.
    inline: True works in this process instead, where nothing limits a page: for texts that the caller knows.
    depth: number of batches to keep in progress, for `submit_ahead`.
    """

    def __init__(
        self,
        choice: SpaceOptions,
        processes: int = 1,
        *,
        timeout_s: float = PAGE_TIMEOUT_S,
        memory_mb: int = PAGE_MEMORY_MB,
        inline: bool = False,
        keep_text: bool = True,
        chunk: int = CHUNK_RECORDS,
        threads: bool = True,
    ) -> None:
        self._read = partial(read_record, choice, keep_text=keep_text)
        self._finish = partial(finish_records, choice, keep_text=keep_text)
        self._pool: Pool[Record, Answer] | None = None
        self.depth = 0
        if not inline:
            ready, preload = partial(get_ready, choice), preload_for(choice)
            job = Job(self._read, ready, timeout_s, memory_mb, preload=preload, finish=self._finish)
            texts: Light[Record, Answer] = Light(
                partial(prepare_texts, choice, keep_text=keep_text), partial(_load, choice), TEXTS_TOGETHER
            )
            self._pool = Pool(job, processes, lost=_unjudged, light=texts if threads else None, chunk=chunk, ahead=True)
            self.depth = 3

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(None if kind is None else 0.0)  # after an error, nobody takes the answers

    def close(self, timeout_s: float | None = None) -> None:
        """Stop the workers after the items they have; batches that still wait end with WorkersError.

        timeout_s: after which workers that are not done are killed; None waits for them.
        """
        if self._pool is not None:
            self._pool.close(timeout_s)

    def pool_state(self) -> PoolState | None:
        """Return the state of the workers; None if the caller's thread does the work."""
        return None if self._pool is None else self._pool.state()

    def submit(self, records: Sequence[Record]) -> Future[list[Answer]]:
        """Start on `records`; the future gives their answers in order, or an error that no record caused."""
        if self._pool is not None:
            return self._pool.submit(records)
        done: Future[list[Answer]] = Future()
        done.set_running_or_notify_cancel()
        answers = [self._read(record) for record in records]
        finished = iter(self._finish([answer.rest for answer in answers if isinstance(answer, Unfinished)]))
        done.set_result([next(finished) if isinstance(answer, Unfinished) else answer for answer in answers])
        return done

    def page_of(self, record: Record) -> Page | BadRecord:
        """Return the page that `record` describes, extracted from its HTML, or why it describes none."""
        (answer,) = self.submit([record]).result()
        return answer if isinstance(answer, BadRecord) else answer.page


def submit_ahead(
    submit: Callable[[T], Future[R]],
    items: Iterable[T],
    depth: int,
    *,
    drain: Callable[[T], bool] = lambda _item: False,
) -> Iterator[tuple[T, R]]:
    """Yield (item, result) in the order of `items`, with up to `depth` further items submitted ahead.

    drain: called with the latest item; True yields the results of all submitted items before the next item is taken.
    Raises the exception of the first future that has one.
    """
    pending: deque[tuple[T, Future[R]]] = deque()
    for latest in items:
        pending.append((latest, submit(latest)))
        while pending and (len(pending) > depth or drain(latest)):
            item, future = pending.popleft()
            yield item, future.result()
    while pending:
        item, future = pending.popleft()
        yield item, future.result()


def prepare_record(choice: SpaceOptions, record: Record, *, keep_text: bool = True) -> Answer:
    """Return the answer to `record`, with or without its main text. The fingerprinter is built once per process."""
    answer = read_record(choice, record, keep_text=keep_text)
    return finish_records(choice, [answer.rest], keep_text=keep_text)[0] if isinstance(answer, Unfinished) else answer


def read_record(choice: SpaceOptions, record: Record, *, keep_text: bool = True) -> Answer | Unfinished:
    """Return the answer to `record`; unfinished is a page whose text is so short that it is prepared with others."""

    def attempt() -> Answer | Unfinished:
        page = page_in(record)
        if isinstance(page, BadRecord):
            return page
        if _is_short(page):
            return Unfinished((record, page))
        return _without_text([build_fingerprinter(choice).prepare(page)], keep_text)[0]

    return _twice(record, attempt)


def _is_short(page: Page) -> bool:
    """Whether all that is folded of a page, its lists of metadata included, is short."""
    lists = page.keywords, page.tags, page.references
    size = len(page.title) + len(page.text) + sum(map(len, lists))
    return size <= MAX_CHARS_TOGETHER and size + sum(len(one) for some in lists for one in some) <= MAX_CHARS_TOGETHER


def finish_records(
    choice: SpaceOptions, read: Sequence[tuple[Record, Page]], *, keep_text: bool = True
) -> list[Answer]:
    """Return the answers to records whose pages were read. If it fails, each page is tried alone."""
    fingerprinter = build_fingerprinter(choice)

    def prepared(pages: Sequence[Page]) -> list[Answer]:
        return _without_text(fingerprinter.prepare_all(pages), keep_text)

    try:
        return prepared([page for _, page in read])
    except TwinsieveError:
        raise
    except Exception:
        return [_twice(record, lambda page=page: prepared([page])[0]) for record, page in read]  # type: ignore[misc]


def prepare_texts(choice: SpaceOptions, records: Sequence[Record], *, keep_text: bool = True) -> list[Answer | None]:
    """Return the answers to the records that are short texts, None for the others, which need limits."""
    read = [_short_page(record) for record in records]
    pages = [(record, page) for record, page in zip(records, read, strict=True) if isinstance(page, Page)]
    made = iter(finish_records(choice, pages, keep_text=keep_text))
    return [next(made) if isinstance(page, Page) else page for page in read]


def _short_page(record: Record) -> Page | BadRecord | None:
    """Return the page of a record that is a short text, or why it is none; None for any other record."""
    try:
        page = record.text_page()
    except RecordError as error:
        return BadRecord(str(error))
    except Exception:  # a worker will say what is wrong with it
        return None
    return page if page is not None and _is_short(page) else None


def _without_text(pages: Sequence[PreparedPage], keep_text: bool) -> list[Answer]:
    return list(pages) if keep_text else [replace(page, page=replace(page.page, text="")) for page in pages]


def _twice(record: Record, attempt: Callable[[], T]) -> T | Answer:
    try:
        return attempt()
    except TwinsieveError:
        raise
    except Exception:  # a second attempt tells a page that fails from a moment that failed
        try:
            return attempt()
        except TwinsieveError:
            raise
        except Exception as error:  # one page must neither stop the stream nor be retried indefinitely
            return _unjudged(record, reason_of(error))


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
        return record.page(_extract)
    except RecordError as error:
        return BadRecord(str(error))


def get_ready(choice: SpaceOptions | None) -> None:
    """Load and compile in a worker what the first page would wait for. ConfigurationError if a table is wrong."""
    warm_up()
    _load(choice)


_LOADING = threading.Lock()
"""What is loaded once for all threads would be loaded by each, if they began together."""


def _load(choice: SpaceOptions | None) -> None:
    """Load and compile what a text needs."""
    address = "https://a.example/"
    with _LOADING:
        build_fingerprinter(choice).prepare(Page(url=address, canonical_url=address, id="", text="A page, 一个网页。"))


def preload_for(choice: SpaceOptions | None) -> tuple[str, ...]:
    """Return the modules that the fork server imports; with those of the usual space, workers are ready at once."""
    usual = choice is None or choice == SpaceOptions()
    return (f"{__package__}.preloaded",) if usual else (__name__,)


def _unjudged(record: Record, why: str) -> Answer:
    """The page of a record that could not be prepared: it is `undecided`, with the reason."""
    reason = UNJUDGED + why
    try:
        page = record.unread()  # in the process of the pool nothing limits what is read
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


def _extract(html: bytes | str, declared_encoding: str | None) -> Extraction:
    return _extractions().extract(html, declared_encoding=declared_encoding)
