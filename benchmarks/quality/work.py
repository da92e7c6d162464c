"""Apply a function to many items in worker processes, with a progress bar."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")
CHUNK = 64


def mapped(
    function: Callable[[Item], Result], items: Sequence[Item], label: str, processes: int, *, chunk: int = CHUNK
) -> list[Result]:
    """Return function(item) of each item in order. function: picklable, that is, defined at module level."""
    if processes == 1 or len(items) < 2 * chunk:
        return list(tracked(map(function, items), label, len(items)))
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return list(tracked(pool.map(function, items, chunksize=chunk), label, len(items)))


def tracked(items: Iterable[Item], label: str, total: int) -> Iterator[Item]:
    """Yield the items and show progress."""
    with progress(label, total) as advance:
        for item in items:
            yield item
            advance()


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal, else print a line; yields the function to call after each step."""
    if not sys.stderr.isatty():
        print(f"  {label}: {total:,}", file=sys.stderr, flush=True)
        yield lambda: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def lower_priority() -> None:
    """Let other processes have the processor first: a measurement takes minutes."""
    os.nice(10)
