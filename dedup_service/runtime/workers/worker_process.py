"""How worker processes start, and what they must not do.

They come from a fork server, so they inherit neither threads nor the reactor. They never import the
program's main module: a crawl script without an `if __name__ == "__main__"` guard would start itself again.
They leave Ctrl-C to the parent, yield the processor to its event loop, and end when it ends, however
it ended.

One worker process and the pipe to it, seen from both ends.

Goal: hand a few items over, get their answers, or learn which item the process died over and how.
How: the worker notes in a shared integer which item is in hand, counted from its first, so that a death has a name
without a message for each item. A thread of it reads ahead: the next items may be there while it is at work, so it
waits less for its owner, who has other things to do; and neither waits for ever at a pipe that is full. An item may use
so much processor time; past it the kernel ends the process, whatever C code is running, and a worker that was only
frozen is not blamed. One that stands still for twice as long is killed by its owner.
Invariant: the pipe belongs to this one process. A worker killed in the middle of a write spoils nobody's pipe, unlike
in concurrent.futures, where workers share one pipe and one lock, and the pool waits for ever.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from queue import SimpleQueue
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

from dedup_service.core.errors import TwinsieveError

__all__ = ["Job", "WorkerDied", "WorkerProcess", "WorkersError", "behave_as_worker", "worker_context"]

NICENESS = 5


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class _WorkerProcess(ForkServerProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's name
        with _main_module_hidden():
            return ForkServerProcess._Popen(process_obj)  # noqa: SLF001


class _WorkerContext(ForkServerContext):
    """A multiprocessing context whose processes do not know the main module."""

    Process = _WorkerProcess


def worker_context(*preloaded: str) -> ForkServerContext:
    """Return the context whose processes start from a fork server that has imported the modules `preloaded`.

    Python has one fork server a process: whoever starts it decides, and other workers find the modules loaded too.
    """
    context = _WorkerContext()
    if preloaded:
        context.set_forkserver_preload(list(preloaded))
    return context


def behave_as_worker() -> None:
    """Called first in each worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


I = TypeVar("I")  # noqa: E741 - an item
A = TypeVar("A")

NOT_BEGUN = -1
LOST_CODE = 255
"""The exit code where the fork server that would know it is dead, which says nothing of the worker."""

START_LIMIT_S = 300.0
"""Compiled loops that nobody has kept yet take their time on a busy machine."""

ENOUGH_STRIKES = 4
"""An item that ends its worker twice is found out; SIGKILL may come from outside, so it takes four of them."""


@dataclass(frozen=True, slots=True)
class Job(Generic[I, A]):
    """What workers do; it travels to them, so everything in it can be pickled.

    work: item → answer. get_ready: called once in each worker before its first item. timeout_s: processor seconds an
    item may use. preload: modules that the fork server has imported, so that workers start with them.
    """

    work: Callable[[I], A]
    get_ready: Callable[[], None]
    timeout_s: float
    preload: tuple[str, ...] = ()


class WorkersError(TwinsieveError):
    """Worker processes do not start, or were closed. Look at memory and limits of processes, then start again."""

    retryable: ClassVar[bool] = True


class WorkerDied(Exception):  # noqa: N818 - an event, not a fault of the caller
    """The worker is no more. at: index of the item in hand, among all that it had; None where it had begun none."""

    def __init__(self, at: int | None, strikes: int, why: str) -> None:
        super().__init__(why)
        self.at = at
        self.strikes = strikes
        self.why = why


