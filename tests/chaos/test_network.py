"""A process behind a gate reaches a port of this machine through it alone, and not while it is held or cut."""

import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.chaos.network import NetworkGate, can_isolate

pytestmark = pytest.mark.skipif(not can_isolate(), reason="this machine permits no network namespaces")

CLIENT = """
import socket, sys
for line in sys.stdin:
    port = int(line)
    try:
        with socket.create_connection(("127.0.0.1", port)) as to:
            to.sendall(b"x")
            print("answered" if to.recv(1) else "closed", flush=True)
    except OSError as error:
        print(type(error).__name__, flush=True)
"""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server that returns a byte."""

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.sendall(client.recv(1))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_gate_passes_bytes_on_unless_it_is_held_or_cut(port: int) -> None:
    """Held, an answer comes after the release; cut, a connection is closed; other ports are not there."""
    with closing(NetworkGate([port])) as gate:
        command = [*gate.command, sys.executable, "-c", CLIENT]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin is not None
            assert client.stdout is not None

            def ask(number: int) -> None:
                print(number, file=client.stdin, flush=True)

            ask(port)
            assert client.stdout.readline() == "answered\n"
            gate.hold()
            ask(port)
            assert not select.select([client.stdout], [], [], 0.2)[0]
            gate.release()
            assert client.stdout.readline() == "answered\n"
            gate.cut()
            ask(port)
            assert client.stdout.readline() in {"closed\n", "ConnectionResetError\n"}
            gate.release()
            ask(port)
            assert client.stdout.readline() == "answered\n"
            with socket.create_server(("127.0.0.1", 0)) as other:
                ask(other.getsockname()[1])
                assert client.stdout.readline() == "ConnectionRefusedError\n"
            client.stdin.close()
