"""Watchers of `/events` over plain sockets: one that reads, and a crowd of which some do not."""

import socket
import time
from collections.abc import Callable
from typing import Self

from dedup_service.interfaces.http.server import Address
from tests.hangs import HANG_S


class Watcher:
    """One stream. last_id: id of the last message received before. small: with a small receive buffer.

    headers: further lines of the request.
    """

    def __init__(self, address: Address, *, last_id: str | None = None, small: bool = False, headers: str = "") -> None:
        self.socket = socket.socket()
        if small:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(HANG_S)
        self.socket.connect((address.host, address.port))
        more = "" if last_id is None else f"Last-Event-ID: {last_id}\r\n"
        self.socket.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\n{more}{headers}\r\n".encode())
        self._unparsed = b""
        self._body = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def head(self) -> str:
        """Return status line and headers, in lower case."""
        while b"\r\n\r\n" not in self._unparsed:
            self._unparsed += self._more()
        head, _, self._unparsed = self._unparsed.partition(b"\r\n\r\n")
        return head.decode().lower()

    def message(self) -> dict[str, str]:
        """Return the next message: field → value; a comment has the field ""."""
        while b"\n\n" not in self._body:
            self._body += self._chunk()
        text, _, self._body = self._body.partition(b"\n\n")
        fields = (line.partition(": ") for line in text.decode().split("\n"))
        return {name: value for name, _, value in fields}

    def messages(self, name: str, count: int) -> list[dict[str, str]]:
        """Return the next `count` messages with this name; others are skipped."""
        named: list[dict[str, str]] = []
        while len(named) < count:
            message = self.message()
            if message.get("event") == name:
                named.append(message)
        return named

    def to_the_end(self) -> None:
        """Read until the stream ends: EOFError, or another OSError if the connection was aborted."""
        while True:
            self.message()

    def _chunk(self) -> bytes:
        """Return the next chunk of the body; EOFError at its end."""
        while b"\r\n" not in self._unparsed:
            self._unparsed += self._more()
        size, _, self._unparsed = self._unparsed.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            raise EOFError
        while len(self._unparsed) < length + 2:
            self._unparsed += self._more()
        chunk, self._unparsed = self._unparsed[:length], self._unparsed[length + 2 :]
        return chunk

    def _more(self) -> bytes:
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError
        return data


def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition()` holds; AssertionError if that takes too long."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
