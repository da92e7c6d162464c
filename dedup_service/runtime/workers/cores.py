"""How many cores a process may use.

A container with two of 64 cores sees all of them, and has the time of two: more workers than that would wait for each
other, and each needs memory.
Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (cpu.max)
"""

import math
import os
from contextlib import suppress
from pathlib import Path

GROUPS, OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def usable_cores() -> int:
    """Return the number of cores that the system lets this process use: of the machine, its affinity, its groups."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, *map(math.ceil, _limits())))


def _limits() -> list[float]:
    """Return how many cores' time the control group of this process has, and those above it, where there is a limit."""
    limits: list[float] = [os.cpu_count() or 1]
    with suppress(OSError, ValueError, StopIteration):
        group = next(line for line in OWN_GROUP.read_text(encoding="utf-8").splitlines() if line.startswith("0::/"))
        folder = GROUPS / group.removeprefix("0::/")
        for above in (folder, *folder.parents[: len(folder.parts) - len(GROUPS.parts)]):
            with suppress(OSError, ValueError, ZeroDivisionError):  # no limit is "max"
                time, period = (above / "cpu.max").read_text(encoding="utf-8").split()
                limits.append(int(time) / int(period))
    return limits
