"""Verdicts by pages kept and by template: edited copies found, different pages merged, and the work a page.

    python -m benchmarks.quality.at_scale DIR [--sizes 1000,10000] [--shares 0,.3,.6,.8]

A crawl of different pages (`benchmarks.quality.assembled`) is decided first. Then come edited copies of its
first, middle and latest hundred pages, on the same host and on others. A mixed crawl of many hosts is
followed by the stream of the evaluation data, which is scored as usual, beside the pages kept before.

Pages are assembled and prepared in worker processes, some chunks ahead, while this process decides; the first
chunks of each crawl are cached.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from benchmarks.quality.assembled import Crawl, Library, Overlap, chance_overlap, library_of
from benchmarks.quality.corpora import Corpora
from benchmarks.quality.numbers import counted, figure, table
from benchmarks.quality.store import Store, digest_of_code, digest_of_modules
from benchmarks.quality.work import lower_priority, tracked
from benchmarks.quality.workspace import Workspace
from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.evaluation.scoring import Evaluation, Share, score_stream
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.resources import build_fingerprinter

__all__ = [
    "AGES",
    "MILLION",
    "PLACES",
    "SHARES",
    "SIZES",
    "Filter",
    "Preparer",
    "Scale",
    "ScaleRow",
    "Work",
    "compute",
    "million",
    "of_crawl",
]

SIZES = (1_000, 10_000, 100_000)
SHARES = (0.0, 0.3, 0.6, 0.8)
MILLION = 1_000_000
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


@dataclass(frozen=True, slots=True)
class Scale:
    """Figures of all crawls, and the similarity of sampled pages to the nearest of as many, by size."""

    rows: list[ScaleRow]
    overlap: dict[int, Overlap]


class _Counted:
    """Candidates that count what each page was compared with."""

    def __init__(self, inner: LocalCandidates) -> None:
        self._inner = inner
        self.found, self.read = 0, 0

    def find(self, *arguments: Any) -> list[int]:
        found: list[int] = self._inner.find(*arguments)
        self.found = getattr(self._inner, "last_candidates", len(found))
        self.read = getattr(self._inner, "last_read", len(found))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


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
        self._counted: Any = _Counted(LocalCandidates(rule, EntryRows.none()))
        self._decider = Decider(rule, space_id, self._names, candidates=self._counted)
        self.work: list[tuple[int, int]] = []

    def decide(self, prepared: PreparedPage) -> Verdict:
        """Return the verdict on the next page."""
        self._names.ids.append(prepared.page.id)
        self._counted.found = self._counted.read = 0
        verdict = self._decider.decide(len(self._names.ids), prepared).verdict
        self.work.append((self._counted.found, self._counted.read))
        return verdict


@dataclass
class Preparer:
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
        return [_prepared(fingerprinter, crawl.page(library, page)) for page in numbers]

    if number >= CACHED_CHUNKS:
        return make()
    key = (workspace.data, crawl, number, digest_of_code(preparing=True), digest_of_modules(["assembled"]))
    return workspace.store.get("assembled", key, make)


def _prepared(fingerprinter: Fingerprinter, page: Page) -> PreparedPage:
    return replace(fingerprinter.prepare(page), page=replace(page, text=""))


def of_crawl(
    preparer: Preparer, crawl: Crawl, size: int, rule: MatchRule, *, with_stream: bool = False, label: str = ""
) -> ScaleRow:
    """Return the figures of one crawl of `size` pages."""
    begin = time.monotonic()
    workspace = preparer.workspace
    library, _ = _library(workspace.corpora.folder, workspace.store.folder)
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
                copy = _prepared(fingerprinter, crawl.copy(library, number, where=where))
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
    with Preparer(workspace) as preparer:
        for crawl, size in crawls:
            followed = crawl.mixed and crawl.share == STREAM_SHARE and size >= stream_from
            rows.append(of_crawl(preparer, crawl, size, rule, with_stream=followed))
            print(f"  {_label(crawl, size)}: {rows[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    return rows


def _crawls(sizes: Sequence[int], shares: Sequence[float]) -> list[tuple[Crawl, int]]:
    return [(Crawl(share, mixed), size) for mixed in (False, True) for share in shares for size in sizes]


def compute(workspace: Workspace) -> Scale:
    """Return the figures of all shares and sizes up to 100,000 pages, with the default profile."""
    rows = measured(workspace, _crawls(SIZES, SHARES), PROFILES[DEFAULT_PROFILE])
    library, _ = _library(workspace.corpora.folder, workspace.store.folder)
    return Scale(rows, {size: _overlap(library, size) for size in (*SIZES, MILLION)})


def million(workspace: Workspace) -> list[ScaleRow]:
    """Return the figures of a million pages: one site at a template of .6, and many hosts, then the stream."""
    crawls = [(Crawl(0.6), MILLION), (Crawl(STREAM_SHARE, mixed=True), MILLION)]
    return measured(workspace, crawls, PROFILES[DEFAULT_PROFILE])


def _overlap(library: Library, size: int) -> Overlap:
    return chance_overlap(library, size, range(0, size, size // 200))


def copies_table(rows: Iterable[ScaleRow]) -> str:
    """Return the copies found, and the different pages called duplicates."""
    lines = []
    for row in rows:
        cells = [" / ".join(str(row.found[age, where].hits) for age in AGES) for where in PLACES]
        merged = f"{row.merged.hits:,} ({100 * row.merged.value:.2f}%)"
        refused = f"{row.undecided:,}"
        lines.append([row.crawl.name, f"{row.crawl.share:g}", f"{row.size:,}", *cells, merged, refused])
    places = [f"found of 100, {where}" for where in PLACES]
    return table(["crawl", "template", "pages", *places, "different pages merged", "refused by guards"], lines)


def work_table(rows: Iterable[ScaleRow]) -> str:
    """Return the candidates, and the pieces of evidence read, of the latest tenth of the pages."""
    lines = []
    for row in rows:
        cells = [_spread(values) for values in (row.work.candidates, row.work.read)]
        lines.append([row.crawl.name, f"{row.crawl.share:g}", f"{row.size:,}", *cells])
    unit = "p50 / p99 / most / mean"
    return table(["crawl", "template", "pages", f"candidates: {unit}", f"evidence read: {unit}"], lines)


def _spread(values: Arrays) -> str:
    p50, p99 = np.percentile(values, (50, 99))
    return f"{p50:.0f} / {p99:.0f} / {values.max():,} / {values.mean():.2f}"


KINDS = ("unrelated", "hardneg_topic", "hardneg_xwlb", "hardneg_law", "hardneg_list")


def stream_table(rows: Iterable[ScaleRow]) -> str:
    """Return the scores of the stream by pages kept before it, of half 1."""
    lines = []
    for row in rows:
        if row.stream is not None:
            found = row.stream[1]
            values = map(figure, (found.precision, found.recall))
            strengths = " / ".join(figure(found.recall_by[f"strength {name}"].value) for name in ("S1", "S2", "S3"))
            drops = " / ".join(counted(found.drops_by.get(kind)) for kind in KINDS)
            lines.append([f"{row.size:,}", *values, strengths, drops])
    drops = "false drops: unrelated / topic / daily news / laws / lists"
    return table(["pages before the stream", "P", "R", "S1 / S2 / S3", drops], lines)


def overlap_table(found: dict[int, Overlap]) -> str:
    """Return how alike a page is to the nearest other page, by pages."""
    lines = []
    for size, overlap in found.items():
        p50, p99 = np.percentile(overlap.nearest, (50, 99))
        cells = (figure(value) for value in (p50, p99, overlap.nearest.max()))
        lines.append([f"{size:,}", f"{np.median(overlap.sharing):.0f}", *cells])
    headings = ["pages", "pages that share half a sentence, median", "nearest page: Jaccard, p50", "p99", "most"]
    return table(headings, lines)


def main() -> None:
    """Measure the sizes and shares that the command line names, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.at_scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the evaluation data")
    parser.add_argument("--sizes", default="1000,10000", metavar="N,N", help="pages (default: 1000,10000)")
    parser.add_argument("--shares", default="0,.3,.6,.8", metavar="S,S", help="of the template (default: 0,.3,.6,.8)")
    parser.add_argument("--crawls", choices=("one", "many", "both"), default="both", help="hosts (default: both)")
    parser.add_argument("--profile", choices=sorted(PROFILES), default=DEFAULT_PROFILE)
    parser.add_argument("--stream", action="store_true", help="the stream after each mixed crawl of template .3")
    folder = Path(tempfile.gettempdir()) / "twinsieve-quality"
    parser.add_argument("--cache", type=Path, default=folder, metavar="FOLDER", help=f"default: {folder}")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="worker processes (default: 2)")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    shares = [float(share) for share in options.shares.split(",")]
    wanted = {"one": (False,), "many": (True,), "both": (False, True)}[options.crawls]
    crawls = [(crawl, size) for crawl, size in _crawls(sizes, shares) if crawl.mixed in wanted]
    lower_priority()
    workspace = Workspace(Corpora(options.folder), Store(options.cache), options.processes)
    stream_from = 0 if options.stream else sys.maxsize
    rows = measured(workspace, crawls, PROFILES[options.profile], stream_from=stream_from)
    for made in (copies_table(rows), work_table(rows), *([stream_table(rows)] if options.stream else [])):
        print(made, end="\n\n")


if __name__ == "__main__":
    main()
