"""How many cores a process may use."""

import os

__all__ = ["usable_cores"]


def usable_cores() -> int:
    """Return the number of cores that the system lets this process use: those of a machine, or of its affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
