"""Ask one node which brokers it knows: a Metadata request over a plain socket.

Uses the codec of the client library but not its connections, whose threads and retries would outlive a
request that fails.
"""

import contextlib
import socket
import time
from collections.abc import Callable

from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.parser import KafkaProtocol

_VERSION = 9
_PAUSE_S = 0.05


def brokers_known_to(host: str, port: int, *, timeout_s: float = 2.0) -> frozenset[int]:
    """Return the ids of the live brokers that a node knows, by its plain listener; empty on no answer."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=timeout_s) as connection:
        codec = KafkaProtocol(client_id="launcher")
        codec.send_request(MetadataRequest[_VERSION](topics=[], allow_auto_topic_creation=False))
        connection.sendall(codec.send_bytes())
        while received := connection.recv(65_536):
            for _, response in codec.receive_bytes(received):
                return frozenset(broker.node_id for broker in response.brokers)
    return frozenset()


def wait_until(condition: Callable[[], bool], *, timeout_s: float) -> bool:
    """Wait for `condition()`; return whether it became true within the timeout."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True
