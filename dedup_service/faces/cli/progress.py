"""A progress bar on a terminal, nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Advance", "progress", "records_progress"]

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
