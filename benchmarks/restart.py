"""A large state that is read back, goes on, and is killed.

DIR is what `benchmarks.store --leave-in DIR` left, with the same --pages. Parts, each in a process
of its own:

    read      all files with `readinto`, from the disk (the cache is dropped)
    restore   the same files, to tables, and the first verdict; the cache is dropped before
    more      --more pages decided, and a commit: what its thread waits, how long it takes, what memory it takes
    kills     pages are decided, with a commit after each 20,000, and the process is killed at a random moment after its
              start; --kills times. What was not committed is decided again

Wherever pages are decided, each verdict is checked: a copy is a duplicate of its text, any other page is unique.

    python -m benchmarks.restart DIR --pages 1000000 [--more 100000] [--kills 5]
"""

import argparse
import multiprocessing
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.store import BATCH, Subject, anonymous_bytes
from benchmarks.store_pages import COPIES, StreamPages
from dedup_service.core.decision.decider import Decision
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.freed_memory import keep_little_freed_memory, return_freed_memory
from dedup_service.runtime.store.page_files import GROWING, MANIFEST

COMMIT_EVERY = 20_000
PART = 16 * BATCH
MB = 1 << 20
SEED = 2026


def read_all(paths: list[Path]) -> float:
    """Return the seconds that reading files takes."""
    buffer, began = bytearray(MB), time.perf_counter()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - began


def drop_cache(folder: Path) -> None:
    """Drop the files of `folder` from the page cache; they must not be mapped."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Continued:
    """A state in `folder` that goes on. filled: texts that it began with."""

    def __init__(self, folder: Path, stream: StreamPages) -> None:
        self._stream = stream
        self.subject = Subject(folder, stream)
        self.sequence = self.subject.sequence
        self.wrong = 0
        self.wall: list[float] = []
        self.processor_s = 0.0

    def decide(self, pages: int) -> None:
        """Decide so many pages, and check the verdicts; `wall` gets the seconds of each batch, without its making."""
        end = self.sequence + pages
        while self.sequence < end:
            first, stop = self.sequence, min(self.sequence + PART, end)
            made = list(enumerate(self._stream.prepared(first, stop), first + 1))
            for start in range(0, len(made), BATCH):
                batch = made[start : start + BATCH]
                began, used = time.perf_counter(), time.process_time()
                decisions = list(self.subject.decider.decide_all(batch))
                self.subject.step()
                self.wall.append(time.perf_counter() - began)
                self.processor_s += time.process_time() - used
                self.wrong += sum(not self._is_right(decision) for decision in decisions)
            self.sequence = stop

    def _is_right(self, decision: Decision) -> bool:
        is_copy = decision.verdict.sequence % COPIES == 0
        return decision.verdict.kind is (VerdictKind.DUPLICATE if is_copy else VerdictKind.UNIQUE)


def measure_read(folder: Path) -> None:
    """Print how long the disk takes to give the files."""
    paths = [folder / name for name in (MANIFEST, *GROWING)]
    drop_cache(folder)
    took, size = read_all(paths), sum(path.stat().st_size for path in paths)
    print(f"read:    {size / MB:,.0f} MB in {took:.1f} s; load {os.getloadavg()[0]:.1f}", flush=True)


def measure_restore(folder: Path, stream: StreamPages, more: int) -> None:
    """Print the times of a restore, of more pages and of a commit."""
    keep_little_freed_memory()
    drop_cache(folder)
    before, began, processor = anonymous_bytes(), time.perf_counter(), time.process_time()
    state = Continued(folder, stream)
    opened, used = time.perf_counter() - began, time.process_time() - processor
    state.decide(1)
    first = time.perf_counter() - began
    return_freed_memory()
    restored, kept = anonymous_bytes(), len(state.subject.decider)
    print(
        f"restore: {kept:,} kept pages in {opened:.1f} s ({used:.1f} of processor), first verdict after {first:.1f} s; "
        f"{(restored - before) / kept:.1f} bytes of memory a page; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    state.wall, state.processor_s = [], 0.0
    state.decide(more)
    decided = anonymous_bytes()
    waited, took = state.subject.commit(state.sequence)
    p50, p99 = np.quantile(state.wall, [0.5, 0.99]) * 1e3
    print(
        f"more:    {more:,} pages, {more / sum(state.wall):,.0f} a second ({more / state.processor_s:,.0f} a second of "
        f"processor), p50 and p99 of {BATCH} {p50:.0f} and {p99:.0f} ms, {state.wrong} wrong verdicts; commit "
        f"{took:.2f} s, of which the deciding thread waits {waited * 1e3:.0f} ms; memory "
        f"{(decided - restored) / restored:+.2%} by the pages, {(anonymous_bytes() - decided) / decided:+.2%} by it",
        flush=True,
    )
    state.subject.close()


def decide_until_killed(folder: Path, stream: StreamPages, told: Connection) -> None:
    """Decide pages with commits for ever, and tell of the opening and of each commit."""
    state = Continued(folder, stream)
    told.send((state.sequence, 0))
    while True:
        state.decide(COMMIT_EVERY)
        state.subject.commit(state.sequence)
        told.send((state.sequence, state.wrong))


def kill(folder: Path, stream: StreamPages, kills: int) -> None:
    """Kill a process that decides, several times, and print what it told."""
    rng, spawn, opening_s = random.Random(SEED), multiprocessing.get_context("spawn"), 0.0
    for number in range(kills):
        ours, theirs = spawn.Pipe(duplex=False)
        process = spawn.Process(target=decide_until_killed, args=(folder, stream, theirs))
        began = time.perf_counter()
        process.start()
        theirs.close()
        # One kill in three comes while the state is opened.
        while_opening = number % 3 == 2
        sequence, wrong = ours.recv() if not while_opening else (-1, 0)
        opening_s = time.perf_counter() - began if not while_opening else opening_s
        ends = time.perf_counter() + rng.uniform(0.1, 1.0) * (opening_s if while_opening else 15.0)
        while (left_s := ends - time.perf_counter()) > 0:
            if ours.poll(left_s):
                sequence, wrong = ours.recv()
        process.kill()
        process.join()
        when = "while it was opened" if while_opening else f"at sequence {sequence:,} or after, {wrong} wrong verdicts"
        print(f"kill {number + 1}:  {when}; opening took {opening_s:.1f} s", flush=True)
    state = Continued(folder, stream)
    print(f"         opened again at sequence {state.sequence:,}", flush=True)
    state.decide(COMMIT_EVERY)
    print(f"         {COMMIT_EVERY:,} pages more: {state.wrong} wrong verdicts", flush=True)
    state.subject.close()


def in_a_process(measure: Callable[..., Any], *arguments: Any) -> None:
    """Call `measure` in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        processes.submit(measure, *arguments).result()


def main() -> None:
    """Parse the arguments and run all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a store that benchmarks.store left")
    parser.add_argument("--pages", type=int, required=True, help="kept pages, as of benchmarks.store")
    parser.add_argument("--more", type=int, default=100_000, help="pages that are decided before a commit")
    parser.add_argument("--kills", type=int, default=5)
    arguments = parser.parse_args()
    stream = StreamPages(arguments.pages * COPIES // (COPIES - 1))
    in_a_process(measure_read, arguments.folder)
    in_a_process(measure_restore, arguments.folder, stream, arguments.more)
    kill(arguments.folder, stream, arguments.kills)


if __name__ == "__main__":
    main()
