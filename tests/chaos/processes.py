"""`twinsieve serve` processes that are killed and restarted, as under a supervisor.

A service and all that it started are killed when this process ends (`deploy.kafka.die_with_parent`). The
output of a service goes through a pipe into a file, so that a limit on its file size does not suppress its
log.
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
from tests.chaos.network import NetworkGate

RESTART_AFTER_S = 0.3


class ServiceProcess:
    """One `serve` process with its state folder and log file; may be started many times.

    kind: what it does, for faults of processes of a kind. arguments: of `serve`, for its next start. gate: its
    network, if it has one of its own. module: of the command line.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        state: Path,
        log: Path,
        *,
        kind: str = "service",
        gate: NetworkGate | None = None,
        module: str = "tests.impatient_serve",
    ) -> None:
        self.name = name
        self.kind = kind
        self.arguments = arguments
        self.state = state
        self.log = log
        self.gate = gate
        self._module = module
        self.starts = 0
        self.wanted = False
        self._process: Popen[bytes] | None = None
        self._turn = threading.RLock()  # the supervisor must not start a service while it is being ended

    @property
    def pid(self) -> int | None:
        """Its process id while it runs or is frozen, else None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last run, None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it if it does not run."""
        with self._turn:
            self.wanted = True
            if self.pid is None:
                self._start()

    def revive(self) -> str | None:
        """Restart it if it should run and does not; return how it ended in that case."""
        with self._turn:
            if not self.wanted or self.pid is not None:
                return None
            ended = f"{self.name} ended with {self.exit_code}: {self.last_line}"
            self._start()
            return ended

    @property
    def last_line(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return lines[-1][:500] if lines else ""

    def kill(self) -> None:
        """Send SIGKILL to the service alone, not to the processes that it started."""
        self._end(signal.SIGKILL)

    def terminate(self, timeout_s: float) -> bool:
        """Send SIGTERM; return whether it ended in time. If not, its log has the stack of each thread."""
        with self._turn:
            self.wanted = False
            self.send(signal.SIGTERM)
        return self.ended_within(timeout_s)

    def ended_within(self, timeout_s: float) -> bool:
        """Wait until it ends, and return whether it did in time; send SIGABRT if not."""
        deadline = time.monotonic() + timeout_s
        while self.pid is not None and time.monotonic() < deadline:
            time.sleep(0.02)
        if self.pid is None:
            return True
        self._end(signal.SIGABRT)  # faulthandler writes the stack of each thread
        return False

    def send(self, number: signal.Signals) -> None:
        """Send a signal if it was started."""
        if self._process is not None:
            self._process.send_signal(number)  # a no-op after the process ended and was polled

    def dump_threads(self) -> None:
        """Write the stack of each thread to its log (SIGABRT); this ends the process."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGABRT)  # handled by faulthandler

    def _start(self) -> None:
        self.starts += 1
        read, write = os.pipe()
        command = [
            *([] if self.gate is None else self.gate.command),
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            self._module,
            "serve",
            *self.arguments,
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
    """Services under a supervisor that restarts them. log: receives a sentence for each one that ended."""

    def __init__(self, services: Sequence[ServiceProcess], log: Callable[[str], None]) -> None:
        self.services = list(services)
        self._log = log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self.crashes: list[str] = []

    def start(self) -> None:
        """Start all services and the supervisor."""
        for service in self.services:
            service.start()
        self._thread.start()

    def close(self, timeout_s: float = 20.0) -> list[str]:
        """End all services together with SIGTERM; return the names of those that had to be killed."""
        self._stop.set()
        self._thread.join()
        for service in self.services:
            service.wanted = False
            service.send(signal.SIGTERM)  # only once: a second SIGTERM would force an immediate end
        return [service.name for service in self.services if not service.ended_within(timeout_s)]

    def _supervise(self) -> None:
        while not self._stop.wait(RESTART_AFTER_S):
            for service in list(self.services):
                ended = service.revive()
                if ended is not None:
                    self.crashes.append(ended)
                    self._log(f"{ended}; restarted")


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of process `pid`, the youngest generation last."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            try:
                children = [int(word) for word in task.read_text().split()]
            except OSError:  # it ended in the meantime
                continue
            found += children
            waiting += children
    return found
