"""How far a restore has come, as a bar on a terminal."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dedup_service.runtime.facts import Bystander, RestoreFact

__all__ = ["RestoreBar"]


class RestoreBar(Bystander):
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

    def restore(self, fact: RestoreFact) -> None:
        """Move the bar."""
        self._bar.update(self._task, total=fact.total, completed=fact.records, visible=not fact.done)
        if fact.done:
            self._bar.stop()
