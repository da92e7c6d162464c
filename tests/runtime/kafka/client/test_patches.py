"""The cure of the client's worst fault, as far as no broker is needed, and the releases it is good for."""

import logging

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.patches import PatchedKafkaClient, check_client_release


def test_a_broker_that_is_away_is_not_ready_and_no_error() -> None:
    """Nor is one that nobody knows any more."""
    client = PatchedKafkaClient(bootstrap_servers="127.0.0.1:1")
    try:
        [broker] = client.cluster.bootstrap_brokers()
        assert client.await_ready(broker.node_id, timeout_ms=500) is False
        assert client.await_ready(4711, timeout_ms=500) is False
    finally:
        client.close()


def test_other_releases_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    """Another minor release gets one warning, another major one is refused."""
    with caplog.at_level(logging.WARNING):
        check_client_release("3.1.0")
        check_client_release("3.1.0")
    assert len(caplog.records) == 1
    with pytest.raises(ConfigurationError, match=r"4\.0\.0"):
        check_client_release("4.0.0")
