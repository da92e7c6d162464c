"""A real broker for every test that asks for one; where it cannot start, that test fails and says why."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import Layout, Topics, create, remove
from deploy.kafka import Cluster
from tests.integration.serving import Serving

PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the shared broker is."""

    bootstrap: str

    @property
    def connection(self) -> Connection:
        """How our clients reach it."""
        return Connection(self.bootstrap)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """The broker that TWINSIEVE_BOOTSTRAP names, or one node of our own for the whole session."""
    if named := os.environ.get("TWINSIEVE_BOOTSTRAP"):
        yield Broker(named)
    else:
        with Cluster() as cluster:
            yield Broker(cluster.bootstrap)


@pytest.fixture
def topics(broker: Broker) -> Iterator[Topics]:
    """A set of topics that only this test uses, `pages` with four partitions; removed afterwards."""
    made = Topics(f"t{uuid.uuid4().hex[:12]}.")
    create(broker.connection, made, Layout(partitions=PARTITIONS))
    yield made
    remove(broker.connection, made)


@pytest.fixture
def own_cluster() -> Iterator[Callable[..., Cluster]]:
    """A function that starts a cluster (arguments as Cluster's) for a test that hurts it; it ends with the test."""
    with ExitStack() as stack:
        yield lambda *arguments, **named: stack.enter_context(Cluster(*arguments, **named))


@pytest.fixture
def serve(broker: Broker, topics: Topics, tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Start the service on the topics of the test; it is gone afterwards."""
    started: list[Serving] = []

    def start(*arguments: object) -> Serving:
        where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix, "--group", f"{topics.prefix}group")
        log = tmp_path / f"log-{len(started)}"
        started.append(Serving(log, *where, "--state", tmp_path / "state", *arguments))
        return started[-1]

    yield start
    for serving in started:
        serving.process.kill()
        serving.process.wait()
