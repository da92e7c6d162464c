"""Connections that close their socket where they cannot be made.

The library forgets the socket of a connect that fails (`net/inet.py`, `KafkaNetSocket.connect`) and that of a TLS
handshake that fails (`net/manager.py`, `_build_transport`): they stay open until the garbage collector comes, one for
each try while a broker is away. Its own registry of socket classes, meant for proxies, lets us bring one that closes.
"""

from typing import Any

from kafka import errors
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

__all__ = ["ClosingManager"]

_DIRECT = "direct://"


class _ClosingSocket(KafkaNetSocket):  # type: ignore[misc]
    """A plain connection, under a scheme of its own in the place of a proxy's."""

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class ClosingManager(KafkaConnectionManager):  # type: ignore[misc]
    """The library's connections, each of which ends closed or connected."""

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"] or _DIRECT,
            timeout_at=timeout_at,
        )
        try:
            transport = self._transport(node, sock)
        except BaseException:
            sock.close()
            raise
        try:
            await transport.handshake()
        except BaseException as error:
            transport.close()
            if isinstance(error, Exception):
                raise errors.KafkaConnectionError(f"Handshake failed: {error}") from error
            raise
        return transport

    def _transport(self, node: Any, sock: Any) -> Any:
        if not self.ssl_enabled:
            return KafkaTCPTransport(self._net, sock, host=node.host)
        settings = {name: value for name, value in self.config.items() if name.startswith("ssl_")}
        return KafkaSSLTransport(self._net, sock, host=node.host, **settings)
