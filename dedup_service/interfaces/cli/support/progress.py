"""Progress bars on stderr, for inputs, logs and restores; without a terminal, nothing is drawn.

rich is imported only when a bar is drawn: it costs start-up time that a run without a terminal does not
need.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.events import Observer, RestoreEvent
from dedup_service.runtime.readers.open import InputSource

Advance = Callable[[int], None]
"""Adds a batch of pages to an input's progress."""


@contextmanager
def progress(source: InputSource) -> Iterator[Advance]:
    """Show how much of an input has been read, in bytes; if its size is unknown, only the number of pages."""
    if not sys.stderr.isatty():
        yield lambda _pages: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TextColumn("{task.fields[pages]:,} pages, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(terminal_safe(source.name), total=source.size_bytes, pages=0, rate=0.0)
        pages, began = 0, time.monotonic()

        def advance(more_pages: int) -> None:
            nonlocal pages
            pages += more_pages
            rate = pages / max(0.001, time.monotonic() - began)
            bar.update(task, completed=source.read_bytes(), pages=pages, rate=rate)

        yield advance


@contextmanager
def records_progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a progress callback: (done, total), in records."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*Progress.get_default_columns(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def stages_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a progress callback for work in stages: (stage, done, total); total 0 if it is unknown."""
    if not sys.stderr.isatty():
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*Progress.get_default_columns(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("opening", total=None)
        yield lambda stage, done, total: bar.update(task, description=stage, completed=done, total=total or None)


class RestoreBar(Observer):
    """An observer that draws the progress of a restore until it is complete."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("restoring"),
            BarColumn(),
            TaskProgressColumn(),
            MofNCompleteColumn(),
            TextColumn("records"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("restoring", total=None, visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def restore(self, event: RestoreEvent) -> None:
        """Move the bar."""
        self._bar.update(self._task, total=event.total, completed=event.messages, visible=not event.done)
        if event.done:
            self._bar.stop()


def _nothing(done: int, total: int) -> None:
    """Draw nothing."""
