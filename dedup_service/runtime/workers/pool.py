"""A pool of worker processes from which every item comes back.

Goal: whatever an item does to its worker, and whoever kills workers from outside, each item is answered once: with what
the work gave, or with the reason why nobody could do it.
How: a thread for each worker takes its share of the tasks that wait, a few items, and waits for the answers
(`pool_worker`): the more wait, the fewer hand-overs. Where nobody else is free to take them, a second share may be with
the worker before the first is answered. Where the worker dies, a new one starts; the item that was in hand is tried
again alone, the others go back to the front of the queue. The item that goes on killing is found out by its
strikes. Workers are replaced after a number of items, against growing memory; the next one gets ready while the old
one works.
Invariant: a future ends with all answers, or with the first error that the work raised, or with WorkersError; never
with a broken pool. A death costs nothing but time: no item is blamed that was not in hand.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing.util import Finalize
from typing import Generic, TypeVar

from dedup_service.runtime.workers.worker_process import ENOUGH_STRIKES, Job, WorkerDied, WorkerProcess, WorkersError
from dedup_service.runtime.workers.worker_slot import WorkerSlot

__all__ = ["Pool", "PoolState", "WorkersError"]

I = TypeVar("I")  # noqa: E741 - an item
A = TypeVar("A")

TICK_S = 0.25


@dataclass(frozen=True, slots=True)
class PoolState:
    """A pool at one moment.

    processes: that there should be. ready, busy: that could take an item, that have one. waiting: items that no
    process has. deaths: processes that ended over an item, or were killed, so far.
    """

    processes: int
    ready: int
    busy: int
    waiting: int
    deaths: int


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
    """Items of a batch from its `start` on, for one worker.

    alone: not to be given out with others, since it did harm. strikes: of its only item.
    """

    batch: _Batch[A]
    start: int
    items: Sequence[I]
    alone: bool = False
    strikes: int = 0

    def part(self, first: int, last: int) -> "_Task[I, A]":
        return _Task(self.batch, self.start + first, self.items[first:last])

    def fail(self, error: Exception) -> None:
        self.batch.put(self.start, [error] * len(self.items))


class Pool(Generic[I, A]):
    """So many worker `processes` that do `job`.

    lost: (item, why) → the answer to an item that no worker survives. chunk: items that a worker gets at once, at most.
    ahead: let a worker have its next items while it is at work; it waits less for its owner, and items may wait behind
    a slow one. items_per_worker: items after which a worker is replaced.
    """

    def __init__(
        self,
        job: Job[I, A],
        processes: int,
        *,
        lost: Callable[[I, str], A],
        chunk: int = 1,
        ahead: bool = False,
        items_per_worker: int = 100_000,
    ) -> None:
        self._job = job
        self._lost = lost
        self._chunk = chunk
        self._runs_held = 2 if ahead else 1
        self._items_per_worker = items_per_worker
        self._queue: deque[_Task[I, A]] = deque()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._workers: set[WorkerProcess[I, A]] = set()
        self._deaths = 0
        self._free = 0
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

    def state(self) -> PoolState:
        """Return how it stands; may be asked from any thread."""
        with self._changed:
            waiting = sum(len(task.items) for task in self._queue)
        workers = tuple(self._workers)
        ready, busy = sum(worker.started for worker in workers), sum(worker.busy for worker in workers)
        return PoolState(len(self._threads), ready, busy, waiting, self._deaths)

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

    def _next(self, *, ahead: bool) -> list[_Task[I, A]]:
        """Take a worker's share of the tasks that wait, an item that has killed alone; [] where there are none.

        ahead: the worker has some; do not wait, and leave what threads with nothing to do will take.
        """
        with self._changed:
            while len(self._queue) <= (self._free if ahead else 0):
                if ahead or self._closing.is_set():
                    return []
                self._free += 1
                self._changed.wait()
                self._free -= 1
            waiting = sum(len(task.items) for task in self._queue)
            taken = [self._queue.popleft()]
            room = min(self._chunk, -(-waiting // len(self._threads))) - len(taken[0].items)
            while self._queue and not (taken[0].alone or self._queue[0].alone):
                room -= len(self._queue[0].items)
                if room < 0:
                    break
                taken.append(self._queue.popleft())
            return taken

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
        line = WorkerSlot(self._job, self._workers, self._items_per_worker, self._runs_held, self._closing)
        line.prepare()
        held: deque[list[_Task[I, A]]] = deque()
        while True:
            tasks = self._next(ahead=bool(held)) if line.room else []
            if tasks:
                self._begin(line, tasks, held)
            elif held:
                self._end(line, held)
            else:
                break
        line.close()

    def _begin(self, line: WorkerSlot[I, A], tasks: list[_Task[I, A]], held: deque[list[_Task[I, A]]]) -> None:
        try:
            line.begin([item for task in tasks for item in task.items])
        except Exception as error:  # of get_ready, or of an item that cannot be pickled: the caller's to see
            self._fail(tasks, error)
        else:
            held.append(tasks)

    def _end(self, line: WorkerSlot[I, A], held: deque[list[_Task[I, A]]]) -> None:
        """Hand on the answers to the oldest of `held`, or put all back where the worker has died."""
        try:
            answers = iter(line.end())
        except WorkerDied as death:
            with self._changed:
                self._deaths += 1
            begun = [task for tasks in held for task in tasks]
            held.clear()
            self._again([part for task, at in _places(begun, death.at) for part in self._parts(task, at, death)])
        except Exception as error:  # of answers that cannot be unpickled
            self._fail(held.popleft(), error)
        else:
            for task in held.popleft():
                task.batch.put(task.start, list(islice(answers, len(task.items))))

    def _parts(self, task: _Task[I, A], at: int | None, death: WorkerDied) -> Iterator[_Task[I, A]]:
        """Yield what of `task` has to come again; the item `at`, in hand at the death, alone, or it is answered for."""
        if at is None:
            yield task
            return
        before, after = task.part(0, at), task.part(at + 1, len(task.items))
        if before.items:
            yield before
        strikes = task.strikes + death.strikes
        if strikes >= ENOUGH_STRIKES:
            task.batch.put(task.start + at, [_answer_for(self._lost, task.items[at], death.why)])
        else:
            yield _Task(task.batch, task.start + at, [task.items[at]], alone=True, strikes=strikes)
        if after.items:
            yield after

    def _fail(self, tasks: Sequence[_Task[I, A]], error: Exception) -> None:
        """End the only task with `error`; of several each comes again, alone, to meet an error of its own."""
        if len(tasks) == 1:
            tasks[0].fail(error)
        else:
            self._again([replace(task, alone=True) for task in tasks])

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


def _places(tasks: Sequence[_Task[I, A]], at: int | None) -> Iterator[tuple[_Task[I, A], int | None]]:
    """Yield each of `tasks` with the index that `at`, counted over all of their items, has in it."""
    for task in tasks:
        yield task, at if at is not None and 0 <= at < len(task.items) else None
        at = None if at is None else at - len(task.items)


def _answer_for(lost: Callable[[I, str], A], item: I, why: str) -> A | Exception:
    try:
        return lost(item, why)
    except Exception as error:
        return error


def _closed() -> WorkersError:
    return WorkersError("the workers were closed before this page's turn: submit it to new ones")
