"""A service that was killed at any instant of a snapshot or of a restore has the state of the log.

`make test` kills 12 times, `make test-all` 200 times.
"""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER
from dedup_service.runtime.store.manifest import MANIFEST, read_manifest

from .killed import records_of
from .list_log import ListLog
from .test_restore import run

ROOT = Path(__file__).parents[4]
KILLS_A_FOLDER = 6


def snapshot_at(folder: Path) -> int:
    """Return the sequence of the snapshot in a folder, 0 without one; what a kill left must be readable."""
    path = folder / PAGES_FOLDER
    return read_manifest(path).sequence if (path / MANIFEST).exists() else 0


def kill_many(folder: Path, kills: int, seed: int) -> list[int]:
    """Kill processes in folders, and compare the state after each; return where the snapshots were."""
    rng, places = random.Random(seed), list[int]()
    nursery = subprocess.Popen(
        [sys.executable, "-m", "tests.runtime.kafka.state.killed", str(folder / "warm")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    for number in range(kills):
        own_seed = seed + number // KILLS_A_FOLDER
        killed, log = folder / str(own_seed), ListLog(records_of(own_seed))
        if number % KILLS_A_FOLDER == 0:
            expected = run(folder / f"steady-{own_seed}", log)
        nursery.stdin.write(f"{killed} {own_seed}\n")
        nursery.stdin.flush()
        pid = int(nursery.stdout.readline().split()[1])
        time.sleep(rng.random() ** 2 * 0.8)  # the instant is random; nothing is waited for
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        assert nursery.stdout.readline() == "dead\n"
        places.append(snapshot_at(killed))
        assert run(killed, log) == expected
    nursery.stdin.close()
    nursery.wait(60)
    nursery.stdout.close()
    return places


def test_a_killed_service_has_the_state_of_the_log(tmp_path: Path) -> None:
    """Whatever instant it was killed at, and a second and a third time."""
    places = kill_many(tmp_path, 12, seed=1)
    assert any(places)


@pytest.mark.long
def test_a_service_killed_many_times_has_the_state_of_the_log(tmp_path: Path) -> None:
    """The same, 200 times, with other logs; no snapshot is lost by a kill."""
    places = kill_many(tmp_path, 200, seed=1000)
    for start in range(0, len(places), KILLS_A_FOLDER):
        of_folder = places[start : start + KILLS_A_FOLDER]
        assert of_folder == sorted(of_folder)
