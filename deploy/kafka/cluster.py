"""A cluster of one or three nodes in a temporary folder, as a context manager.

Goal: a broker that a test can use, damage and discard. `open` returns when every node lists every broker;
`close` kills the nodes and removes the folder. If this process is killed, the nodes die with it
(die_with_parent.py), and the next cluster removes the folder: a folder belongs to the process that holds its
lock file.
"""

import base64
import shutil
import signal
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from deploy.kafka.certificates import Certificates, make_certificates
from deploy.kafka.config import HOST, NodeConfig, Ports
from deploy.kafka.errors import ClusterError
from deploy.kafka.jars import jars
from deploy.kafka.java import find_java
from deploy.kafka.node import Node
from deploy.kafka.ports import free_ports

READY_TIMEOUT_S = 90.0  # 1.4 to 5 s on two idle cores, several times as long beside a running test suite
STOP_TIMEOUT_S = 30.0
_PREFIX = "twinsieve-kafka-"
USER, PASSWORD = "twinsieve", "sieve-secret"


class Cluster:
    """Apache Kafka nodes, numbered from 0; a context manager.

    settings: server.properties that override the defaults here. sasl: the listener of clients is SASL_SSL
    with SCRAM-SHA-512; `user`, `password` and `ca_file` are the credentials, `client_options` has them under
    kafka-python's names. heap_mb: Java heap of each node.
    """

    def __init__(
        self, brokers: int = 1, *, sasl: bool = False, settings: Mapping[str, str] | None = None, heap_mb: int = 256
    ) -> None:
        if brokers < 1:
            raise ValueError(f"A cluster cannot have {brokers} brokers: use 1 or 3.")
        self._count = brokers
        self._sasl = sasl
        self._settings = dict(settings or {})
        self._heap_mb = heap_mb
        self._folder: Path | None = None
        self._lock: FileLock | None = None
        self._certificates: Certificates | None = None
        self._nodes: list[Node] = []

    @property
    def brokers(self) -> int:
        """The number of nodes, whether they run or not."""
        return self._count

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes' client listeners, comma-separated."""
        return ",".join(f"{HOST}:{node.config.own.client}" for node in self._nodes)

    @property
    def inner_bootstrap(self) -> str:
        """The addresses of the plain listeners between the nodes; with `sasl`, their clients are super users."""
        return ",".join(f"{HOST}:{node.config.own.internal}" for node in self._nodes)

    @property
    def user(self) -> str | None:
        """The SCRAM user, None without `sasl`."""
        return USER if self._sasl else None

    @property
    def password(self) -> str | None:
        """The SCRAM user's password, None without `sasl`."""
        return PASSWORD if self._sasl else None

    @property
    def ca_file(self) -> Path | None:
        """The PEM file of the authority that signed the brokers' certificate, None without `sasl`."""
        return self._certificates.ca if self._certificates else None

    @property
    def client_options(self) -> dict[str, str]:
        """The security options of a client, under kafka-python's names; empty without `sasl`."""
        if not self._certificates:
            return {}
        return {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
            "ssl_cafile": str(self._certificates.ca),
        }

    def open(self) -> Self:
        """Fetch the jars if they are missing, start all nodes, and return when all are ready."""
        java = [str(find_java()), *_options(self._heap_mb), "-cp", f"{jars()}/*"]
        _remove_abandoned()
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = FileLock(self._folder / "owner.lock")
        self._lock.acquire()
        try:
            self._start_all(self._folder, java)
        except BaseException:
            self.close()
            raise
        return self

    def kill(self, number: int) -> None:
        """Kill a node (SIGKILL), as when its machine fails."""
        self._nodes[number].end(signal.SIGKILL, STOP_TIMEOUT_S)

    def stop(self, number: int) -> None:
        """Stop a node (SIGTERM): a controlled shutdown that moves its leaders away first."""
        self._nodes[number].end(signal.SIGTERM, STOP_TIMEOUT_S)

    def start(self, number: int) -> None:
        """Start a node that was killed or stopped; return when it answers and lists itself."""
        self._nodes[number].launch()
        self._nodes[number].wait(frozenset({number}), READY_TIMEOUT_S)

    def pause(self, number: int) -> None:
        """Freeze a node (SIGSTOP): it keeps its connections and, when this returns, answers nothing."""
        self._nodes[number].freeze()

    def resume(self, number: int) -> None:
        """Resume a node (SIGCONT) after `pause`."""
        self._nodes[number].send(signal.SIGCONT)

    def pid(self, number: int) -> int | None:
        """Return the process id of a node, None if it does not run."""
        return self._nodes[number].pid

    def answers(self, number: int) -> bool:
        """Return whether a node answers a Metadata request and lists itself."""
        return number in self._nodes[number].known_brokers()

    def log(self, number: int) -> str:
        """Return the last lines of a node's log."""
        return self._nodes[number].tail()

    def save(self, folder: Path) -> None:
        """Copy all data and logs of the nodes to `folder`, which must not exist, for debugging."""
        if self._folder:
            shutil.copytree(self._folder, folder)

    def close(self) -> None:
        """Kill every node and remove the data."""
        for node in self._nodes:
            node.end(signal.SIGKILL, STOP_TIMEOUT_S)
        self._nodes = []
        if self._lock:
            self._lock.release()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start_all(self, folder: Path, java: list[str]) -> None:
        if self._sasl:
            self._certificates = make_certificates(folder, HOST)
        numbers = free_ports(3 * self._count)
        ports = [Ports(*numbers[n : n + 3]) for n in range(0, len(numbers), 3)]
        for number in range(self._count):
            home = folder / f"node-{number}"
            pem = self._certificates.broker if self._certificates else None
            self._nodes.append(Node(NodeConfig(number, ports, home / "data", pem, self._settings), home, java))
        self._format()
        for node in self._nodes:
            node.launch()
        for node in self._nodes:
            node.wait(frozenset(range(self._count)), READY_TIMEOUT_S)

    def _format(self) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        users = [f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"] if self._sasl else []
        for node in self._nodes:
            node.begin_format(cluster_id, users)
        for node in self._nodes:
            node.end_format(READY_TIMEOUT_S)


def _options(heap_mb: int) -> list[str]:
    """Return options for a small Java that starts quickly: one collector thread, the first compiler only."""
    return [f"-Xmx{heap_mb}m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"]


def _remove_abandoned() -> None:
    """Remove the folders of clusters whose process was killed."""
    for lock_file in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/owner.lock"):
        try:
            with FileLock(lock_file, timeout=0):
                shutil.rmtree(lock_file.parent, ignore_errors=True)
        except (Timeout, OSError):
            continue


__all__ = ["Cluster", "ClusterError"]
