"""Verdicts by pages kept and by template: edited copies found, different pages merged, and the work a page.

A crawl of different pages (`benchmarks.quality.assembled`) is decided first. Then come edited copies of its
first, middle and latest hundred pages, on the same host and on others. A mixed crawl of many hosts is
followed by the stream of the evaluation data, which is scored as usual, beside the pages kept before.

Pages are assembled and prepared in worker processes, some chunks ahead, while this process decides; the first
chunks of each crawl are cached.
"""

import multiprocessing
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from benchmarks.quality.assembled import Crawl, Library, library_of
from benchmarks.quality.corpora import Corpora
from benchmarks.quality.store import Store, digest_of_code, digest_of_modules
from benchmarks.quality.work import tracked
from benchmarks.quality.workspace import Workspace
from dedup_service.core.decision.decider import Decider
from dedup_service.core.evaluation.scoring import Evaluation, score_stream
from dedup_service.core.evaluation.share import Share
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.resources import build_fingerprinter

SIZES = (1_000, 10_000, 100_000)
SHARES = (0.0, 0.3, 0.6, 0.8)
AGES = ("first", "middle", "latest")
PLACES = ("same host", "other host", "no template")
COPIES = 100
"""Originals of each age that are copied to each place."""

STREAM_SHARE = 0.3
"""The template share of the mixed crawl before the stream."""

CHUNK, CACHED_CHUNKS = 1_000, 10
Arrays = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Work:
    """Of some pages: candidates, and pieces of evidence read, as int64[n]."""

    candidates: Arrays
    read: Arrays


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """Figures of one crawl.

    found: copies found, by age of the original and place of the copy; the verdict names the original, or
    another copy of it. merged: different pages called duplicates; undecided: those that a guard refused.
    work: of the latest tenth of the different pages. stream: the stream after the crawl, both halves.
    """

    crawl: Crawl
    size: int
    found: dict[tuple[str, str], Share]
    merged: Share
    undecided: int
    work: Work
    seconds: float
    stream: tuple[Evaluation, Evaluation] | None = None


