"""The HTTP server in a thread beside the service, and the addresses that it listens on.

It has its own thread and event loop, so it answers while the steps work, and also when one of them is stuck.
Addresses are `[HOST:]PORT`, as in options; without a host, only this machine can connect.

Invariant: nothing that a client says about itself is believed. Its address is that of its connection, and no
forwarding header is read. Limits of rate, time and connections are a reverse proxy's work (SECURITY.md).
"""

import socket
import threading
from dataclasses import dataclass
from typing import Self

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from dedup_service.core.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
BACKLOG = 128
LAST_ANSWERS_S = 1
"""Time for answers in progress when the server ends."""

MAX_REQUESTS = 600
"""Requests in progress and connections at which further requests are refused; 500 may be event streams."""

SEND_BUFFER = 256 << 10
"""Bytes that the system buffers for a client that does not read; its default grows to 4 MB a connection."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. host: a name or an address, IPv6 without brackets. port: 0 takes a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address that `text` names; ConfigurationError if it names none.

        >>> Address.parse("8080"), Address.parse("[::]:0")
        (Address(host='127.0.0.1', port=8080), Address(host='::', port=0))
        """
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not (port.isascii() and port.isdigit() and int(port) < 1 << 16) or (colon and not bare):
            raise ConfigurationError(
                f"{text!r} is not an address to listen on: give PORT or HOST:PORT (host 0.0.0.0: all interfaces)"
            )
        if ":" in bare and bare == host:
            raise ConfigurationError(f"{text!r} is ambiguous: put an IPv6 address in brackets, [{host}]:{port}")
        return cls(bare or LOOPBACK, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listen(address: Address, option: str = "--http") -> socket.socket:
    """Return a socket that listens on `address`; ConfigurationError, which names `option`, if none can."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(f"cannot listen on {address}: {reason}; give another {option} [HOST:]PORT") from None


class HttpServer:
    """Context manager that serves `app` on `address`.

    address: where it listens; the port is the one that was taken if 0 was asked for. option: the option that
    the ConfigurationError names if nothing can listen there.
    """

    def __init__(self, app: ASGIApp, address: Address, *, option: str = "--http") -> None:
        self._listening: socket.socket = listen(address, option)
        self.address = Address(address.host, self._listening.getsockname()[1])
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        config = uvicorn.Config(
            app,
            access_log=False,
            log_config=None,  # logging is the program's to configure
            loop="asyncio",
            http=H11Protocol,
            limit_concurrency=MAX_REQUESTS,
            proxy_headers=False,  # on by default, for any client on this machine
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=LAST_ANSWERS_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="twinsieve-http", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._server.server_state.connections)

    def cut_off(self, peer: tuple[str, int]) -> None:
        """Abort the connection of `peer` and discard unsent data; to be called on the server's event loop."""
        for connection in tuple(self._server.server_state.connections):
            if isinstance(connection, H11Protocol) and connection.client == peer:
                connection.transport.abort()

    def _run(self) -> None:
        self._server.run(sockets=[self._listening])
