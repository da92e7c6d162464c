"""A real broker for every test that needs one; if it cannot start, the test fails with the reason."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import Layout, Topics, create, remove
from deploy.kafka import Cluster
from tests.integration.serving import Serving

PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Broker:
    """The address of the shared broker."""

    bootstrap: str

    @property
    def connection(self) -> Connection:
        """The connection of our clients."""
        return Connection(self.bootstrap)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """The broker that TWINSIEVE_BOOTSTRAP names, or a single node that runs for the whole session."""
    if named := os.environ.get("TWINSIEVE_BOOTSTRAP"):
        yield Broker(named)
    else:
        with Cluster() as cluster:
            yield Broker(cluster.bootstrap)


@pytest.fixture
def topics(broker: Broker) -> Iterator[Topics]:
    """A set of topics for this test alone, `pages` with four partitions; removed afterwards."""
    topics = Topics(f"t{uuid.uuid4().hex[:12]}.")
    create(broker.connection, topics, Layout(partitions=PARTITIONS))
    yield topics
    remove(broker.connection, topics)


@pytest.fixture
def own_cluster() -> Iterator[Callable[..., Cluster]]:
    """Start a cluster (arguments of Cluster) for a test that damages it; the cluster ends with the test."""
    with ExitStack() as stack:
        yield lambda *arguments, **named: stack.enter_context(Cluster(*arguments, **named))


@pytest.fixture
def serve(broker: Broker, topics: Topics, tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Start the service on the topics of the test; it is killed afterwards."""
    started: list[Serving] = []

    def start(*arguments: object, **settings: Any) -> Serving:
        where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix, "--group", f"{topics.prefix}group")
        log = tmp_path / f"log-{len(started)}"
        started.append(Serving(log, *where, "--state", tmp_path / "state", *arguments, **settings))
        return started[-1]

    yield start
    for serving in started:
        serving.process.kill()
        serving.process.wait()
