"""Clusters for fault injection, shared by the tests of this folder; each test leaves the cluster running."""

import uuid
from collections.abc import Iterator

import pytest

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster

FAST = {"group.initial.rebalance.delay.ms": "0"}
QUICK = {"request_timeout_ms": "8000"}


@pytest.fixture(scope="package")
def wounded() -> Iterator[Cluster]:
    """One broker that tests may kill, freeze and restart."""
    with Cluster(settings=FAST) as cluster:
        yield cluster


@pytest.fixture
def connection(wounded: Cluster) -> Connection:
    """How to reach it, with a short request timeout."""
    return Connection(wounded.bootstrap, QUICK)


@pytest.fixture
def own_topics(connection: Connection) -> Topics:
    """Topics that only this test uses, `pages` with two partitions."""
    made = Topics(f"t{uuid.uuid4().hex[:12]}.")
    create(connection, made, Layout(partitions=2))
    return made
