"""`twinsieve serve` as processes that die and come back, as under a supervisor.

A service belongs to us: killed when we die (deploy.kafka.die_with_parent), with all that it started. Its output goes
through a
pipe into a file, so that a limit on the size of its files does not silence it.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import Popen

from deploy.kafka.die_with_parent import start_dying_with_parent

__all__ = ["Fleet", "ServiceProcess", "descendants"]

RESTART_AFTER_S = 0.3


class ServiceProcess:
    """One `serve` process with its state folder and its log file, started any number of times."""

    def __init__(self, name: str, arguments: Sequence[str], state: Path, log: Path) -> None:
        self.name = name
        self.state = state
        self.log = log
        self.starts = 0
        self.wanted = False
        self._arguments = arguments
        self._process: Popen[bytes] | None = None
        self._turn = threading.RLock()  # whoever ends a service must not meet the supervisor that starts it

    @property
    def pid(self) -> int | None:
        """Its process id while it runs (or is stopped)."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """Of the last run that ended."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it, unless it runs."""
        with self._turn:
            self.wanted = True
            if self.pid is None:
                self._start()

    def revive(self) -> str | None:
        """Start it where it should run and does not; returns how it ended then."""
        with self._turn:
            if not self.wanted or self.pid is not None:
                return None
            ended = f"{self.name} ended with {self.exit_code}: {self.last_line}"
            self._start()
            return ended

    @property
    def last_line(self) -> str:
        """What its log says last."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return lines[-1][:500] if lines else ""

    def kill(self) -> None:
        """SIGKILL to the service alone; what it started is on its own."""
        self._end(signal.SIGKILL)

    def terminate(self, timeout_s: float) -> bool:
        """SIGTERM, and wait; returns whether it ended in time. Where it did not, its threads are in its log."""
        with self._turn:
            self.wanted = False
            self.send(signal.SIGTERM)
        return self.ended_within(timeout_s)

    def ended_within(self, timeout_s: float) -> bool:
        """Wait for its end; SIGABRT where that does not come in time."""
        deadline = time.monotonic() + timeout_s
        while self.pid is not None and time.monotonic() < deadline:
            time.sleep(0.02)
        if self.pid is None:
            return True
        self._end(signal.SIGABRT)  # faulthandler writes where each thread stands
        return False

    def send(self, number: signal.Signals) -> None:
        """Send a signal, where it runs."""
        if self._process is not None:
            self._process.send_signal(number)  # does nothing once the end was noticed

    def dump_threads(self) -> None:
        """Have where each of its threads stands written to its log; that ends it."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGABRT)  # faulthandler's

    def _start(self) -> None:
        self.starts += 1
        read, write = os.pipe()
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "dedup_service.interfaces.cli",
            "serve",
            *self._arguments,
        ]
        with os.fdopen(write, "wb") as output:
            self._process = start_dying_with_parent([*command, "--state", str(self.state)], output)
        threading.Thread(target=self._pump, args=(read, self.starts), daemon=True).start()

    def _end(self, number: signal.Signals) -> None:
        with self._turn:
            self.wanted = False
            process = self._process
            if process is not None:
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
                process.wait(20)

    def _pump(self, read: int, run: int) -> None:
        with os.fdopen(read, "rb") as lines, self.log.open("ab") as log:
            log.write(f"=== {self.name}, run {run}, {time.strftime('%X')}\n".encode())
            for line in lines:
                log.write(f"{time.time():.3f} ".encode() + line)
                log.flush()


class Fleet:
    """Services under a supervisor: one that ends by itself is started again. tell: gets a sentence for each end."""

    def __init__(self, services: Sequence[ServiceProcess], tell: Callable[[str], None]) -> None:
        self.services = list(services)
        self._tell = tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self.crashes: list[str] = []

    def start(self) -> None:
        """Start all, and watch them."""
        for service in self.services:
            service.start()
        self._thread.start()

    def close(self, timeout_s: float = 20.0) -> list[str]:
        """End all with SIGTERM, all at once; returns the names of those that had to be killed."""
        self._stop.set()
        self._thread.join()
        for service in self.services:
            service.wanted = False
            service.send(signal.SIGTERM)  # the first one asks, a second one forces
        return [service.name for service in self.services if not service.ended_within(timeout_s)]

    def _supervise(self) -> None:
        while not self._stop.wait(RESTART_AFTER_S):
            for service in self.services:
                ended = service.revive()
                if ended is not None:
                    self.crashes.append(ended)
                    self._tell(f"{ended}; started again")


def descendants(pid: int) -> list[int]:
    """Return the processes that `pid` started, and theirs, youngest generation last."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            try:
                children = [int(word) for word in task.read_text().split()]
            except OSError:  # it ended while we looked
                continue
            found += children
            waiting += children
    return found
