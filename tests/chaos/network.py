"""The network between one process and the brokers, which can be held or cut.

The process runs in a network namespace of its own (`tests.chaos.isolated`), where each broker's port is one of
the gate. The gate, threads of this process, connects to the brokers and passes bytes on. No setting of the machine is
changed, and no privilege is needed where user namespaces are permitted.

Held, bytes and new connections wait in both directions, as in a network that loses every packet: a request may arrive
long after its sender has given it up. Cut, connections are closed and new ones closed at once.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 16
_UNSHARE = ("unshare", "--map-root-user", "--net")


def can_isolate() -> bool:
    """Return whether this machine permits network namespaces."""
    try:
        return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class NetworkGate:
    """The network of one process that talks to `ports` of this machine.

    A process that is started through `command` has this network; the latest one that was started counts.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._folder = Path(tempfile.mkdtemp(prefix="gate-"))  # the path of a Unix socket must be short
        self._path = self._folder / "s"
        self._flows = threading.Event()
        self._flows.set()
        self._is_cut = False
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listeners: list[socket.socket] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self._path))
        self._door.listen()
        _start(self._admit)

    @property
    def command(self) -> list[str]:
        """What to put in front of a command: it runs in the namespace, with the same process id."""
        script = str(Path(__file__).with_name("isolated.py"))
        ports = ",".join(map(str, self._ports))
        return [*_UNSHARE, sys.executable, "-I", "-S", script, str(self._path), str(os.getpid()), ports]

    def hold(self) -> None:
        """Let nothing through until `release`."""
        self._flows.clear()

    def release(self) -> None:
        """Let everything through, what waits first."""
        self._is_cut = False
        self._flows.set()

    def cut(self) -> None:
        """Close all connections, and new ones at once, until `release`."""
        self._is_cut = True
        with self._lock:
            for one in self._sockets:
                _shut(one)

    def close(self) -> None:
        """Close everything."""
        self.cut()
        self._flows.set()
        _shut(self._door)
        self._door.close()
        for listener in self._listeners:
            listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _admit(self) -> None:
        """Take the listening sockets of each process that starts."""
        while True:
            try:
                process, _ = self._door.accept()
            except OSError:
                return
            with process:
                _, numbers, _, _ = socket.recv_fds(process, 1, len(self._ports))
                if len(numbers) != len(self._ports):  # it was killed at this moment
                    continue
                for old in self._listeners:
                    _shut(old)
                self._listeners = [socket.socket(fileno=number) for number in numbers]
                for listener, port in zip(self._listeners, self._ports, strict=True):
                    _start(self._accept, listener, port)
                with suppress(OSError):
                    process.send(b".")

    def _accept(self, listener: socket.socket, port: int) -> None:
        with listener:
            while True:
                try:
                    inner, _ = listener.accept()
                except OSError:
                    return
                _start(self._connect, inner, port)

    def _connect(self, inner: socket.socket, port: int) -> None:
        self._flows.wait()
        try:
            if self._is_cut:
                raise ConnectionRefusedError
            outer = socket.create_connection((HOST, port))
        except OSError:
            inner.close()
            return
        with self._lock:
            self._sockets |= {inner, outer}
        back = _start(self._relay, outer, inner)
        self._relay(inner, outer)
        back.join()
        with self._lock:
            self._sockets -= {inner, outer}
            inner.close()
            outer.close()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        """Pass bytes on in one direction until either side ends."""
        with suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                self._flows.wait()
                sink.sendall(data)
        _shut(source)
        _shut(sink)


def _start(work: object, *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