class _Names:
    """Ids of the pages so far, which are their URLs."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def name(self, sequence: int) -> tuple[str, str]:
        found = self.ids[sequence - 1]
        return found, found


class Filter:
    """Decides prepared pages in order, and counts the work."""

    def __init__(self, rule: MatchRule, space_id: str) -> None:
        self._names = _Names()
        self._decider = Decider(rule, space_id, self._names)
        self.work: list[tuple[int, int]] = []

    def decide(self, prepared: PreparedPage) -> Verdict:
        """Return the verdict on the next page."""
        self._names.ids.append(prepared.page.id)
        candidates, read = self._work
        verdict = self._decider.decide(len(self._names.ids), prepared).verdict
        self.work.append((self._work[0] - candidates, self._work[1] - read))
        return verdict

    @property
    def _work(self) -> tuple[int, int]:
        """Candidates of all pages so far, and pieces of evidence read."""
        return self._decider._native.work()  # noqa: SLF001 - nobody else asks


@dataclass
class CrawlPreparer:
    """Assembles and prepares pages in worker processes; a context manager.

    workspace: whose data the pages are assembled from.
    """

    workspace: Workspace
    _stack: ExitStack = field(default_factory=ExitStack)
    _pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.workspace.processes > 1:
            context = multiprocessing.get_context("forkserver")
            self._pool = self._stack.enter_context(ProcessPoolExecutor(self.workspace.processes, mp_context=context))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pages(self, crawl: Crawl, size: int) -> Iterator[PreparedPage]:
        """Yield the first `size` pages of a crawl, prepared, without their texts."""
        for chunk in self._chunks(crawl, -(-size // CHUNK)):
            yield from chunk[:size]
            size -= len(chunk)

    def _chunks(self, crawl: Crawl, count: int) -> Iterator[list[PreparedPage]]:
        folders = (self.workspace.corpora.folder, self.workspace.store.folder)
        if self._pool is None:
            for number in range(count):
                yield _chunk(*folders, crawl, number)
            return
        waiting: deque[Future[list[PreparedPage]]] = deque()
        for number in range(count):
            waiting.append(self._pool.submit(_chunk, *folders, crawl, number))
            if len(waiting) > 3 * self.workspace.processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def stored_library(workspace: Workspace) -> Library:
    """Return the sentences and titles of the originals and unrelated pages of the stream, both halves."""
    return _library(workspace.corpora.folder, workspace.store.folder)[0]


@cache
def _library(data: Path, stored: Path) -> tuple[Library, Workspace]:
    workspace = Workspace(Corpora(data), Store(stored), 1)
    key = (workspace.data, digest_of_modules(["assembled"]))
    plain = (page for half in (0, 1) for page in workspace.corpora.plain(half))
    return workspace.store.get("library", key, lambda: library_of(plain)), workspace


def _chunk(data: Path, stored: Path, crawl: Crawl, number: int) -> list[PreparedPage]:
    """Return the pages of chunk `number` of a crawl, prepared; the first chunks are cached."""
    library, workspace = _library(data, stored)

    def make() -> list[PreparedPage]:
        fingerprinter = build_fingerprinter()
        numbers = range(number * CHUNK, (number + 1) * CHUNK)
        return [without_text(fingerprinter, crawl.page(library, page)) for page in numbers]

    if number >= CACHED_CHUNKS:
        return make()
    key = (workspace.data, crawl, number, digest_of_code(preparing=True), digest_of_modules(["assembled"]))
    return workspace.store.get("assembled", key, make)


def without_text(fingerprinter: Fingerprinter, page: Page) -> PreparedPage:
    """Return the page prepared, without its text, which no decision reads."""
    return replace(fingerprinter.prepare(page), page=replace(page, text=""))


def of_crawl(
    preparer: CrawlPreparer, crawl: Crawl, size: int, rule: MatchRule, *, with_stream: bool = False, label: str = ""
) -> ScaleRow:
    """Return the figures of one crawl of `size` pages."""
    begin = time.monotonic()
    workspace = preparer.workspace
    library = stored_library(workspace)
    fingerprinter = build_fingerprinter()
    decided = Filter(rule, fingerprinter.space_id)
    pages = preparer.pages(crawl, size)
    kinds = Counter(decided.decide(page).kind for page in tracked(pages, label or _label(crawl, size), size))
    latest = np.array(decided.work[-max(size // 10, 1) :], np.int64)
    found = {}
    for age, start in zip(AGES, (0, size // 2 - COPIES // 2, size - COPIES), strict=True):
        for where in PLACES:
            hits = 0
            for number in range(start, start + COPIES):
                copy = without_text(fingerprinter, crawl.copy(library, number, where=where))
                hits += _is_right(decided.decide(copy), number)
            found[age, where] = Share(hits, COPIES)
    return ScaleRow(
        crawl=crawl,
        size=size,
        found=found,
        merged=Share(kinds[VerdictKind.DUPLICATE], size),
        undecided=kinds[VerdictKind.UNDECIDED],
        work=Work(latest[:, 0], latest[:, 1]),
        seconds=time.monotonic() - begin,
        stream=_stream(decided, workspace) if with_stream else None,
    )


def _label(crawl: Crawl, size: int) -> str:
    return f"{crawl.name}, template {crawl.share:g}, {size:,} pages"


def _in_short(row: ScaleRow) -> str:
    found = " / ".join(str(row.found[age, "same host"].hits) for age in AGES)
    work = f"{row.work.candidates.mean():.1f} candidates and {row.work.read.mean():.2f} read a page"
    return f"{_label(row.crawl, row.size)}: {row.seconds:.0f} s; found {found}, merged {row.merged.hits:,}; {work}"


def _is_right(verdict: Verdict, number: int) -> bool:
    """Whether a verdict calls a copy of page `number` a duplicate of it, or of another copy of it."""
    named = verdict.duplicate_of_url or ""
    return verdict.kind is VerdictKind.DUPLICATE and named.endswith((f"/a/{number}", f"/copy/{number}"))


def _stream(decided: Filter, workspace: Workspace) -> tuple[Evaluation, Evaluation]:
    """Decide the stream after what was decided, and return its scores by half."""
    flags = {VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED}
    stream = workspace.prepared("stream")
    verdicts = [decided.decide(page) for page in tracked(stream, "the stream", len(stream))]
    named = {v.id: v.duplicate_of for v in verdicts if v.kind in flags and v.duplicate_of is not None}
    first, second = (score_stream(workspace.corpora.truth, named, half=half) for half in (0, 1))
    return first, second


def measured(
    workspace: Workspace, crawls: Iterable[tuple[Crawl, int]], rule: MatchRule, *, stream_from: int = 10_000
) -> list[ScaleRow]:
    """Return the figures of each crawl. stream_from: size from which the stream follows a mixed crawl."""
    rows = []
    with CrawlPreparer(workspace) as preparer:
        for crawl, size in crawls:
            followed = crawl.mixed and crawl.share == STREAM_SHARE and size >= stream_from
            rows.append(of_crawl(preparer, crawl, size, rule, with_stream=followed))
            print(f"  {_in_short(rows[-1])}", file=sys.stderr, flush=True)
    return rows


def crawls_of(sizes: Sequence[int], shares: Sequence[float]) -> list[tuple[Crawl, int]]:
    """Return the crawls of each size and template share, on one site and on many hosts."""
    return [(Crawl(share, mixed), size) for mixed in (False, True) for share in shares for size in sizes]


def compute(workspace: Workspace, sizes: Sequence[int] = SIZES) -> list[ScaleRow]:
    """Return the figures of all shares and of crawls of `sizes` pages, with the default profile."""
    return measured(workspace, crawls_of(sizes, SHARES), PROFILES[DEFAULT_PROFILE])
