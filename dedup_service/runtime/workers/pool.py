"""A pool of workers, each a thread with a process, that answers every item exactly once.

Goal: each item is answered, whatever it does to its worker and even if processes are killed from outside:
with the result of the work, or with the reason why it could not be done.
How: one thread for each worker takes a share of the waiting tasks, sends it to its process as one run, and waits for
the answers (`worker_slot`, `worker_process`). The more tasks wait, the larger the shares and the fewer the hand-overs.
A process may get a second run before the first is answered, if no other thread is free to take it. If a process dies, a
new one starts; the item that it was working on is retried alone, the others go back to the front of the queue. Deaths
over an item are counted as strikes; with enough of them the item is given up. Processes are replaced after a number of
items, because their memory grows; the successor starts while the old one is still working.
Invariant: a future ends with all answers, with the first error that the work raised, or with WorkersError; never with
a broken pool. A death costs only time: an item that was not being worked on gets no strike.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing.util import Finalize
from typing import Generic, TypeVar

from dedup_service.runtime.workers.worker_process import ENOUGH_STRIKES, Job, WorkerDied, WorkerProcess, WorkersError
from dedup_service.runtime.workers.worker_slot import WorkerSlot

__all__ = ["TOO_LARGE", "Pool", "PoolState", "WorkersError"]

I = TypeVar("I")  # noqa: E741 - an item
A = TypeVar("A")

TICK_S = 0.25
KILLED_S = 1.0
"""Time for the threads to notice that their workers were killed; one that still waits for a start ends by itself."""

TOO_LARGE = "needs more memory than a page may use"


@dataclass(frozen=True, slots=True)
class PoolState:
    """A pool at one moment.

    processes: nominal number of workers. ready: workers that have started. busy: workers that have items.
    waiting: items that no worker has. deaths: processes that died or were killed while they had items,
    so far; failed starts are not counted.
    """

    processes: int
    ready: int
    busy: int
    waiting: int
    deaths: int


@dataclass(slots=True)
class _Batch(Generic[A]):
    """Items that were submitted together, and their answers."""

    answers: list[A | Exception | None]
    missing: int
    future: "Future[list[A]]" = field(default_factory=Future)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, start: int, answers: Sequence[A | Exception]) -> None:
        """Store some answers; the last ones complete the future."""
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
    """Consecutive items of a batch, from index `start` on.

    alone: not to be combined with other tasks, because a worker died over it or it failed. strikes: of its only item.
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
    """A pool of `processes` workers that do `job`; they start with the first items.

    lost: (item, reason) → the answer to an item that no worker survives. chunk: maximum number of items in a run.
    ahead: send a worker its next run while it is busy; it waits less for this process, but items may wait behind a slow
    one. items_per_worker: items after which a worker is replaced.
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
        self._processes = processes
        self._chunk = chunk
        self._runs_held = 2 if ahead else 1
        self._items_per_worker = items_per_worker
        self._queue: deque[_Task[I, A]] = deque()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._killing = False
        self._workers: set[WorkerProcess[I, A]] = set()
        self._deaths = 0
        self._idle = 0
        self._at_exit = Finalize(self, _kill_all, args=(self._workers,), exitpriority=10)
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the workers, so that the first items need not wait for them. May be called twice."""
        with self._changed:
            if self._threads or self._closing.is_set():
                return
            self._threads = [
                threading.Thread(target=self._run_worker, name=f"twinsieve-pool-{number}", daemon=True)
                for number in range(self._processes)
            ]
            self._threads.append(threading.Thread(target=self._tick, name="twinsieve-watchdog", daemon=True))
            for thread in self._threads:
                thread.start()

    def submit(self, items: Sequence[I]) -> "Future[list[A]]":
        """Start on `items`; the future gives their answers in order, or raises the first error of the work."""
        batch: _Batch[A] = _Batch([None] * len(items), len(items))
        batch.future.set_running_or_notify_cancel()
        if not items:
            batch.future.set_result([])
            return batch.future
        starts = range(0, len(items), self._chunk)
        with self._changed:
            if self._closing.is_set():
                raise WorkersError("the workers are closed: start new ones")
            self.start()
            self._queue.extend(_Task(batch, start, items[start : start + self._chunk]) for start in starts)
            self._changed.notify(len(starts))
        return batch.future

    def state(self) -> PoolState:
        """Return the state of the pool. Thread-safe."""
        with self._changed:
            waiting = sum(len(task.items) for task in self._queue)
        workers = tuple(self._workers)
        ready, busy = sum(worker.started for worker in workers), sum(worker.busy for worker in workers)
        return PoolState(self._processes, ready, busy, waiting, self._deaths)

    def close(self, timeout_s: float | None = None) -> None:
        """Stop the workers after the items they have; waiting items end with WorkersError. May be called twice.

        timeout_s: after which workers that are not done are killed, and their items end with WorkersError, too;
        None waits for them, however long they take.
        """
        with self._changed:
            self._closing.set()
            waiting, self._queue = self._queue, deque()
            self._changed.notify_all()
        for task in waiting:
            task.fail(_closed())
        for worker in tuple(self._workers):
            if not worker.ready:
                worker.kill()
        if _joined(self._threads, timeout_s) or self._killed():
            self._at_exit.cancel()

    def _killed(self) -> bool:
        """Kill the workers, also those that a thread is just starting; return whether all threads have ended."""
        self._killing = True
        deadline = time.monotonic() + KILLED_S
        while time.monotonic() < deadline:
            _kill_all(self._workers)
            if _joined(self._threads, TICK_S):
                return True
        return False

    def _next(self, *, ahead: bool) -> list[_Task[I, A]]:
        """Take one worker's share of the waiting tasks, or a single task that has to be alone; [] if there are none.

        ahead: the worker is busy, so do not wait, and leave the tasks that idle threads will take.
        """
        with self._changed:
            while len(self._queue) <= (self._idle if ahead else 0):
                if ahead or self._closing.is_set():
                    return []
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            waiting = sum(len(task.items) for task in self._queue)
            share = [self._queue.popleft()]
            room = min(self._chunk, -(-waiting // self._processes)) - len(share[0].items)
            while self._queue and not (share[0].alone or self._queue[0].alone):
                room -= len(self._queue[0].items)
                if room < 0:
                    break
                share.append(self._queue.popleft())
            return share

    def _requeue(self, tasks: Sequence[_Task[I, A]]) -> None:
        """Put `tasks` back to the front of the queue, in their order."""
        with self._changed:
            closing = self._closing.is_set()
            if not closing:
                self._queue.extendleft(reversed(tasks))
                self._changed.notify(len(tasks))
        for task in tasks if closing else ():
            task.fail(_closed())

    def _run_worker(self) -> None:
        """The thread of one worker."""
        slot = WorkerSlot(self._job, self._workers, self._items_per_worker, self._runs_held, self._closing)
        slot.prepare()
        held: deque[list[_Task[I, A]]] = deque()
        while True:
            tasks = self._next(ahead=bool(held)) if slot.room else []
            if tasks:
                self._begin(slot, tasks, held)
            elif held:
                self._end(slot, held)
            else:
                break
        slot.close()

    def _begin(self, slot: WorkerSlot[I, A], tasks: list[_Task[I, A]], held: deque[list[_Task[I, A]]]) -> None:
        try:
            slot.begin([item for task in tasks for item in task.items])
        except Exception as error:  # from get_ready, or an item that cannot be pickled
            self._fail(tasks, error)
        else:
            held.append(tasks)

    def _end(self, slot: WorkerSlot[I, A], held: deque[list[_Task[I, A]]]) -> None:
        """Deliver the answers to the oldest run in `held`; put all runs back if the worker has died."""
        try:
            answers = iter(slot.end())
        except WorkerDied as death:
            with self._changed:
                self._deaths += 1
            begun = [task for tasks in held for task in tasks]
            held.clear()
            if self._killing:  # no item is to blame, so none gets a strike
                self._requeue(begun)
                return
            self._requeue(
                [part for task, index in _indexes(begun, death.index) for part in self._parts(task, index, death)]
            )
        except Exception as error:  # answers that cannot be unpickled
            self._fail(held.popleft(), error)
        else:
            for task in held.popleft():
                given = zip(task.items, islice(answers, len(task.items)), strict=True)
                task.batch.put(task.start, [self._judged(item, answer) for item, answer in given])

    def _judged(self, item: I, answer: A | Exception) -> A | Exception:
        """Return the answer; an item that needs too much memory, even to arrive, is given up."""
        return _answer_for(self._lost, item, TOO_LARGE) if isinstance(answer, MemoryError) else answer

    def _parts(self, task: _Task[I, A], index: int | None, death: WorkerDied) -> Iterator[_Task[I, A]]:
        """Yield the parts of `task` to retry; item `index`, over which the worker died, comes alone or is given up."""
        if index is None:
            yield task
            return
        before, after = task.part(0, index), task.part(index + 1, len(task.items))
        if before.items:
            yield before
        strikes = task.strikes + death.strikes
        if strikes >= ENOUGH_STRIKES:
            task.batch.put(task.start + index, [_answer_for(self._lost, task.items[index], death.why)])
        else:
            yield _Task(task.batch, task.start + index, [task.items[index]], alone=True, strikes=strikes)
        if after.items:
            yield after

    def _fail(self, tasks: Sequence[_Task[I, A]], error: Exception) -> None:
        """Fail the only task with `error`; requeue several tasks separately, so that each gets its own error."""
        if len(tasks) == 1:
            tasks[0].fail(error)
        else:
            self._requeue([replace(task, alone=True) for task in tasks])

    def _tick(self) -> None:
        workers = self._threads[:-1]
        while any(thread.is_alive() for thread in workers):
            if self._closing.wait(TICK_S):
                workers[0].join(TICK_S)
            for worker in tuple(self._workers):
                worker.tick(TICK_S)


def _joined(threads: Sequence[threading.Thread], timeout_s: float | None) -> bool:
    """Wait for `threads`, for `timeout_s` together if given; return whether all have ended."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    for thread in threads:
        thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def _kill_all(workers: set[WorkerProcess[I, A]]) -> None:
    """Also called at exit of a program that did not close its pool, so that it does not wait for workers."""
    for worker in tuple(workers):
        worker.kill()


def _indexes(tasks: Sequence[_Task[I, A]], index: int | None) -> Iterator[tuple[_Task[I, A], int | None]]:
    """Yield each task with the index, in its own items, of item `index` of all tasks; None if it is not in the task."""
    for task in tasks:
        yield task, index if index is not None and 0 <= index < len(task.items) else None
        index = None if index is None else index - len(task.items)


def _answer_for(lost: Callable[[I, str], A], item: I, why: str) -> A | Exception:
    try:
        return lost(item, why)
    except Exception as error:
        return error


def _closed() -> WorkersError:
    return WorkersError("the workers were closed before this page's turn: submit it to new ones")
