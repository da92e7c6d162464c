"""Claim: sending a request and receiving its answer cost our event loop less processor time than the library's.

Measured: see docs/adr/0013-the-clients-faults.md. The rest of a request, most of it, is the library's encoding, its
futures, and the kernel, which wakes threads.

A connection sends 100 bytes to a process that answers with as many, and waits for the answer, again and again, with our
event loop and connections (`runtime.kafka.client.loop`) and with the library's, in turns, in one thread. Least of the
rounds. Then the same for answers of 256 KiB.

    python -m benchmarks.client_loop [--requests 3000] [--rounds 5]
"""

import argparse
import multiprocessing
import socket
import time
from typing import Any

from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport

from dedup_service.runtime.kafka.client.loop import EagerTransport, Loop

KINDS: dict[str, tuple[Any, Any]] = {
    "the library's": (NetworkSelector, KafkaTCPTransport),
    "ours": (Loop, EagerTransport),
}
REQUEST_BYTES = 100
ANSWER_BYTES = (100, 1 << 18)


class Receiver:
    """Counts the bytes that a connection hands on."""

    _sensors = None

    def __init__(self) -> None:
        self.received = 0

    def data_received(self, data: bytes) -> None:
        """Take a piece."""
        self.received += len(data)

    def connection_lost(self, error: object) -> None:
        """Take the end."""


def answer(listener: socket.socket) -> None:
    """Accept connections one after the other; answer each request with as many bytes as its first 8 say."""
    while True:
        connection, _ = listener.accept()
        while request := connection.recv(REQUEST_BYTES, socket.MSG_WAITALL):
            connection.sendall(bytes(int.from_bytes(request[:8], "big")))


def microseconds(address: tuple[str, int], kind: str, answer_bytes: int, requests: int) -> float:
    """Return the processor time of a request and its answer, in microseconds."""
    make_loop, make_transport = KINDS[kind]
    loop, receiver = make_loop(), Receiver()
    ours = socket.create_connection(address)
    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ours.setblocking(False)
    transport = make_transport(loop, ours)
    transport.set_protocol(receiver)
    transport.resume_reading()
    request = answer_bytes.to_bytes(8, "big").ljust(REQUEST_BYTES, b"\0")
    began = time.process_time()
    for number in range(1, requests + 1):
        transport.write(request)
        while receiver.received < number * answer_bytes:
            loop.poll()
    spent = time.process_time() - began
    transport.close()
    loop.close()
    return spent / requests * 1e6


def main() -> None:
    """Parse the arguments, measure both in turns and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    server = multiprocessing.get_context("fork").Process(target=answer, args=(listener,), daemon=True)
    server.start()
    for answer_bytes in ANSWER_BYTES:
        requests = max(100, arguments.requests * REQUEST_BYTES // answer_bytes)
        found: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for _ in range(arguments.rounds):
            for kind, times in found.items():
                times.append(microseconds(listener.getsockname(), kind, answer_bytes, requests))
        for kind, times in found.items():
            print(f"answers of {answer_bytes:,} bytes, {kind}: {min(times):.0f} µs")
    server.kill()


if __name__ == "__main__":
    main()
