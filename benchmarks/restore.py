"""Time and memory of a restore from the log alone, and from a snapshot and the rest of the log.

    python -m benchmarks.restore [--entries 1000000] [--bootstrap ADDRESS]

A real broker has a log of N page records in which every verdict is known (`tests.restored_log`, which also verifies
each restored state). Each step runs in a separate process, so that its peak of resident memory can be told apart:

    fill     append N - N / 20 records, 2,000 in a transaction
    log      restore with an empty folder, then write a snapshot
    fill     append a tail of N / 20 records
    both     restore from the snapshot and the tail
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.topics import Topics, create
from deploy.kafka import Cluster
from tests.restored_log import RestoreRun, verify

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table. peak_bytes: peak resident memory of the step's process."""

    step: str
    records: int
    seconds: float
    peak_bytes: int
    note: str = ""


def fill(run: RestoreRun, start: int, stop: int) -> Figure:
    """Append pages `start` to `stop`."""
    began = time.monotonic()
    with bar("fill") as show:
        run.fill(start, stop, show)
    return Figure("fill", stop - start, time.monotonic() - began, peak_bytes())


def restored(run: RestoreRun, entries: int, records: int, step: str) -> Figure:
    """Restore all `entries` records, `records` of them from the log; verify the state, and write a snapshot."""
    with LocalState.open(run.folder) as local, bar(step) as show:

        def progress(event: RestoreEvent) -> None:
            show(event.messages, event.total)

        began = time.monotonic()
        state = run.restored(local, entries, progress)
        seconds = time.monotonic() - began
        began = time.monotonic()
        local.take_snapshot(state.replica, state.pending_outcomes, state.tail)
        stopped = time.monotonic() - began
        local.pages.wait()
        wrote = time.monotonic() - began
        peak = peak_bytes()
        verify(state, entries)
    size = sum(path.stat().st_size for path in local.pages.folder.iterdir())
    note = (
        f"kept pages {size / MEGABYTE:,.0f} MB; snapshot: decisions pause for {stopped:.2f} s, written in {wrote:.1f} s"
    )
    return Figure(step, records, seconds, peak, note)


def peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar; yields a function of (done, total) that updates it."""
    columns = (TextColumn(f"{title:<8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def in_process(step: Callable[..., Figure], *arguments: Any) -> Figure:
    """Run a step in a separate process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(step, *arguments).result()


def measure(run: RestoreRun, entries: int) -> list[Figure]:
    """Run the four steps in order."""
    create(run.connection, Topics(run.prefix))
    tail = entries // 20
    head = entries - tail
    return [
        in_process(fill, run, 0, head),
        in_process(restored, run, head, head, "log"),
        in_process(fill, run, head, entries),
        in_process(restored, run, entries, tail, "both"),
    ]


def main() -> None:
    """Parse the arguments, start a broker if none is named, and run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000, help="records of the log; a multiple of 2,000")
    parser.add_argument("--bootstrap", help="a broker to use; without it one is started and removed")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twinsieve-restore-")))
        bootstrap = options.bootstrap or stack.enter_context(Cluster()).bootstrap
        figures = measure(RestoreRun(bootstrap, f"restore-{uuid.uuid4().hex[:8]}.", folder), options.entries)
    table = Table(
        "step", "records", "seconds", "records/s", "peak MB", "", title=f"{options.entries:,} records, verified"
    )
    for figure in figures:
        rate = figure.records / figure.seconds
        cells = f"{figure.records:,}", f"{figure.seconds:,.1f}", f"{rate:,.0f}", f"{figure.peak_bytes / MEGABYTE:,.0f}"
        table.add_row(figure.step, *cells, figure.note)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
