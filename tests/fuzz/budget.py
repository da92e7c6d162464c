"""A budget of processor time and memory for one example, so that a hang is a finding and not a hanging run.

Time is bounded in three steps, all of them in processor time, because a loaded machine must not look like a slow
parser. Python code is interrupted at the limit. Native code cannot be interrupted: at `KILL` times the limit the
system ends the process, and `make fuzz`, which runs each parser in a process of its own, reports the inputs that it
was given. What ends by itself is compared with the limit afterwards.

Memory is the growth of the resident set to its peak during the example, native allocations included, as Linux
counts it; elsewhere that part is left out. `make fuzz` also limits the address space of its processes.

The limits are generous multiples of what the slowest parser needs (HTML: 0.3 s and 60 MB for a megabyte): they
find what is not linear, and what is large from the start. How work grows is measured by `tests/core/test_hostile.py`.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

KILL = 5
CURRENT = "TWINSIEVE_FUZZ_CURRENT"
"""Environment variable: a file that has the number of the example that is running, and its inputs."""

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc_pid_clear_refs(5)


class OverBudgetError(BaseException):
    """Raised inside an example that uses too much time; no parser catches it, as `Exception` would be."""


class Budget:
    """Limits on one example: a base, and so much for each byte or character of its inputs."""

    def __init__(
        self, *, seconds: float = 2.0, microseconds_a_byte: float = 50, mebibytes: int = 64, bytes_a_byte: int = 500
    ) -> None:
        self._seconds, self._a_byte = seconds, microseconds_a_byte / 1e6
        self._bytes, self._bytes_a_byte = mebibytes << 20, bytes_a_byte

    def seconds(self, size: int) -> float:
        """Return the processor time that inputs of that size may take."""
        return self._seconds + self._a_byte * size

    def memory(self, size: int) -> int:
        """Return the bytes by which the process may grow for inputs of that size."""
        return self._bytes + self._bytes_a_byte * size


_count = 0


def examples_run() -> int:
    """Return how many examples this process has run, those of shrinking included."""
    return _count


@contextmanager
def within(*inputs: object, budget: Budget | None = None) -> Iterator[None]:
    """Run one example within its budget; AssertionError if it takes more. inputs: what a stranger sent."""
    global _count  # noqa: PLW0603 - one number for the process
    _count += 1
    size = sum(len(data) for data in inputs if isinstance(data, str | bytes))
    limits = budget or Budget()
    if (path := os.environ.get(CURRENT)) is not None:
        Path(path).write_text(f"{_count}\n{inputs!r}", "utf-8")
    before = _resident(reset=True)
    started = time.process_time()
    try:
        with _timer(limits.seconds(size)):
            yield
    except OverBudgetError:
        raise AssertionError(f"interrupted after {limits.seconds(size):.1f} s for {size:,} bytes") from None
    spent = time.process_time() - started
    assert spent <= limits.seconds(size), f"{spent:.1f} s for {size:,} bytes"
    grown = _resident() - before
    assert grown <= limits.memory(size), f"{grown >> 20:,} MiB for {size:,} bytes"


@contextmanager
def _timer(limit_s: float) -> Iterator[None]:
    """Interrupt Python code at the limit, and end the process if native code does not return."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise OverBudgetError

    old = signal.signal(signal.SIGVTALRM, interrupt)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    signal.setitimer(signal.ITIMER_PROF, KILL * limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGVTALRM, old)


def _resident(*, reset: bool = False) -> int:
    """Return the peak of the resident set in bytes; reset: what it is now, and the peak begins again."""
    try:
        if reset:
            _CLEAR.write_text(_RESET_PEAK, "ascii")
        return int(_STATUS.read_text("ascii").partition("VmHWM:")[2].split()[0]) << 10
    except OSError:
        return 0
