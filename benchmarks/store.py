"""Memory, disk and speed of a decider that keeps 10^6, 10^7 or 10^8 pages.

Each size runs in a process that does nothing else. Generated pages (`benchmarks.store_pages`: keys, evidence and copies
distributed as in the development stream, 718 bytes of evidence, 20% copies of any page before) are prepared between two
batches, outside the measured time, and decided in batches of 512. Every copy must be found, and every other page kept:
`verdicts` says how many were not.

Memory is RssAnon and RssShmem of the process, minus what it had before there was a decider; mapped files do not count.
Structures give the sizes of their own tables; `other` is what they do not explain: window, batch, allocator. Rates and
percentiles are of the last tenth of the pages, `most` and `pause` (longest batch minus the median) of all of them.
With `--decided N` only the last N pages are decided. Texts before them are filled in, in the order of their numbers:
they take their ways through window, store and tables as kept pages do, but nothing is looked up for them.
Reads are pieces of evidence compared; `missed` are pages of 4 KiB that the page cache did not have. With `--warm`, all
files are read before, so that it has what fits.

    python -m benchmarks.store [--pages 1000000 10000000] [--decided N] [--warm] [--folder DIR]
"""

import argparse
import gc
import multiprocessing
import os
import resource
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.store_pages import COPIES, StreamPages
from dedup_service._native import StoreLabel
from dedup_service.core.decision.decider import Decider
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.runtime.freed_memory import (
    keep_little_freed_memory,
    leave_out_of_collections,
    return_freed_memory,
)
from dedup_service.runtime.store.decider_state import decode_state, encode_state
from dedup_service.runtime.store.store_info import store_info
from dedup_service.runtime.store.stored_entries import StoredEntries

BATCH = 512
PREPARED = 16 * BATCH
"""Pages that are prepared at a time."""

LAST = 10
"""Rates are of the last tenth."""

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What is measured.

    folder: of the store; None keeps everything in memory. decided: how many pages are decided, the others are filled
    in; None for all. left_in: a new folder for the store, which is not removed. warm: read its files before the first
    page is decided.
    """

    folder: Path | None = None
    decided: int | None = None
    left_in: Path | None = None
    warm: bool = False


@dataclass(slots=True)
class StoreFigures:
    """What one run measured. memory: bytes by structure. disk: bytes by kind of file."""

    pages: int
    kept: int = 0
    anonymous_bytes: int = 0
    memory: dict[str, int] = field(default_factory=dict)
    disk: dict[str, int] = field(default_factory=dict)
    pages_a_second: float = 0.0
    pages_a_processor_second: float = 0.0
    microseconds_a_page_overall: float = 0.0
    batch_ms: dict[str, float] = field(default_factory=dict)
    pause_ms: float = 0.0
    reads_a_page: float = 0.0
    missed_a_page: float = 0.0
    wrong: int = 0
    load: float = 0.0


COMMIT_EVERY = 100_000


class Subject:
    """The decider that is measured, with what it stores. The only place that knows how it is made.

    folder: of the store; one that has a state goes on with it. filled: texts that a new one is filled with.
    """

    def __init__(self, folder: Path | None, stream: StreamPages, filled: int = 0) -> None:
        rule, layout = rule_for(), IndexLayout()
        label = StoreLabel("benchmark", "benchmark")
        self._entries = None if folder is None else StoredEntries.open(folder, label, rule, layout)
        extra = b"" if self._entries is None else self._entries.take_extra()
        state = decode_state(extra) if extra else None
        self.decider = Decider(rule, "benchmark", self, layout=layout, entries=self._entries, state=state)
        self._committed = max(0, self.sequence)
        self._commit: threading.Thread | None = None
        if not extra:
            self._fill(stream, filled)

    @property
    def sequence(self) -> int:
        """Sequence of the last page that is committed."""
        return -1 if self._entries is None else self._entries.sequence

    def commit(self, sequence: int) -> tuple[float, float]:
        """Commit; return the seconds that the deciding thread waits, and those of the whole."""
        began = time.perf_counter()
        assert self._entries is not None
        finish = self._entries.begin_commit(sequence, "", encode_state(self.decider.state()), self.decider.sizes())
        waited = time.perf_counter() - began
        finish()
        return waited, time.perf_counter() - began

    def _fill(self, stream: StreamPages, texts: int) -> None:
        """Keep the first texts of a stream, of which nothing is looked up."""
        with progress_bar(f"{texts:,} filled in", texts) as advance:
            for first in range(0, texts, PREPARED):
                entries = stream.kept(first, min(first + PREPARED, texts))
                for start in range(0, len(entries), BATCH):
                    part = entries[start : start + BATCH]
                    self.decider.enter(part)
                    self._after_batch(part[-1].sequence, lambda: b"")
                advance(len(entries))

    def after_batch(self, sequence: int) -> None:
        """Do what a state does after each batch; a thread encodes the rest of the state, and waits for the disk."""
        self._after_batch(sequence, self._noted)

    def _noted(self) -> Callable[[], bytes]:
        state = self.decider.note_state()
        return lambda: encode_state(state())

    def step(self) -> None:
        """Do what the store has to do beside commits."""
        if self._entries is not None:
            self._entries.step()

    def _after_batch(self, sequence: int, state: Callable[[], bytes | Callable[[], bytes]]) -> None:
        if self._entries is None:
            return
        self.step()
        if sequence - self._committed >= COMMIT_EVERY and (self._commit is None or not self._commit.is_alive()):
            self._committed = sequence
            finish = self._entries.begin_commit(sequence, "", state(), self.decider.sizes())
            self._commit = threading.Thread(target=finish)
            self._commit.start()

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of a page; names are not in memory."""
        return str(sequence), f"http://site/{sequence}"

    @property
    def work(self) -> tuple[int, int]:
        """How many entries were looked at, and how many pieces of evidence compared, so far."""
        return self.decider._native.work()  # noqa: SLF001 - nobody else asks

    def memory(self) -> dict[str, int]:
        """Return the bytes of memory of each structure, as it says itself."""
        return self.decider.sizes().memory

    def disk(self) -> dict[str, int]:
        """Return the bytes on disk by kind of file."""
        return {} if self._entries is None else store_info(self._entries.pages.folder).disk

    def close(self) -> None:
        """Close what is open."""
        if self._commit is not None:
            self._commit.join()
        if self._entries is not None:
            self._entries.close()


