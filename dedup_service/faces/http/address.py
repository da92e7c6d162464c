"""`[HOST:]PORT`, as people give it; without a host, only this machine can connect."""

import socket
from dataclasses import dataclass

from dedup_service.core.errors import ConfigurationError

__all__ = ["LOOPBACK", "Address", "listen"]

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
