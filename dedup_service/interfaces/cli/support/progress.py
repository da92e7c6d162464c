"""A progress bar on a terminal, nothing elsewhere.

How far a restore has come, as a bar on a terminal.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dedup_service.runtime.events import NullObserver, RestoreEvent

__all__ = ["Advance", "RestoreBar", "progress", "records_progress"]

Advance = Callable[[int, int], None]
"""(pages, bytes) that a batch added."""


@contextmanager
def progress(name: str, size_bytes: int | None) -> Iterator[Advance]:
    """Show how far the input `name` is read; without a size, only how many pages there were."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TextColumn("{task.fields[pages]:,} pages"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=size_bytes, pages=0)
        pages = 0

        def advance(more_pages: int, more_bytes: int) -> None:
            nonlocal pages
            pages += more_pages
            bar.update(task, advance=more_bytes, pages=pages)

        yield advance


def _nothing(pages: int, size_bytes: int) -> None:
    """Show nothing."""


@contextmanager
def records_progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of how many records are done."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*Progress.get_default_columns(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class RestoreBar(NullObserver):
    """An observer that draws until the restore is done."""

    def __init__(self) -> None:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def restore(self, fact: RestoreEvent) -> None:
        """Move the bar."""
        self._bar.update(self._task, total=fact.total, completed=fact.records, visible=not fact.done)
        if fact.done:
            self._bar.stop()
