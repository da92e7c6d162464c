"""One process at a time on a state folder."""

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


def test_a_second_process_learns_which_process_has_the_folder(tmp_path: Path) -> None:
    """The error names the folder and the process, and is retryable; after that process dies, the lock is free."""
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
