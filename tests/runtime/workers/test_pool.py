"""Every item comes back from the pool, whatever it does to its worker and even if workers are killed."""

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page
from dedup_service.runtime.readers.jsonlines import JsonLine
from dedup_service.runtime.resources import SpaceOptions
from dedup_service.runtime.workers.pool import Pool
from dedup_service.runtime.workers.preparation import Preparer
from dedup_service.runtime.workers.worker_process import Job, WorkerProcess, WorkersError
from tests.hangs import HANG_S, wait_until

pytestmark = pytest.mark.slow

PAGE_BYTES = 300_000
LONG_S = 30.0
"""Processor time that no item of these tests takes, unless it never ends."""


def doubled(item: int) -> int:
    """The work of most tests."""
    return 2 * item


def grown(item: int) -> bytes:
    """An answer larger than a pipe's buffer, so that a worker can be killed in the middle of writing it."""
    return bytes([item % 256]) * PAGE_BYTES


def obeyed(item: object) -> object:
    """Do what the item says."""
    return item() if callable(item) else item


def same(item: object) -> object:
    """An answer as large as its item."""
    return item


def worker_of(item: object) -> int:
    """Return the process that answers."""
    return os.getpid()


def nothing() -> None:
    """A `get_ready` that does nothing."""


def refused() -> None:
    """A `get_ready` that fails."""
    raise ConfigurationError("there is no such table")


def lost(item: object, why: str) -> str:
    """The answer to an item that no worker survives."""
    return why


class Sleeping(JsonLine):
    """A line over which a worker sleeps."""

    def __init__(self) -> None:
        super().__init__(1, b'{"url": "https://a.example/s", "text": "a text"}')

    def text_page(self) -> Page | None:
        """Return None: it goes to a worker process."""
        return None

    def __reduce__(self) -> tuple[object, ...]:
        return time.sleep, (3600,)


def pool_of(
    work: Callable[[object], object],
    processes: int = 2,
    *,
    timeout_s: float = LONG_S,
    get_ready: Callable[[], None] = nothing,
    chunk: int = 4,
    ahead: bool = True,
    items_per_worker: int = 100_000,
) -> Pool[object, object]:
    """A pool that does `work`."""
    job = Job(work, get_ready, timeout_s)
    return Pool(job, processes, lost=lost, chunk=chunk, ahead=ahead, items_per_worker=items_per_worker)


@contextmanager
def closing_in_a_thread(pool: Pool[object, object]) -> Iterator[None]:
    """Do what is inside once `close` has been called, and wait for its end."""
    thread = threading.Thread(target=pool.close)
    thread.start()
    wait_until(pool._closing.is_set)
    yield
    thread.join(HANG_S)
    assert not thread.is_alive()


def children() -> set[int]:
    """Return the process ids of the current workers."""
    return {process.pid or 0 for process in multiprocessing.active_children()}


