"""One node: a Java process, its folder and its log file.

Every process dies with this one (die_with_parent.py). A node that is killed keeps its data and its ports.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from deploy.kafka.config import HOST, NodeConfig
from deploy.kafka.die_with_parent import start_dying_with_parent
from deploy.kafka.errors import ClusterError
from deploy.kafka.readiness import brokers_known_to, wait_until

_LOG4J = Path(__file__).parent / "log4j2.properties"
_SHOWN_LINES = 40


class Node:
    """A broker and controller in one process; ClusterError with the end of its log if it does not start."""

    def __init__(self, config: NodeConfig, folder: Path, java: Sequence[str]) -> None:
        self.config = config
        self.log = folder / "log.txt"
        self._java = java  # the command up to the class name
        self._properties = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        self._properties.write_text(config.text())

    @property
    def pid(self) -> int | None:
        """The process id while the node runs or is paused, else None."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def begin_format(self, cluster_id: str, users: Sequence[str]) -> None:
        """Start to format the empty data folder, with these SCRAM users; `end_format` waits for the end."""
        scram = [word for user in users for word in ("--add-scram", user)]
        self._run(
            "kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(self._properties), *scram
        )

    def end_format(self, timeout_s: float) -> None:
        """Wait for `begin_format`."""
        assert self._process is not None
        if self._process.wait(timeout_s) != 0:
            raise ClusterError(f"Broker {self.config.number} could not be formatted:\n{self.tail()}")
        self._process = None

    def launch(self) -> None:
        """Start the process if it does not run; `wait` returns when it answers."""
        if self.pid is None:
            self._run("kafka.Kafka", str(self._properties))

    def wait(self, brokers: frozenset[int], timeout_s: float) -> None:
        """Wait until this node answers and knows these brokers; ClusterError if it does not in time."""
        alive = wait_until(lambda: self.pid is None or brokers <= self.known_brokers(), timeout_s=timeout_s)
        if self.pid is None:
            raise ClusterError(f"Broker {self.config.number} ended while starting:\n{self.tail()}")
        if not alive:
            raise ClusterError(f"Broker {self.config.number} was not ready after {timeout_s:g} s:\n{self.tail()}")

    def known_brokers(self) -> frozenset[int]:
        """Return the brokers that this node lists; empty while it does not answer."""
        return brokers_known_to(HOST, self.config.own.internal)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to a running node."""
        if self.pid is None:
            raise ClusterError(f"Broker {self.config.number} does not run.")
        assert self._process is not None
        self._process.send_signal(number)

    def freeze(self) -> None:
        """Send SIGSTOP and wait until all threads have stopped: the signal takes effect after it was sent."""
        self.send(signal.SIGSTOP)
        assert self._process is not None
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def end(self, number: signal.Signals, timeout_s: float) -> None:
        """End the process with this signal, or with SIGKILL after the timeout, and wait for its end."""
        if self._process is None or self.pid is None:
            return
        self._process.send_signal(number)
        self._process.send_signal(signal.SIGCONT)  # a paused process handles signals after SIGCONT
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def tail(self) -> str:
        """Return the last lines of the node's log, for an error message."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-_SHOWN_LINES:])

    def _run(self, *arguments: str) -> None:
        with self.log.open("ab") as log:
            self._process = start_dying_with_parent(
                [*self._java, f"-Dlog4j2.configurationFile={_LOG4J}", *arguments], log
            )