def run(kept: int, options: StoreOptions) -> StoreFigures:
    """Decide pages until `kept` of them were kept, and return the figures."""
    keep_little_freed_memory()  # as every process that has tables
    leave_out_of_collections()
    stream = StreamPages(kept * COPIES // (COPIES - 1))
    decided = stream.pages if options.decided is None else min(options.decided, stream.pages)
    begin = (stream.pages - decided) // COPIES * COPIES
    with temporary_folder(options) as folder:
        before = anonymous_bytes()
        filled = begin // COPIES * (COPIES - 1)
        of_store = options.left_in or (None if folder is None else folder / "measured")
        subject = Subject(of_store, stream, filled)
        if options.warm and of_store is not None:
            read_files(of_store)
        figures = decide_all(subject, stream, begin)
        gc.collect()
        return_freed_memory()
        figures.anonymous_bytes = anonymous_bytes() - before
        figures.memory, figures.disk = subject.memory(), subject.disk()
        figures.memory["other"] = figures.anonymous_bytes - sum(figures.memory.values())
        subject.close()
    return figures


def decide_all(subject: Subject, stream: StreamPages, begin: int) -> StoreFigures:
    """Decide the pages of a stream from `begin` on; return all figures but those of memory and disk."""
    wall: list[float] = []
    processor: list[float] = []
    last = begin + (stream.pages - begin) * (LAST - 1) // LAST
    kinds: Counter[tuple[bool, str]] = Counter()
    reads, missed, sizes = subject.work[1], missed_pages(), 0
    with progress_bar(f"{stream.originals:,} kept", stream.pages - begin) as advance:
        for first in range(begin, stream.pages, PREPARED):
            if first <= last < first + PREPARED:
                reads, missed, sizes = subject.work[1], missed_pages(), len(wall)
            pages = list(enumerate(stream.prepared(first, min(first + PREPARED, stream.pages)), first + 1))
            for start in range(0, len(pages), BATCH):
                batch = pages[start : start + BATCH]
                began, used = time.perf_counter(), time.process_time()
                decisions = list(subject.decider.decide_all(batch))
                subject.after_batch(batch[-1][0])
                wall.append(time.perf_counter() - began)
                processor.append(time.process_time() - used)
                kinds.update((one.verdict.sequence % COPIES == 0, one.verdict.kind.value) for one in decisions)
            advance(len(pages))
    figures = StoreFigures(stream.pages, len(subject.decider), load=os.getloadavg()[0])
    decided = stream.pages - begin - sizes * BATCH
    times = np.array(wall) * 1e3
    late = times[sizes:]
    figures.pages_a_second = decided / sum(wall[sizes:])
    figures.pages_a_processor_second = decided / sum(processor[sizes:])
    figures.microseconds_a_page_overall = sum(processor) / (stream.pages - begin) * 1e6
    figures.batch_ms = {
        "p50": float(np.median(late)),
        "p99": float(np.quantile(late, 0.99)),
        "most": float(times.max()),
    }
    figures.pause_ms = float(times.max() - np.median(times))
    figures.reads_a_page = (subject.work[1] - reads) / decided
    figures.missed_a_page = (missed_pages() - missed) / decided
    figures.wrong = stream.pages - begin - kinds[False, "unique"] - kinds[True, "duplicate"]
    return figures


def read_files(folder: Path) -> None:
    """Read all files twice: pages that are read once are the first that the page cache gives up."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    with progress_bar("files read", 2 * len(files)) as advance:
        for path in files * 2:
            with suppress(FileNotFoundError), path.open("rb", buffering=0) as file:  # a commit may have replaced it
                while file.read(1 << 24):
                    pass
            advance(1)


def anonymous_bytes() -> int:
    """Return RssAnon and RssShmem of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem")))


def missed_pages() -> int:
    """Return how many pages of 4 KiB this process has had to read from the disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock * 512 // PAGE_BYTES


@contextmanager
def temporary_folder(options: StoreOptions) -> Iterator[Path | None]:
    """Make a folder for a store in the folder of the options, and remove it; None if the options name none."""
    if options.folder is None:
        yield None
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        yield Path(name)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Any]:
    """Show a progress bar; yields a function of the pages done since its last call."""
    columns = (
        TextColumn(f"{title:<16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=1) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.advance(task, done)


def in_process(kept: int, options: StoreOptions) -> StoreFigures:
    """Run one size in a separate process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run, kept, options).result()


