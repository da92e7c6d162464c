"""`[HOST:]PORT`, as people give it; without a host, only this machine can connect.

The server in a thread beside the service: it answers while the steps work, and also while they are stuck.
"""

import socket
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from dedup_service.core.errors import ConfigurationError

__all__ = ["LOOPBACK", "Address", "HttpServer", "listen"]

LOOPBACK = "127.0.0.1"
BACKLOG = 128


@dataclass(frozen=True, slots=True)
class Address:
    """host: a name or an address, an IPv6 one without brackets. port: 0 takes a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address that `text` names; ConfigurationError where it names none.

        >>> Address.parse("9100"), Address.parse("[::]:0")
        (Address(host='127.0.0.1', port=9100), Address(host='::', port=0))
        """
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not (port.isascii() and port.isdigit() and int(port) < 1 << 16) or (colon and not bare):
            raise ConfigurationError(f"{text!r} is no address to listen on: give PORT or HOST:PORT (0.0.0.0 for all)")
        if ":" in bare and bare == host:
            raise ConfigurationError(f"{text!r} is not clear: put an IPv6 address in brackets, [{host}]:{port}")
        return cls(bare or LOOPBACK, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listen(address: Address, option: str = "--http") -> socket.socket:
    """Return a socket that listens on `address`; ConfigurationError where that cannot be: give another `option`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(f"cannot listen on {address}: {reason}; give another {option} [HOST:]PORT") from None


LAST_ANSWERS_S = 1

SEND_BUFFER = 256 << 10
"""Bytes that the system holds for a client that does not read; its own choice grows to 4 MB a connection."""


class HttpServer:
    """Serves `app` on `address` while entered; ConfigurationError where nothing can listen: give another `option`."""

    def __init__(self, app: ASGIApp, address: Address, *, option: str = "--http") -> None:
        self._listening: socket.socket = listen(address, option)
        self.address = Address(address.host, self._listening.getsockname()[1])
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        config = uvicorn.Config(
            app,
            access_log=False,
            log_config=None,  # logging is the program's to configure
            loop="asyncio",
            http="h11",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=LAST_ANSWERS_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="twinsieve-http", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()

    def cut_off(self, client: tuple[str, int]) -> None:
        """Close the connection of `client` at once, what waits to be sent to it included; on the server's own loop."""
        for connection in tuple(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None and getattr(connection, "client", None) == client:
                transport.abort()

    def _run(self) -> None:
        self._server.run(sockets=[self._listening])