def kill(pids: set[int]) -> None:
    """Send SIGKILL; processes that have ended are ignored."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def wait_for_workers(count: int, before: set[int]) -> set[int]:
    """Return the workers started since `before`, once there are `count`."""
    wait_until(lambda: len(children() - before) >= count)
    return children() - before


def let_time_pass(pool: Pool[object, object], item: int, killed: "set[WorkerProcess[object, object]]") -> None:
    """Let more than the limit pass for the worker, none of `killed`, that works on the item of this number."""

    def workers() -> list[WorkerProcess[object, object]]:
        return [one for one in tuple(pool._workers) if one not in killed and one._progress.value == item]

    wait_until(workers)
    (worker,) = workers()
    worker.tick(0.0)  # notices the progress; the pool's own ticks are too short to matter
    worker.tick(3 * LONG_S)
    killed.add(worker)


def test_answers_are_in_the_order_of_the_items() -> None:
    """Batches are cut into tasks, and their answers are joined."""
    pool = pool_of(doubled)
    futures = [pool.submit(range(start, start + 10)) for start in range(0, 100, 10)]
    assert [answer for future in futures for answer in future.result()] == [2 * item for item in range(100)]
    assert pool.submit([]).result() == []
    pool.close()


@pytest.mark.parametrize("ahead", [True, False])
def test_sharing_of_work_proves_that_both_worked(ahead: bool) -> None:
    """Once both are ready, items come back from two processes; with one alone, it waits in vain."""
    pool = pool_of(worker_of, chunk=1, ahead=ahead)
    workers: set[int] = set()
    while len(workers) < 2:
        workers.update(pool.submit(range(8)).result(HANG_S))  # type: ignore[arg-type]
    assert os.getpid() not in workers
    pool.close()


@pytest.mark.parametrize("ahead", [True, False])
def test_pipes_full_in_both_directions_do_not_deadlock(ahead: bool) -> None:
    """Items larger than a pipe's buffer are sent while such answers arrive."""
    pool = pool_of(same, 1, ahead=ahead)
    items = [bytes([number]) * PAGE_BYTES for number in range(60)]
    assert pool.submit(items).result(HANG_S) == items
    pool.close()


@pytest.mark.parametrize("ahead", [True, False])
def test_a_worker_that_is_always_busy_is_replaced(ahead: bool) -> None:
    """Its successor takes over between two runs, and every item is answered."""
    pool = pool_of(worker_of, 1, chunk=5, ahead=ahead, items_per_worker=20)
    answered: list[object] = []
    while len(set(answered)) < 3:
        batches = [pool.submit(range(25)) for _ in range(20)]
        answered += [answer for batch in batches for answer in batch.result(HANG_S)]
    pool.close()


@pytest.mark.long
def test_workers_killed_while_they_write() -> None:
    """A pipe with half an answer is discarded with its worker, and the item is retried."""
    before = children()
    pool = pool_of(grown)
    stop = threading.Event()

    def killer() -> None:
        for _ in range(6):
            wait_until(lambda: stop.is_set() or pool.state().busy == 2)  # both are ready, and have items
            deaths = pool.state().deaths
            if not stop.is_set():
                kill(children() - before)
            wait_until(lambda deaths=deaths: stop.is_set() or pool.state().deaths > deaths)

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        futures = [pool.submit(range(start, start + 20)) for start in range(0, 900, 20)]
        answers = [answer for future in futures[:40] for answer in future.result(HANG_S)]
    finally:
        stop.set()
        thread.join()
    answers += [answer for future in futures[40:] for answer in future.result(HANG_S)]
    assert answers == [grown(item) for item in range(900)]
    assert pool.state().deaths
    pool.close()


def test_a_worker_that_is_stopped_is_replaced() -> None:
    """One without progress for twice the time limit is killed; its item is retried and succeeds."""
    before = children()
    pool = pool_of(obeyed, 1, chunk=1)
    pool.submit([1]).result(HANG_S)
    (worker,) = wait_for_workers(1, before)
    os.kill(worker, signal.SIGSTOP)
    future = pool.submit([2])
    wait_until(lambda: pool.state().busy)
    let_time_pass(pool, 0, set())
    assert future.result(HANG_S) == [2]
    pool.close()


def test_items_that_kill_their_worker_are_identified() -> None:
    """Each is tried twice, one that aborts once; the other items of the same task are done."""
    pool = pool_of(obeyed)
    items = [1, partial(os._exit, 1), 2, 3, partial(os.abort), 4, 5]
    died = "the worker process died over this page, twice"
    aborted = "aborted, as native code does that gets no more memory"
    assert pool.submit(items).result(HANG_S) == [1, died, 2, 3, aborted, 4, 5]
    pool.close()


def test_an_item_whose_worker_is_killed_each_time_is_identified() -> None:
    """The kernel kills for memory with a signal that may also come from outside, so it takes more tries."""
    pool = pool_of(obeyed, 1)
    died = "the worker process died over this page, again and again"
    assert pool.submit([1, partial(signal.raise_signal, signal.SIGKILL), 2]).result(HANG_S) == [1, died, 2]
    pool.close()