def report(figures: list[StoreFigures]) -> None:
    """Print a column for each size."""
    table = Table("", *(f"{one.kept:,} kept" for one in figures), title="A decider with its kept pages")

    def add(name: str, values: list[float], form: str = ",.1f") -> None:
        table.add_row(name, *(format(value, form) for value in values))

    add("bytes of memory a page", [one.anonymous_bytes / one.kept for one in figures])
    for name in dict.fromkeys(name for one in figures for name in one.memory):
        add(f"  {name}", [one.memory.get(name, 0) / one.kept for one in figures])
    for name in dict.fromkeys(name for one in figures for name in one.disk):
        add(f"bytes on disk a page: {name}", [one.disk.get(name, 0) / one.kept for one in figures])
    add("pages/s", [one.pages_a_second for one in figures], ",.0f")
    add("pages/s of processor time", [one.pages_a_processor_second for one in figures], ",.0f")
    add("µs of processor a page, from the first on", [one.microseconds_a_page_overall for one in figures])
    for name in ("p50", "p99", "most"):
        add(f"ms a batch of {BATCH}: {name}", [one.batch_ms[name] for one in figures])
    add("longest pause, ms", [one.pause_ms for one in figures])
    add("reads a page", [one.reads_a_page for one in figures], ".2f")
    add("4 KiB missed in the page cache a page", [one.missed_a_page for one in figures], ".3f")
    add("wrong verdicts", [one.wrong for one in figures], ",.0f")
    add("load of the machine", [one.load for one in figures])
    Console(width=140).print(table)


def main() -> None:
    """Parse the arguments and run the sizes one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=[1_000_000], help="kept pages")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure, for the store")
    parser.add_argument("--decided", type=int, help="how many pages are decided; the others are filled in")
    parser.add_argument("--leave-in", type=Path, help="a new folder for the store, for `benchmarks.restart`")
    parser.add_argument("--warm", action="store_true", help="read the files first, so that the page cache has them")
    arguments = parser.parse_args()
    options = StoreOptions(arguments.folder, arguments.decided, arguments.leave_in, arguments.warm)
    figures = [in_process(kept, options) for kept in arguments.pages]
    report(figures)


if __name__ == "__main__":
    main()
