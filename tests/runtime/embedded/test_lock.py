"""One process at a time on a state folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dedup_service.runtime.embedded.database import StateInUseError
from dedup_service.runtime.embedded.folder import StateLock

HOLD = """
import sys
from pathlib import Path
from dedup_service.runtime.embedded.folder import StateLock
lock = StateLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_the_second_comer_learns_who_has_it(tmp_path: Path) -> None:
    """The error names the folder and the process that holds it, and can be retried; after the holder dies it works."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StateInUseError, match=f"in use by process {holder.pid}") as error:
            StateLock(tmp_path).acquire()
        assert str(tmp_path) in str(error.value)
        assert error.value.retryable
        holder.kill()
    lock = StateLock(tmp_path)
    lock.acquire()
    lock.release()


def test_one_process_cannot_hold_it_twice(tmp_path: Path) -> None:
    """A second filter in the same process is refused too; released, the folder can be had again."""
    first, second = StateLock(tmp_path), StateLock(tmp_path)
    first.acquire()
    with pytest.raises(StateInUseError, match=f"by process {os.getpid()}"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()
