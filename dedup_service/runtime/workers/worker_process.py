"""One worker process and the pipe to it: both ends, and how the process starts.

Goal: send a run of items, get their answers, or learn over which item the process died and how.
How: the worker writes the number of its current item to a shared integer, so that a death is attributed without a
message for each item. A thread in the worker reads ahead: the next run may arrive while the worker is busy, so it waits
less for the parent, and neither side blocks indefinitely on a full pipe. Each item has a limit of processor time; when
it is exceeded, the kernel ends the process, whatever C code is running, while a suspended worker is not affected. A
worker without progress for twice as long, or a minute if that is longer, is killed by the parent.
Invariant: each process has its own pipe. A worker that is killed in the middle of a write affects no other, unlike in
concurrent.futures, where workers share one pipe and one lock, and the pool then waits indefinitely.

Processes start from a fork server, so they inherit neither threads nor the reactor. They never import the program's
main module: a crawl script without an `if __name__ == "__main__"` guard would otherwise start itself again. They ignore
Ctrl-C, which the parent handles, run at a lower priority than its event loop, and end when it ends, however it ends.
"""

import ctypes
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
from dedup_service.runtime.workers.page_limits import PAGE_MEMORY_MB, MemoryLimit

NICENESS = 5
PR_SET_PDEATHSIG = 1  # of Linux, prctl(2)


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
    """A multiprocessing context whose processes do not import the main module."""

    Process = _WorkerProcess


def worker_context(*preloaded: str) -> ForkServerContext:
    """Return the context whose processes start from a fork server that has imported the modules `preloaded`.

    Python has one fork server per process: the first caller decides, and all later workers find these modules loaded.
    """
    context = _WorkerContext()
    if preloaded:
        context.set_forkserver_preload(list(preloaded))
    return context


def behave_as_worker() -> None:
    """Set up a worker process; call it first in each one."""
    _die_with_fork_server()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _die_with_fork_server() -> None:
    """Let the kernel kill this process when the fork server ends, which it does with the program.

    `_end_with_parent` does so on every platform, but not while native code holds the interpreter lock.
    """
    if sys.platform != "linux":
        return
    server = os.getppid()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != server:
        os._exit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


I = TypeVar("I")  # noqa: E741 - an item
A = TypeVar("A")

NOT_BEGUN = -1
LOST_CODE = 255
"""The exit code if the fork server, which would know it, is dead; it says nothing about the worker."""

START_LIMIT_S = 300.0
"""Time limit of a start, which takes a second or less: a busy machine or a slow disk may need much longer."""

STILL_S = 60.0
"""Least time without progress after which a worker is killed: on a busy machine it may wait long for a processor."""

ENOUGH_STRIKES = 4
"""Strikes with which an item is given up. A death that the item caused is two strikes; SIGKILL may come from outside,
so it is one."""


@dataclass(frozen=True, slots=True)
class Job(Generic[I, A]):
    """What workers do. It is sent to them, so everything in it must be picklable.

    work: item → answer. get_ready: called once in each worker before its first item. timeout_s: processor seconds that
    an item may use. memory_mb: MiB that it may use beyond what the worker has. preload: modules that the fork server
    imports, so that workers start with them.
    """

    work: Callable[[I], A]
    get_ready: Callable[[], None]
    timeout_s: float
    memory_mb: int = PAGE_MEMORY_MB
    preload: tuple[str, ...] = ()


class WorkersError(TwinsieveError):
    """Worker processes do not start, or were closed. Check memory and process limits, then start new ones."""

    retryable: ClassVar[bool] = True


class WorkerDied(Exception):  # noqa: N818 - an event, not a fault of the caller
    """The worker died.

    index: of its current item among all that it had, None if it had begun none. strikes: to count against that item.
    """

    def __init__(self, index: int | None, strikes: int, why: str) -> None:
        super().__init__(why)
        self.index = index
        self.strikes = strikes
        self.why = why


