"""Run a command that is killed when its parent ends for any reason (Linux).

    python die_with_parent.py PARENT_PID COMMAND…

PR_SET_PDEATHSIG survives exec, so this small program sets it and then becomes the command. It is a separate
program because `preexec_fn` would run Python between fork and exec, which can deadlock if the parent has
threads. Two traps of prctl(2): the signal is sent when the *thread* that started the child ends, not the
process, so one thread that lives as long as the process starts all children (`start_dying_with_parent`); and
a parent that died before the call is never reported, hence the check of getppid().
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1


def start_dying_with_parent(command: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start `command` in a new session, which Ctrl-C does not reach; it is killed when this process ends."""
    wrapped = [sys.executable, "-I", "-S", str(Path(__file__)), str(os.getpid()), *command]
    return _starter(os.getpid()).submit(_start, wrapped, output).result()


def _start(command: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


@cache
def _starter(_pid: int) -> ThreadPoolExecutor:
    """Return the one thread of this process that starts children. A fork does not inherit its parent's."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="die-with-parent")


def _become(parent: int, command: Sequence[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(f"The parent process {parent} has already ended.")
    os.execvp(command[0], list(command))  # noqa: S606


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
