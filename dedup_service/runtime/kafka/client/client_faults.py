"""The network side of the client with its faults cured, and the release that the cures belong to.

The fault that can stop a service for good (3.0.12, `producer/sender.py`, `Sender._maybe_send_pending_request`): the
request that a transaction waits for is taken from the queue; then the coordinator's connection is awaited.
`KafkaNetClient.await_ready` raises where it is down, the handler's `except Exception` looks the coordinator up again
and leaves the loop, and only a request whose `target_node` is None is put back. It is not None by then: the request is
lost, and `commit_transaction()`, which has no timeout, waits for ever, also after the broker is back.
The cure: an `await_ready` that answers False, as its callers expect, instead of raising. That branch sets
`target_node` to None, and the request is put back and sent to whoever is the coordinator then.

The smaller fault: a connection that cannot be made leaves its socket open; see `closing_sockets`.

Tested with the release below; another minor release gets a warning, another major one is refused, since the cures lean
on what is inside.
"""

import logging
from typing import Any

import kafka
from kafka import errors
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import NetworkSelector

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.closing_sockets import ClosingManager

__all__ = ["PatientClient", "check_client_release"]

TESTED = "3.0.12"

_LOG = logging.getLogger(__name__)
_told: set[str] = set()


class PatientClient(KafkaNetClient):  # type: ignore[misc]
    """The client's network side; its `await_ready` does not raise where a broker is merely away."""

    def __init__(self, **configs: Any) -> None:
        net = NetworkSelector(**configs)
        super().__init__(net=net, manager=ClosingManager(net, **configs))

    def await_ready(self, node_id: Any, timeout_ms: float = 30_000) -> bool:
        """Whether the broker can be sent to now; False where it cannot be reached or is not known any more."""
        try:
            return bool(super().await_ready(node_id, timeout_ms=timeout_ms))
        except (errors.KafkaConnectionError, errors.NodeNotReadyError, errors.UnknownBrokerIdError):
            return False


def check_client_release(release: str = kafka.__version__) -> None:
    """Warn once about a release that nobody tested the cure with; ConfigurationError for another major release.

    >>> check_client_release("3.0.12")
    >>> check_client_release("4.0.0")
    Traceback (most recent call last):
    dedup_service.core.errors.ConfigurationError: kafka-python 4.0.0 is installed, ...
    """
    if release.partition(".")[0] != TESTED.partition(".")[0]:
        raise ConfigurationError(
            f"kafka-python {release} is installed, and the cures of the client's faults were made for {TESTED}: "
            f"pip install 'kafka-python=={TESTED}'"
        )
    if release != TESTED and release not in _told:
        _told.add(release)
        _LOG.warning("kafka-python %s is installed; the cures of its faults were tested with %s", release, TESTED)
