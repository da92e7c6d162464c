"""A decider on its store that expires as much as comes: whether it is the same at the end as at the start.

The state is filled with --pages kept pages (`benchmarks.store`), with a bound of as many. Then pages are decided in
batches of 512, of which a fifth are copies of any earlier text; each kept page lets the earliest expire. Every interval
gives memory (RssAnon and RssShmem beyond the start), bytes of the files as allocated, pages a second, and times of a
batch. At the end: the largest memory and the largest files in proportion to the first interval's, and p99 of the last
third of the intervals in proportion to the first third's.

Every copy is checked against what a list would say: if its text is among the kept pages, it is a duplicate of that
page; if it has expired, and no copy of it was kept since, it is unique. Every other page is unique.

    python -m benchmarks.soak --folder DIR [--pages 50000000] [--minutes 30] [--interval-s 60]
"""

import argparse
import gc
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.store import (
    BATCH,
    PREPARED,
    StoreOptions,
    Subject,
    anonymous_bytes,
    progress_bar,
    temporary_folder,
)
from benchmarks.store_pages import COPIES, StreamPages
from dedup_service.core.decision.decider import Decision
from dedup_service.core.rules.keep import Keep
from dedup_service.core.verdict import VerdictKind

SPARE_PAGES = 1 << 26
"""More pages than any soak decides."""


@dataclass(slots=True)
class Interval:
    """What was measured in some seconds. Bytes at the end of it."""

    pages: int = 0
    batch_s: list[float] = field(default_factory=list)
    memory_bytes: int = 0
    disk_bytes: int = 0
    live: int = 0
    load: float = 0.0

    def batch_ms(self, quantile: float) -> float:
        """Return a quantile of the times of batches, in ms."""
        return float(np.quantile(self.batch_s, quantile)) * 1e3


class ExpectedVerdicts:
    """Says what the verdicts have to be. filled: texts kept before the first page."""

    def __init__(self, stream: StreamPages, filled: int) -> None:
        self._stream, self._filled = stream, filled
        self._again: set[int] = set()  # expired texts of which a copy was kept
        self.checked = self.wrong = 0

    def check(self, first: int, decisions: Sequence[Decision], expired: int, expired_then: int) -> None:
        """Check the decisions on pages from number `first` on.

        expired, expired_then: sequences up to which entries had expired before the first and behind the last of them.
        """
        texts, copies = self._stream.page_numbers(first, first + len(decisions))
        for text, copy, decision in zip(texts.tolist(), copies.tolist(), decisions, strict=True):
            kind, sequence = decision.verdict.kind, self._sequence(text)
            is_new, is_copy = kind is VerdictKind.UNIQUE, decision.original == sequence
            if not copy:
                is_right = is_new
            elif sequence > expired_then:
                is_right = is_copy
            elif text in self._again:
                continue  # it may be as similar to the kept copy as to the text, or not
            else:
                is_right = is_new or (sequence > expired and is_copy)
                if is_new:
                    self._again.add(text)
            self.checked += 1
            self.wrong += not is_right

    def _sequence(self, text: int) -> int:
        return text + 1 if text < self._filled else text + text // (COPIES - 1) + 1


def soak(
    subject: Subject, stream: StreamPages, begin: int, expected: ExpectedVerdicts, options: argparse.Namespace
) -> list[Interval]:
    """Decide pages from number `begin` on for as long as the options say, and return the intervals."""
    intervals, now = list[Interval](), Interval()
    before = options.before
    ends = time.monotonic() + 60 * options.minutes
    interval_ends = time.monotonic() + options.interval_s
    first = begin
    with progress_bar(f"{options.pages:,} kept", int(60 * options.minutes)) as advance:
        told = time.monotonic()
        while time.monotonic() < ends:
            pages = list(enumerate(stream.prepared(first, first + PREPARED), first + 1))
            for start in range(0, len(pages), BATCH):
                batch = pages[start : start + BATCH]
                began, expired = time.perf_counter(), subject.decider.expired_up_to
                decisions = list(subject.decider.decide_all(batch))
                subject.after_batch(batch[-1][0])
                now.batch_s.append(time.perf_counter() - began)
                expected.check(batch[0][0] - 1, decisions, expired, subject.decider.expired_up_to)
            now.pages += len(pages)
            first += len(pages)
            advance(int(time.monotonic() - told))
            told += int(time.monotonic() - told)
            if time.monotonic() >= interval_ends:
                gc.collect()
                now.memory_bytes, now.disk_bytes = anonymous_bytes() - before, allocated_bytes(options.of_store)
                now.live, now.load = len(subject.decider), os.getloadavg()[0]
                intervals.append(now)
                now, interval_ends = Interval(), interval_ends + options.interval_s
    return intervals


def allocated_bytes(folder: Path) -> int:
    """Return the disk space of the files in a folder."""
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue  # a commit has just deleted it
    return total


def report(intervals: list[Interval], expected: ExpectedVerdicts, kept: int) -> None:
    """Print a row for each interval, and how the last ones compare with the first."""
    names = (
        "interval",
        "pages/s",
        "p50 ms",
        "p99 ms",
        "most ms",
        "memory MB",
        "bytes a page",
        "files MB",
        "kept",
        "load",
    )
    table = Table(*names, title="A decider that expires as much as comes")
    for number, one in enumerate(intervals, 1):
        times = (one.batch_ms(quantile) for quantile in (0.5, 0.99, 1.0))
        table.add_row(
            str(number),
            f"{one.pages / sum(one.batch_s):,.0f}",
            *(f"{value:,.1f}" for value in times),
            f"{one.memory_bytes / 1e6:,.0f}",
            f"{one.memory_bytes / kept:.1f}",
            f"{one.disk_bytes / 1e6:,.0f}",
            f"{one.live:,}",
            f"{one.load:.1f}",
        )
    console = Console(width=140)
    console.print(table)
    third = max(1, len(intervals) // 3)
    early, late = (
        [time_s for one in part for time_s in one.batch_s] for part in (intervals[:third], intervals[-third:])
    )
    console.print(
        f"most memory {max(one.memory_bytes for one in intervals) / intervals[0].memory_bytes:.3f} and most files "
        f"{max(one.disk_bytes for one in intervals) / intervals[0].disk_bytes:.3f} times those of the first interval; "
        f"p99 of the last third {np.quantile(late, 0.99) / np.quantile(early, 0.99):.2f} times that of the first; "
        f"{expected.checked:,} verdicts checked, {expected.wrong:,} wrong"
    )


def main() -> None:
    """Parse the arguments, fill the state, and soak."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="a folder on the disk to measure, for the store")
    parser.add_argument("--pages", type=int, default=50_000_000, help="kept pages")
    parser.add_argument("--minutes", type=float, default=30, help="how long pages are decided")
    parser.add_argument("--interval-s", type=float, default=60, help="seconds between two measurements")
    arguments = parser.parse_args()
    options = StoreOptions(arguments.folder)
    begin = arguments.pages // (COPIES - 1) * COPIES
    filled = begin // COPIES * (COPIES - 1)
    stream = StreamPages(begin + SPARE_PAGES)
    with temporary_folder(options) as folder:
        if folder is None:
            raise AssertionError("the options name a folder")
        arguments.before, arguments.of_store = anonymous_bytes(), folder / "measured"
        subject = Subject(arguments.of_store, stream, filled)
        subject.decider.keep = Keep(max_pages=filled)
        expected = ExpectedVerdicts(stream, filled)
        intervals = soak(subject, stream, begin, expected, arguments)
        report(intervals, expected, filled)
        subject.close()


if __name__ == "__main__":
    main()
