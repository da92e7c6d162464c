"""Choose TCP ports that are free now and stay free while a broker is down.

Ports below the range that the system hands to outgoing connections: inside it, a client that keeps knocking at a
dead broker's port on the same machine can be given that very port as its own, connect to itself, and keep the
broker from coming back.
"""

import random
import socket
from pathlib import Path

_HANDED_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 20_000
_USUAL_START = 32_768


def free_ports(count: int) -> list[int]:
    """`count` different ports of 127.0.0.1 that nobody listens on."""
    found: list[int] = []
    for port in random.sample(range(_LOWEST, _first_handed_out()), 2_000):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"Fewer than {count} free TCP ports between {_LOWEST} and {_first_handed_out()}.")


def _first_handed_out() -> int:
    try:
        start = int(_HANDED_OUT.read_text().split()[0])
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
