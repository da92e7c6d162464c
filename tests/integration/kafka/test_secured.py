"""The whole service against a broker that asks for TLS and a password, and through a rolling restart of three."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import BrokerError, UnreachableError
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.service import Service
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from tests.integration.kafka.test_service import Progress, running, settings

pytestmark = [pytest.mark.slow, pytest.mark.broker]


@dataclass(frozen=True)
class Reached:
    """A cluster in the form that the service's settings expect."""

    connection: Connection
    bootstrap: str = ""


def pages(topics: Topics, count: int, start: int = 0) -> list[Message]:
    """Pages with distinct texts, one partition after the other."""
    return [
        Message(topics.pages, b'{"url": "https://site.example/%d", "text": "%s"}' % (n, b"story %d " % n * 30))
        for n in range(start, start + count)
    ]


def test_a_service_works_over_tls_with_a_password(own_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """Every client connects: both groups, the log, both producers, the admin client."""
    cluster = own_cluster(sasl=True)
    connection, topics = Connection(cluster.bootstrap, cluster.client_options), Topics()
    create(connection, topics, Layout(partitions=2))
    append(connection, topics.pages, pages(topics, 50))
    progress = Progress()
    with running(settings(Reached(connection), topics, tmp_path / "state"), progress):  # type: ignore[arg-type]
        progress.wait_for(lambda: progress.done == 50)
    refused = Connection(cluster.bootstrap, {**cluster.client_options, "sasl_plain_password": "another"})
    with pytest.raises(BrokerError) as refusal:
        append(refused, topics.pages, pages(topics, 1))
    assert "another" not in str(refusal.value)


@pytest.mark.long
def test_a_service_starts_once_its_broker_is_back(own_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """A service that is started while the broker is away waits for it."""
    cluster = own_cluster()
    connection, topics = Connection(cluster.bootstrap), Topics()
    create(connection, topics, Layout(partitions=2))
    append(connection, topics.pages, pages(topics, 20))
    cluster.stop(0)
    progress = Progress()
    with running(settings(Reached(connection), topics, tmp_path / "state"), progress):  # type: ignore[arg-type]
        cluster.start(0)
        progress.wait_for(lambda: progress.done == 20)


def test_a_service_whose_brokers_stay_away_raises(tmp_path: Path) -> None:
    """It raises after the time allowed for its start."""
    nobody = Reached(Connection("127.0.0.1:1"))
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        Service(settings(nobody, Topics(), tmp_path / "state", start_s=0.5)).run(threading.Event())  # type: ignore[arg-type]
