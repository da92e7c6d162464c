"""Choose TCP ports that are free and stay free while a broker is down.

The ports are below the range that the system assigns to outgoing connections. Inside that range, a client
that keeps connecting to a stopped broker's port on the same machine can get this very port as its source
port, connect to itself, and keep the broker from restarting.
"""

import random
import socket
from pathlib import Path

_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 20_000
_USUAL_START = 32_768


def free_ports(count: int) -> list[int]:
    """Return `count` different ports of 127.0.0.1 on which nothing listens."""
    found: list[int] = []
    for port in random.sample(range(_LOWEST, _first_ephemeral()), 2_000):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"Fewer than {count} free TCP ports between {_LOWEST} and {_first_ephemeral()}.")


def _first_ephemeral() -> int:
    try:
        start = int(_EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError):
        start = _USUAL_START
    return start if start >= _LOWEST + 4_000 else _USUAL_START


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
