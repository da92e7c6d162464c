"""Run a command that is killed when its parent dies, however that dies (Linux).

    python tether.py PARENT_PID COMMAND…

PR_SET_PDEATHSIG survives exec, so this small program asks for it and then becomes the command. That is why it is a
program: asked for in `preexec_fn` it would run Python between fork and exec, which can deadlock when the parent has
threads. Two traps of prctl(2): the signal comes when the *thread* that started the child ends, not the process, so
all children are started by one thread that lives as long as the process (`start_tethered`); and a parent that died
before the call is never reported, hence the look at getppid().
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
    """Start `command` in a session of its own (Ctrl-C is not for it), its output in `output`, killed when we die."""
    wrapped = [sys.executable, "-I", "-S", str(Path(__file__)), str(os.getpid()), *command]
    return _starter(os.getpid()).submit(_start, wrapped, output).result()


def _start(command: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


@cache
def _starter(_pid: int) -> ThreadPoolExecutor:
    """The one thread of this process (a fork has none of its parent's) that starts children."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="tether")


def _become(parent: int, command: Sequence[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(f"The parent {parent} is gone already.")
    os.execvp(command[0], list(command))  # noqa: S606


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