class WorkerProcess(Generic[I, A]):
    """A process that is starting or ready. One thread calls `wait_ready`, `begin` and `end`; any `kill` and `tick`."""

    def __init__(self, job: Job[I, A]) -> None:
        self._job = job
        self._killed_for_time = False
        self._is_ready = False
        self._runs: deque[int] = deque()
        self._ended = 0
        self._still_s = 0.0
        self._mark = (0, NOT_BEGUN)
        context = worker_context(*job.preload)
        self._progress = context.RawValue("i", NOT_BEGUN)
        self._pipe, theirs = connection.Pipe()
        try:
            self._process = _started(context, theirs, self._progress, job)
        finally:
            theirs.close()

    @property
    def ready(self) -> bool:
        """Whether `wait_ready` would return at once."""
        if not self._is_ready:
            with suppress(OSError):  # closed by its own thread in the meantime
                return self._pipe.poll()
        return True

    @property
    def started(self) -> bool:
        """Whether it has got ready once; asks nobody."""
        return self._is_ready

    @property
    def busy(self) -> bool:
        """Whether it has items in hand."""
        return bool(self._runs)

    @property
    def held(self) -> int:
        """Runs that were begun and not ended."""
        return len(self._runs)

    def wait_ready(self) -> None:
        """Return once the worker takes items; Died, or the error that `get_ready` raised."""
        if self._is_ready:
            return
        try:
            problem = self._pipe.recv()
        except (EOFError, OSError):
            raise self._death() from None
        self._is_ready = True
        if problem is not None:
            raise problem

    def begin(self, items: Sequence[I]) -> None:
        """Hand a run over; where the worker is dead, `end` says so."""
        packed = [pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items]
        self._runs.append(len(items))
        with suppress(OSError):
            self._pipe.send(packed)

    def end(self) -> list[A | Exception]:
        """Return an answer or an error for each item of the oldest run, in order; Died where there are none."""
        try:
            answers: list[A | Exception] = self._pipe.recv()
        except (EOFError, OSError):
            raise self._death() from None
        finally:
            self._ended += self._runs.popleft()
        return answers

    def tick(self, passed_s: float) -> None:
        """Note that time passed, and kill the worker where it stands still; frozen with its owner, it ages not."""
        mark = (self._ended, self._progress.value)
        at_rest = self._is_ready and not self._runs
        if mark != self._mark or at_rest or (not self._is_ready and self.ready):
            self._mark, self._still_s = mark, 0.0
            return
        self._still_s += passed_s
        limit_s = 2 * self._job.timeout_s if self._is_ready else START_LIMIT_S
        if self._still_s > limit_s:
            self._killed_for_time = True
            self.kill()

    def stop(self) -> None:
        """Let the worker end, and make it."""
        self._pipe.close()
        self._process.join(1.0)
        self.kill()
        self._process.join()

    def kill(self) -> None:
        """End the worker now, also where it is stopped."""
        if self._process.exitcode in {None, LOST_CODE}:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    def _death(self) -> WorkerDied:
        """What is known of the end: an unknown cause is taken for one from outside."""
        self.kill()  # its pipe is closed, so it is of no use
        self._process.join()
        self._pipe.close()
        in_hand: int = self._progress.value - self._ended
        at = None if in_hand < 0 else in_hand
        timeout_s = self._job.timeout_s
        code = self._process.exitcode
        if code == -signal.SIGPROF:
            return WorkerDied(at, ENOUGH_STRIKES, f"took longer than {timeout_s:g} s")
        if self._killed_for_time:
            return WorkerDied(at, ENOUGH_STRIKES // 2, f"stood still for more than {2 * timeout_s:g} s, twice")
        outside = code in {None, LOST_CODE, -signal.SIGKILL, -signal.SIGTERM}
        why = "the worker process died over this page, " + ("again and again" if outside else "twice")
        return WorkerDied(at, 1 if outside else ENOUGH_STRIKES // 2, why)


_starting = threading.Lock()
"""Starting a process hides the main module for a moment, which two threads must not do at once."""


def _started(context: ForkServerContext, theirs: Any, progress: Any, job: Job[Any, Any]) -> Any:
    process = context.Process(target=_serve, args=(theirs, progress, job), name="twinsieve-worker", daemon=True)
    try:
        with _starting:
            process.start()
    except (EOFError, OSError) as error:  # the fork server was killed at this moment; the next start brings a new one
        raise WorkerDied(None, 0, f"the worker process did not start: {error!r}") from None
    return process


def _serve(pipe: Any, progress: Any, job: Job[Any, Any]) -> None:
    """The worker: answer until the pipe is closed."""
    behave_as_worker()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to a whole group, it asks the parent to finish what it has
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    try:
        job.get_ready()
    except Exception as error:
        pipe.send(error)
        return
    pipe.send(None)
    waiting: SimpleQueue[Sequence[bytes] | None] = SimpleQueue()
    threading.Thread(target=_read_ahead, args=(pipe, waiting), daemon=True).start()
    begun = 0
    while (packed := waiting.get()) is not None:
        answers = [_answer(item, number, progress, job) for number, item in enumerate(packed, begun)]
        begun += len(packed)
        try:
            pipe.send(answers)
        except OSError:
            return


def _read_ahead(pipe: Any, waiting: "SimpleQueue[Sequence[bytes] | None]") -> None:
    """Take runs from the pipe as they come: its owner hands over a few at most."""
    try:
        while True:
            waiting.put(pipe.recv())
    except (EOFError, OSError):
        waiting.put(None)


def _answer(item: bytes, number: int, progress: Any, job: Job[Any, Any]) -> Any:
    """Return the answer to one item, or the error it raised, within its time."""
    progress.value = number
    signal.setitimer(signal.ITIMER_PROF, job.timeout_s)
    try:
        return job.work(pickle.loads(item))  # noqa: S301 - our own process packed it
    except Exception as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
