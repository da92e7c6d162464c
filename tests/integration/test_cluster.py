"""The broker that tests start: it survives fault injection, and never outlives the tests."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import BrokerError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Topics, create, describe
from deploy.kafka import Cluster, ClusterError
from deploy.kafka.readiness import wait_until

pytestmark = pytest.mark.broker  # also where a test starts its own
ROOT = Path(__file__).parents[2]
TOPICS = Topics("own.")


def connection_to(cluster: Cluster) -> Connection:
    return Connection(cluster.bootstrap, cluster.client_options)


def produce(cluster: Cluster, value: bytes) -> None:
    append(connection_to(cluster), TOPICS.fingerprints, [Message(TOPICS.fingerprints, value)])


def first_value(cluster: Cluster) -> bytes:
    reader = LogConsumer(connection_to(cluster), TOPICS.fingerprints)
    try:
        record = reader.read_one(0)
        return record.value if record else b""
    finally:
        reader.close()


def answers(bootstrap: str) -> bool:
    host, port = bootstrap.rsplit(":", 1)
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_a_killed_node_comes_back_with_its_data(own_cluster):
    """A SIGKILL and a restart keep address and records."""
    cluster = own_cluster()
    create(connection_to(cluster), TOPICS)
    produce(cluster, b"kept")
    before = cluster.bootstrap
    cluster.kill(0)
    assert not answers(cluster.bootstrap)
    cluster.start(0)
    assert cluster.bootstrap == before
    assert first_value(cluster) == b"kept"


def test_a_paused_node_is_silent_until_it_is_resumed(own_cluster):
    """A SIGSTOP leaves the port open and requests unanswered."""
    cluster = own_cluster()
    cluster.pause(0)
    assert answers(cluster.bootstrap)
    assert not cluster.answers(0)
    cluster.resume(0)
    assert wait_until(lambda: cluster.answers(0), timeout_s=30)


def test_three_nodes_work_without_one(own_cluster):
    """With three copies a record is written and read while a node is down, and the node comes back."""
    cluster = own_cluster(brokers=3)
    create(connection_to(cluster), TOPICS)
    assert {fact.replication for fact in describe(connection_to(cluster), TOPICS)} == {3}
    cluster.stop(0)
    produce(cluster, b"written")
    assert first_value(cluster) == b"written"
    cluster.start(0)
    assert cluster.answers(0)


def test_sasl_admits_only_the_password(own_cluster):
    """SCRAM over TLS: the options work together, and no part of them alone does."""
    cluster = own_cluster(sasl=True)
    create(connection_to(cluster), TOPICS)
    produce(cluster, b"secret")
    assert first_value(cluster) == b"secret"
    for options in ({**cluster.client_options, "sasl_plain_password": "wrong"}, {}):
        with pytest.raises(BrokerError):
            describe(Connection(cluster.bootstrap, {**options, "bootstrap_timeout_ms": "2000"}), TOPICS)


def test_a_node_that_does_not_start_shows_its_log():
    """A setting that Kafka refuses ends in an error that quotes Kafka."""
    with pytest.raises(ClusterError, match=r"log\.retention\.ms"):
        Cluster(settings={"log.retention.ms": "soon"}).open()


def test_no_broker_outlives_a_killed_parent(tmp_path):
    """A SIGKILL of the process that started it ends the broker too, and the next start removes its data."""
    with launcher(tmp_path) as parent:
        bootstrap = address_of(parent)
        assert answers(bootstrap)
        parent.kill()
    assert wait_until(lambda: not answers(bootstrap), timeout_s=30)
    assert list(tmp_path.iterdir())
    with launcher(tmp_path, "--", "true") as parent:
        parent.wait()
    assert not list(tmp_path.iterdir())


def test_a_broker_outlives_the_thread_that_started_it(own_cluster):
    """A parent-death signal fires when the starting thread ends; so a thread that stays starts the broker."""
    started: list[Cluster] = []
    thread = threading.Thread(target=lambda: started.append(own_cluster()))
    thread.start()
    thread.join()
    assert started[0].answers(0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_the_command_end_its_broker(tmp_path, number):
    """Ctrl-C and SIGTERM stop the broker and remove its data."""
    with launcher(tmp_path) as parent:
        bootstrap = address_of(parent)
        parent.send_signal(number)
    assert not answers(bootstrap)
    assert not list(tmp_path.iterdir())


def test_the_command_runs_another_with_the_address(tmp_path):
    """`-- COMMAND` gets TWINSIEVE_BOOTSTRAP, and its exit code is returned."""
    with launcher(tmp_path, "--", "sh", "-c", "echo address=$TWINSIEVE_BOOTSTRAP; exit 7") as parent:
        assert address_of(parent).startswith("127.0.0.1:")
    assert parent.returncode == 7


def launcher(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "deploy.kafka", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def address_of(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().rpartition("=")[2].strip()