def test_an_item_that_computes_indefinitely() -> None:
    """C code that never returns to the interpreter is ended at the time limit."""
    pool = pool_of(obeyed, 1, timeout_s=0.5)
    items = [1, partial(sum, itertools.repeat(1)), 2]
    assert pool.submit(items).result(HANG_S) == [1, "took longer than 0.5 s", 2]
    pool.close()


def test_an_item_that_sleeps_indefinitely() -> None:
    """Waiting uses no processor time; it is ended, too."""
    pool = pool_of(obeyed, 1)
    future, killed = pool.submit([1, partial(time.sleep, 3600), 2]), set()
    for _ in range(2):
        let_time_pass(pool, 1, killed)
    assert future.result(HANG_S) == [1, f"stood still for more than {2 * LONG_S:g} s, twice", 2]
    pool.close()


def test_an_item_that_cannot_be_sent() -> None:
    """If it cannot be pickled, the caller gets the error."""
    pool = pool_of(obeyed, 1)
    with pytest.raises((TypeError, AttributeError)):
        pool.submit([threading.Lock()]).result(HANG_S)
    assert pool.submit([2]).result(HANG_S) == [2]
    pool.close()


def test_workers_that_cannot_get_ready() -> None:
    """The error of `get_ready` is raised by the future."""
    pool = pool_of(doubled, 1, get_ready=refused)
    with pytest.raises(ConfigurationError, match="no such table"):
        pool.submit([1]).result(HANG_S)
    pool.close()


def test_closing_finishes_started_items_and_returns_the_rest(tmp_path: Path) -> None:
    """The futures of waiting items end with WorkersError."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    pool = pool_of(obeyed, 1, chunk=1)
    started, *waiting = [pool.submit([item]) for item in (partial(Path.read_bytes, gate), *range(20))]
    wait_until(lambda: pool.state().busy)
    with closing_in_a_thread(pool):
        gate.write_bytes(b"open")
    assert started.result(0) == [b"open"]
    ended = [future.exception(0) for future in waiting]
    assert all(error is None or isinstance(error, WorkersError) for error in ended)
    assert isinstance(ended[-1], WorkersError)
    with pytest.raises(WorkersError, match="closed"):
        pool.submit([1])


def test_workers_start_with_the_first_item() -> None:
    """A pool that has had none can be closed at once; `start` lets them be ready earlier."""
    before = children()
    unused, started = pool_of(doubled), pool_of(doubled)
    assert unused.submit([]).result(0) == []
    started.start()
    started.start()
    wait_until(lambda: started.state().ready == 2)
    assert len(children() - before) == 2
    started.close()
    unused.close(0.0)
    unused.start()
    assert not children() - before


def test_closing_in_time_kills_workers_that_are_not_done() -> None:
    """Their items end with WorkersError, and no page is blamed: neither the one in progress nor those behind it."""
    before = children()
    pool = pool_of(obeyed, chunk=1)
    pool.submit([0]).result(HANG_S)
    futures = [pool.submit([partial(time.sleep, 3600)]) for _ in range(8)]
    wait_until(lambda: pool.state().busy == 2)
    pool.close(0.0)
    assert [type(future.exception(HANG_S)) for future in futures] == [WorkersError] * 8
    assert not children() - before


def test_an_error_in_a_block_with_workers_does_not_wait_for_them() -> None:
    """Nobody takes the answers: a command that fails, or is interrupted, ends at once."""
    answers = []

    def fail() -> None:
        with Preparer(SpaceOptions(), timeout_s=300) as preparer:
            preparer.submit([JsonLine(1, Sleeping().raw)]).result(HANG_S)
            answers.append(preparer.submit([Sleeping()]))
            wait_until(lambda: (state := preparer.pool_state()) is not None and state.busy)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert isinstance(answers[0].exception(0), WorkersError)
