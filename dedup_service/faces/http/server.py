"""The server in a thread beside the service: it answers while the steps work, and also while they are stuck."""

import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from dedup_service.faces.http.address import Address, listen

__all__ = ["HttpServer"]

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
