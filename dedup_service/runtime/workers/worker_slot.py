"""One place of a pool: its current worker, restarted when it dies and replaced after a number of items.

Goal: `begin` finds a worker that is ready, whatever happened to the previous one.
How: after a number of items a successor starts; it takes over once it is ready, so that no item waits for its start.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from dedup_service.runtime.workers.worker_process import Job, WorkerDied, WorkerProcess, WorkersError

I = TypeVar("I")  # noqa: E741 - an item
A = TypeVar("A")

MAX_FAILED_STARTS = 20
"""Workers that may die in a row without having begun an item, before `begin` raises."""

PAUSE_S = 0.2
"""Seconds between two failed starts."""


class WorkerSlot(Generic[I, A]):
    """One worker after another.

    workers: the pool's set of live workers. runs_held: maximum number of runs that a worker has. closing: set when no
    more items come.
    """

    def __init__(
        self,
        job: Job[I, A],
        workers: set[WorkerProcess[I, A]],
        items_per_worker: int,
        runs_held: int,
        closing: threading.Event,
    ) -> None:
        self._job = job
        self._workers = workers
        self._items_per_worker = items_per_worker
        self._runs_held = runs_held
        self._closing = closing
        self._worker: WorkerProcess[I, A] | None = None
        self._successor: WorkerProcess[I, A] | None = None
        self._items = 0
        self._failed_starts = 0

    def prepare(self) -> None:
        """Start the first worker before there is work; if that fails, `begin` raises the error."""
        with suppress(Exception):
            self._ready_worker()

    @property
    def room(self) -> bool:
        """Whether another run may begin: the worker has few runs, and no successor is waiting for it to finish."""
        held = self._worker.held if self._worker is not None else 0
        return held == 0 or (held < self._runs_held and (self._successor is None or not self._successor.ready))

    def begin(self, items: Sequence[I]) -> None:
        """Send a run to a worker that is ready; WorkersError, or the error of `get_ready`, if none can be started."""
        self._ready_worker().begin(items)

    def end(self) -> list[A | Exception]:
        """Return the answers to the oldest run; WorkerDied if none of the begun runs will be answered."""
        worker = self._worker
        assert worker is not None
        try:
            answers = worker.end()
        except WorkerDied as death:
            self._failed_starts += death.index is None
            self._drop(worker)
            raise
        self._failed_starts = 0
        self._items += len(answers)
        if self._items >= self._items_per_worker:
            self._replace_worker()
        return answers

    def close(self) -> None:
        """Stop the worker and its successor."""
        for worker in (self._worker, self._successor):
            if worker is not None:
                worker.stop()
                self._drop(worker)

    def _ready_worker(self) -> WorkerProcess[I, A]:
        why = "none"
        while self._failed_starts < MAX_FAILED_STARTS:
            if self._closing.is_set() and (self._worker is None or not self._worker.ready):
                raise WorkersError("the workers were closed before this page's turn: submit it to new ones")
            try:
                self._worker = self._worker or self._new()
                self._worker.wait_ready()
            except WorkerDied as death:
                why = death.why
                self._failed_starts += 1
                self._drop(self._worker)
                self._closing.wait(PAUSE_S)
            except Exception:  # raised by get_ready: the worker has ended
                self._drop(self._worker)
                raise
            else:
                return self._worker
        raise WorkersError(
            f"{MAX_FAILED_STARTS} worker processes in a row died before they took a page, the last one: {why}"
        )

    def _replace_worker(self) -> None:
        """Start a successor, or switch to it if it is ready and the worker has no runs."""
        if self._successor is None:
            try:
                self._successor = self._new()
            except WorkerDied:
                return
        elif self._successor.ready and self._worker is not None and not self._worker.held:
            old, self._worker, self._successor, self._items = self._worker, self._successor, None, 0
            old.stop()
            self._drop(old)

    def _new(self) -> WorkerProcess[I, A]:
        worker = WorkerProcess(self._job)
        self._workers.add(worker)
        if self._closing.is_set():  # the pool may have looked for workers that are starting before this was one
            worker.kill()
        return worker

    def _drop(self, worker: WorkerProcess[I, A] | None) -> None:
        if worker is not None:
            self._workers.discard(worker)
        if worker is self._worker:
            self._worker = None