class WorkerProcess(Generic[I, A]):
    """A process that is starting or ready. Only `kill` and `tick` may be called from several threads."""

    def __init__(self, job: Job[I, A]) -> None:
        self._job = job
        self._killed_for_time = False
        self._is_ready = False
        self._runs: deque[int] = deque()
        self._ended = 0
        self._idle_s = 0.0
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
            with suppress(OSError):  # closed by its thread in the meantime
                return self._pipe.poll()
        return True

    @property
    def started(self) -> bool:
        """Whether `wait_ready` has returned; does not poll."""
        return self._is_ready

    @property
    def busy(self) -> bool:
        """Whether it has unanswered items."""
        return bool(self._runs)

    @property
    def held(self) -> int:
        """Number of runs that were begun and not ended."""
        return len(self._runs)

    def wait_ready(self) -> None:
        """Wait until the worker takes items; WorkerDied, or the error that `get_ready` raised."""
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
        """Send a run; if the worker is dead, `end` raises."""
        packed = [pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items]
        self._runs.append(len(items))
        with suppress(OSError):
            self._pipe.send(packed)

    def end(self) -> list[A | Exception]:
        """Return an answer or an error for each item of the oldest run, in order; WorkerDied if there are none."""
        try:
            answers: list[A | Exception] = self._pipe.recv()
        except (EOFError, OSError):
            raise self._death() from None
        finally:
            self._ended += self._runs.popleft()
        return answers

    def tick(self, passed_s: float) -> None:
        """Count time without progress, and kill the worker above the limit.

        Time suspended with the parent is not counted.
        """
        mark = (self._ended, self._progress.value)
        at_rest = self._is_ready and not self._runs
        if mark != self._mark or at_rest or (not self._is_ready and self.ready):
            self._mark, self._idle_s = mark, 0.0
            return
        self._idle_s += passed_s
        if self._idle_s > (self._still_s if self._is_ready else START_LIMIT_S):
            self._killed_for_time = True
            self.kill()

    def stop(self) -> None:
        """Let the worker end, and kill it after a second."""
        self._pipe.close()
        self._process.join(1.0)
        self.kill()
        self._process.join()

    def kill(self) -> None:
        """Kill the worker, even if it is stopped by a signal."""
        if self._process.exitcode in {None, LOST_CODE}:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    @property
    def _still_s(self) -> float:
        return max(2 * self._job.timeout_s, STILL_S)

    def _death(self) -> WorkerDied:
        """Return what is known of the death; an unknown cause counts as one from outside."""
        self.kill()  # without its pipe it is useless
        self._process.join()
        self._pipe.close()
        current: int = self._progress.value - self._ended
        index = None if current < 0 else current
        timeout_s = self._job.timeout_s
        code = self._process.exitcode
        if code == -signal.SIGPROF:
            return WorkerDied(index, ENOUGH_STRIKES, f"took longer than {timeout_s:g} s")
        if self._killed_for_time:
            return WorkerDied(index, ENOUGH_STRIKES // 2, f"stood still for more than {self._still_s:g} s, twice")
        if code == -signal.SIGABRT:
            return WorkerDied(index, ENOUGH_STRIKES, "aborted, as native code does that gets no more memory")
        outside = code in {None, LOST_CODE, -signal.SIGKILL, -signal.SIGTERM}
        why = "the worker process died over this page, " + ("again and again" if outside else "twice")
        return WorkerDied(index, 1 if outside else ENOUGH_STRIKES // 2, why)


_starting = threading.Lock()
"""A start hides the main module for a moment, which two threads must not do at once."""


def _started(context: ForkServerContext, theirs: Any, progress: Any, job: Job[Any, Any]) -> Any:
    process = context.Process(target=_serve, args=(theirs, progress, job), name="twinsieve-worker", daemon=True)
    try:
        with _starting:
            process.start()
    except (EOFError, OSError) as error:  # the fork server was killed just now; the next start creates one
        raise WorkerDied(None, 0, f"the worker process did not start: {error!r}") from None
    return process


def _serve(pipe: Any, progress: Any, job: Job[Any, Any]) -> None:
    """The main function of a worker: answer items until the pipe is closed."""
    behave_as_worker()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to a process group, it asks the parent to finish its batch
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    problem = _problem_of_start(job)
    try:
        pipe.send(problem)
    except OSError:  # stopped while it started
        return
    if problem is not None:
        return
    waiting: SimpleQueue[Sequence[bytes] | None] = SimpleQueue()
    threading.Thread(target=_read_ahead, args=(pipe, waiting), daemon=True).start()
    begun, memory = 0, MemoryLimit(job.memory_mb)
    while (packed := waiting.get()) is not None:
        answers = [_answer(item, number, progress, job, memory) for number, item in enumerate(packed, begun)]
        begun += len(packed)
        try:
            pipe.send(answers)
        except OSError:
            return


def _problem_of_start(job: Job[Any, Any]) -> Exception | None:
    try:
        job.get_ready()
    except Exception as error:
        return error
    return None


def _read_ahead(pipe: Any, waiting: "SimpleQueue[Sequence[bytes] | None]") -> None:
    """Take runs from the pipe as they arrive; the parent sends only a few ahead."""
    try:
        while True:
            waiting.put(pipe.recv())
    except (EOFError, OSError, MemoryError):  # a run that arrives while a page uses all memory: the next worker gets it
        waiting.put(None)


def _answer(item: bytes, number: int, progress: Any, job: Job[Any, Any], memory: MemoryLimit) -> Any:
    """Return the answer to one item, or the error that it raised, within its limits."""
    progress.value = number
    signal.setitimer(signal.ITIMER_PROF, job.timeout_s)
    try:
        with memory.applied():
            return job.work(pickle.loads(item))  # noqa: S301 - our own process packed it
    except Exception as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
