"""Resource use of processes, from /proc: processor time in seconds, resident memory in bytes."""

import os
from collections.abc import Iterable
from pathlib import Path

from tests.chaos.processes import descendants

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_s(pids: Iterable[int]) -> float:
    """Return the processor seconds that these processes have used; an ended process counts as 0."""
    return sum(_cpu_s(pid) for pid in pids)


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the resident memory of these processes; memory that several share counts for each of them."""
    return sum(_resident_bytes(pid) for pid in pids)


def brokers() -> list[int]:
    """Return the ids of the Java processes among our descendants."""
    return [pid for pid in descendants(os.getpid()) if _read(pid, "comm").strip() == "java"]


def _cpu_s(pid: int) -> float:
    # The second field is a name in parentheses, which may contain any character.
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def _resident_bytes(pid: int) -> int:
    fields = _read(pid, "statm").split()
    return int(fields[1]) * _PAGE if fields else 0


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
