"""The configuration of a node, and its ports."""

from pathlib import Path

import pytest

from deploy.kafka.config import NodeConfig, Ports
from deploy.kafka.ports import free_ports


def config(nodes: int = 1, *, number: int = 0, tls_pem: Path | None = None, settings: dict[str, str] | None = None):
    ports = [Ports(100 * n + 1, 100 * n + 2, 100 * n + 3) for n in range(nodes)]
    return NodeConfig(number, ports, Path("/data"), tls_pem, settings or {}).properties()


def test_a_single_node_keeps_one_copy_of_everything():
    """No internal topic waits for a second broker."""
    properties = config()
    names = [name for name in properties if "replication.factor" in name or "min.isr" in name]
    assert {properties[name] for name in names} == {"1"}


def test_three_nodes_keep_three_copies_and_vote():
    """Two in-sync copies are enough to accept writes."""
    properties = config(3, number=2)
    assert {properties[name] for name in properties if "replication.factor" in name} == {"3"}
    assert {properties[name] for name in properties if "min.isr" in name} == {"2"}
    assert properties["controller.quorum.voters"] == "0@127.0.0.1:3,1@127.0.0.1:103,2@127.0.0.1:203"
    assert properties["node.id"] == "2"


def test_tls_is_for_clients_only():
    """Nodes connect to each other without TLS, on the loopback interface."""
    properties = config(tls_pem=Path("/broker.pem"))
    assert properties["listener.security.protocol.map"] == "CLIENT:SASL_SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert "ssl.keystore.type" not in config()


def test_settings_override_the_defaults():
    """`settings` is applied last."""
    assert config(settings={"offsets.topic.num.partitions": "50"})["offsets.topic.num.partitions"] == "50"


@pytest.mark.skipif(not Path("/proc/sys/net").exists(), reason="only Linux has this file")
def test_ports_are_outside_the_range_of_outgoing_connections():
    """No client can get the port of a stopped broker as its source port and connect to itself."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = free_ports(9)
    assert len(set(found)) == 9
    assert all(port < lowest for port in found) or lowest < 24_000
