"""Requests as bytes over a plain socket, for what no HTTP client would send."""

import socket
from typing import Self

from dedup_service.interfaces.http.server import Address
from tests.hangs import HANG_S


def request(method: str = "GET", path: str = "/livez", body: bytes = b"", **headers: str) -> bytes:
    """Return the bytes of a request; a header `Content-Length` comes with a body."""
    named = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        named = {"Content-Length": str(len(body)), "Content-Type": "application/json", **named}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Line:
    """A connection to a server. small: with a small receive buffer."""

    def __init__(self, address: Address, *, small: bool = False) -> None:
        self.socket = socket.socket()
        if small:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(HANG_S)
        self.socket.connect((address.host, address.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send all of `data`."""
        self.socket.sendall(data)

    def answer(self) -> bytes:
        """Return the next bytes of the answer, b"" if the server ended the connection."""
        try:
            return self.socket.recv(1 << 16)
        except ConnectionError:
            return b""

    def is_ended(self) -> bool:
        """Whether the server ends the connection; reads what it still sends. TimeoutError if it does not."""
        while self.answer():
            pass
        return True
