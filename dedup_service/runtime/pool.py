"""A pool of worker processes from which every item comes back.

Goal: whatever an item does to its worker, and whoever kills workers from outside, each item is answered once: with what
the work gave, or with the reason why nobody could do it.
How: a thread for each worker takes the next task, a few items, and waits for the answers (`pool_worker`). Where the
worker dies, a new one starts; the item that was in hand is tried again alone, the others go back to the front of
the queue. The item that goes on killing is found out by its strikes. Workers are replaced after a number of items,
against growing memory; the next one gets ready while the old one works.
Invariant: a future ends with all answers, or with the first error that the work raised, or with WorkersError; never
with a broken pool. A death costs nothing but time: no item is blamed that was not in hand.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from typing import Generic, TypeVar

from dedup_service.runtime.pool_line import Line
from dedup_service.runtime.pool_worker import ENOUGH_STRIKES, Died, Job, WorkerProcess, WorkersError

__all__ = ["Pool", "WorkersError"]

I = TypeVar("I")  # noqa: E741 - an item
A = TypeVar("A")

TICK_S = 0.25


@dataclass(slots=True)
class _Batch(Generic[A]):
    """What was submitted together."""

    answers: list[A | Exception | None]
    missing: int
    future: "Future[list[A]]" = field(default_factory=Future)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, start: int, answers: Sequence[A | Exception]) -> None:
        """Take some answers; the last ones end the future."""
        with self.lock:
            self.answers[start : start + len(answers)] = answers
            self.missing -= len(answers)
            done = self.missing == 0
        if not done:
            return
        errors = [answer for answer in self.answers if isinstance(answer, Exception)]
        if errors:
            self.future.set_exception(errors[0])
        else:
            self.future.set_result(self.answers)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Task(Generic[I, A]):
    """Items of a batch from its `start` on, for one worker. strikes: of the only item, where it is alone."""

    batch: _Batch[A]
    start: int
    items: Sequence[I]
    strikes: int = 0

    def part(self, first: int, last: int) -> "_Task[I, A]":
        return _Task(self.batch, self.start + first, self.items[first:last])

    def fail(self, error: Exception) -> None:
        self.batch.put(self.start, [error] * len(self.items))


class Pool(Generic[I, A]):
    """So many worker `processes` that do `job`.

    lost: (item, why) → the answer to an item that no worker survives. chunk: items a task. items_per_worker: items
    after which a worker is replaced.
    """

    def __init__(
        self,
        job: Job[I, A],
        processes: int,
        *,
        lost: Callable[[I, str], A],
        chunk: int = 1,
        items_per_worker: int = 100_000,
    ) -> None:
        self._job = job
        self._lost = lost
        self._chunk = chunk
        self._items_per_worker = items_per_worker
        self._queue: deque[_Task[I, A]] = deque()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._workers: set[WorkerProcess[I, A]] = set()
        self._at_exit = Finalize(self, _kill_all, args=(self._workers,), exitpriority=10)
        self._threads = [
            threading.Thread(target=self._feed, name=f"twinsieve-feeder-{number}", daemon=True)
            for number in range(processes)
        ]
        for thread in self._threads:
            thread.start()
        self._watch = threading.Thread(target=self._tick, name="twinsieve-watch", daemon=True)
        self._watch.start()

    def submit(self, items: Sequence[I]) -> "Future[list[A]]":
        """Start on `items`; the future gives their answers in order. An error that the work raised is its exception."""
        batch: _Batch[A] = _Batch([None] * len(items), len(items))
        batch.future.set_running_or_notify_cancel()
        if not items:
            batch.future.set_result([])
        starts = range(0, len(items), self._chunk)
        with self._changed:
            if self._closing.is_set():
                raise WorkersError("the workers are closed: make new ones")
            self._queue.extend(_Task(batch, start, items[start : start + self._chunk]) for start in starts)
            self._changed.notify(len(starts))
        return batch.future

    def close(self) -> None:
        """End the workers after what they hold; items that still wait end with WorkersError. May be called twice."""
        with self._changed:
            self._closing.set()
            waiting, self._queue = self._queue, deque()
            self._changed.notify_all()
        for task in waiting:
            task.fail(_closed())
        for worker in tuple(self._workers):
            if not worker.ready:
                worker.kill()
        for thread in (*self._threads, self._watch):
            thread.join()
        self._at_exit.cancel()

    def _next(self) -> _Task[I, A] | None:
        with self._changed:
            while not self._queue:
                if self._closing.is_set():
                    return None
                self._changed.wait()
            return self._queue.popleft()

    def _again(self, tasks: Sequence[_Task[I, A]]) -> None:
        """Put `tasks` back to the front, in their order."""
        with self._changed:
            closing = self._closing.is_set()
            if not closing:
                self._queue.extendleft(reversed(tasks))
                self._changed.notify(len(tasks))
        for task in tasks if closing else ():
            task.fail(_closed())

    def _feed(self) -> None:
        """The life of one worker's thread."""
        line = Line(self._job, self._workers, self._items_per_worker, self._closing)
        line.prepare()
        while (task := self._next()) is not None:
            try:
                task.batch.put(task.start, line.run(task.items))
            except Died as death:
                self._split(task, death)
            except Exception as error:  # of get_ready, or of an item that cannot be pickled: the caller's to see
                task.fail(error)
        line.close()

    def _split(self, task: _Task[I, A], death: Died) -> None:
        """Have the item in hand tried alone, or answered for; the others come again."""
        if death.at is None:
            self._again([task])
            return
        before, after = task.part(0, death.at), task.part(death.at + 1, len(task.items))
        suspect = task.items[death.at]
        strikes = task.strikes + death.strikes
        if strikes >= ENOUGH_STRIKES:
            task.batch.put(task.start + death.at, [_answer_for(self._lost, suspect, death.why)])
            alone = []
        else:
            alone = [_Task(task.batch, task.start + death.at, [suspect], strikes)]
        self._again([part for part in (before, *alone, after) if part.items])

    def _tick(self) -> None:
        while any(thread.is_alive() for thread in self._threads):
            if self._closing.wait(TICK_S):
                self._threads[0].join(TICK_S)
            for worker in tuple(self._workers):
                worker.tick(TICK_S)


def _kill_all(workers: set[WorkerProcess[I, A]]) -> None:
    """At the end of a program that did not close its pool: nobody waits for workers."""
    for worker in tuple(workers):
        worker.kill()


def _answer_for(lost: Callable[[I, str], A], item: I, why: str) -> A | Exception:
    try:
        return lost(item, why)
    except Exception as error:
        return error


def _closed() -> WorkersError:
    return WorkersError("the workers were closed before this page's turn: submit it to new ones")
