"""A store that was killed at any instant has the last commit, and nothing of an erased page.

`make test` kills 20 times, `make test-long` 200 times.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from dedup_service.runtime.store.page_store import PageStore
from tests.runtime.store.killed import later_erasures, replay, step_of
from tests.runtime.store.pages import LABEL, Oracle, assert_equal, contents
from tests.runtime.store.tables import Model, assert_same, restored

ROOT = Path(__file__).parents[3]
KILLS_A_FOLDER = 7


@contextmanager
def nursery(folder: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    """Start `killed`, and yield its input and output."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.runtime.store.killed", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdin, process.stdout
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


def finished_before_kill(commands: IO[str], lines: IO[str], folder: Path, seed: int, delay_s: float) -> int:
    """Run a process on the store, kill it, and return the last operation that it finished; 0 without one."""
    commands.write(f"{folder} {seed}\n")
    commands.flush()
    finished, pid = 0, 0
    for line in lines:
        if line == "dead\n":
            return finished
        if line.startswith("pid "):
            pid = int(line.split()[1])
            time.sleep(delay_s)  # the instant is random; nothing is waited for
            os.kill(pid, signal.SIGKILL)
        else:
            finished = int(line)
    raise AssertionError("the nursery ended")


def check(folder: Path, seed: int, finished: int, committed: int) -> int:
    """Compare the store with the oracle; return its last commit. committed: the least that it may be.

    finished: the last operation that any process on this store has finished.
    """
    store = PageStore.open(folder, LABEL)
    try:
        last = store.manifest.sequence
        assert last >= committed
        oracle, model = Oracle(), Model()
        replay(seed, last, oracle, model)
        for row, number in later_erasures(seed, last, max(last, finished), oracle).items():
            found = contents(store, [row])[row]
            if number <= finished or found != oracle.rows[row]:  # finished, or perhaps finished: nothing in between
                oracle.rows[row].erase()
        assert_equal(store, oracle)
        store.verify()
        tables, images, _ = restored(store, model)
        assert_same(tables, model)
        images.close()
        return last
    finally:
        store.close()


def last_commit(seed: int, before: int, finished: int) -> int:
    """Return the last commit up to operation `finished`; `before` is one."""
    kinds = {number: step_of(seed, number, []).kind for number in range(before + 1, finished + 1)}
    return max((number for number, kind in kinds.items() if kind == "commit"), default=before)


def kill_many(folder: Path, kills: int, seed: int) -> None:
    """Kill processes that work on stores, and check after each kill; every few kills begin a new store."""
    rng = random.Random(seed)
    with nursery(folder / "warm") as (commands, lines):
        for first in range(0, kills, KILLS_A_FOLDER):
            store, own_seed, last, most = folder / str(first), seed + first, 0, 0
            for _ in range(min(KILLS_A_FOLDER, kills - first)):
                finished = finished_before_kill(commands, lines, store, own_seed, rng.random() ** 2 * 0.6)
                most = max(most, finished)
                last = check(store, own_seed, most, last_commit(own_seed, last, finished))


def test_a_killed_store_has_its_last_commit(tmp_path: Path) -> None:
    """Rows, evidence, names, texts and tables, at whatever instant the process ends."""
    kill_many(tmp_path, 20, seed=1)


@pytest.mark.long
def test_a_store_killed_many_times_has_its_last_commit(tmp_path: Path) -> None:
    """The same, 200 times, with other operations."""
    kill_many(tmp_path, 200, seed=1000)


def test_operations_are_the_same_again(tmp_path: Path) -> None:
    """The oracle finds the operations of a process by their numbers."""
    first, second = Oracle(), Oracle()
    model, again = Model(), Model()
    assert replay(5, 60, first, model) == replay(5, 60, second, again)
    assert first.rows == second.rows
    assert_same(model.tables, again)
