"""The server.properties of a node, as values.

Each node has three listeners: CLIENT (plain, or SASL_SSL with SCRAM), INTERNAL between brokers, and
CONTROLLER; the last two are plain, and all are on 127.0.0.1 only. The default settings detect failures
quickly; each can be overridden by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"

FAST: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "250",
    # Not below 3 s: at 0.5 s a transaction that expired while a single broker was down can lose its abort
    # marker, and then blocks every read-committed reader permanently.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3000",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "auto.create.topics.enable": "false",
    "log.cleaner.dedupe.buffer.size": "4194304",  # the default of 128 MB is half of the small heap
    "num.network.threads": "2",
    "num.io.threads": "4",
}


@dataclass(frozen=True, slots=True)
class Ports:
    """The TCP ports of one node, which it keeps over restarts."""

    client: int
    internal: int
    controller: int


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The configuration of one node. ports: of all nodes; tls_pem: key and certificates, None for plain."""

    number: int
    ports: Sequence[Ports]
    data: Path
    tls_pem: Path | None
    settings: Mapping[str, str]

    @property
    def own(self) -> Ports:
        """This node's ports."""
        return self.ports[self.number]

    def properties(self) -> dict[str, str]:
        """Return the node's server.properties; `settings` override the defaults."""
        nodes = len(self.ports)
        own = self.own
        listeners = f"CLIENT://{HOST}:{own.client},INTERNAL://{HOST}:{own.internal}"
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.number),
            "controller.quorum.voters": ",".join(f"{n}@{HOST}:{p.controller}" for n, p in enumerate(self.ports)),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL",
            "listeners": f"{listeners},CONTROLLER://{HOST}:{own.controller}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": (
                f"CLIENT:{'SASL_SSL' if self.tls_pem else 'PLAINTEXT'},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "log.dirs": str(self.data),
            **_replication(min(nodes, 3)),
            **FAST,
            **(_secure(self.tls_pem) if self.tls_pem else {}),
            **self.settings,
        }

    def text(self) -> str:
        """Return `properties` as the text of a Java properties file."""
        return "".join(f"{name}={value}\n" for name, value in self.properties().items())


def _replication(copies: int) -> dict[str, str]:
    in_sync = str(max(1, copies - 1))
    internal = ("transaction.state.log", "share.coordinator.state.topic")
    return {
        "default.replication.factor": str(copies),
        "offsets.topic.replication.factor": str(copies),
        **{f"{topic}.replication.factor": str(copies) for topic in internal},
        **{f"{topic}.min.isr": in_sync for topic in internal},
    }


def _secure(tls_pem: Path) -> dict[str, str]:
    """Return settings for TLS, SCRAM users, and an authorizer that allows everything until an ACL exists."""
    return {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.client.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tls_pem),
        "ssl.client.auth": "none",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:admin;User:ANONYMOUS",  # ANONYMOUS: connections between nodes
    }
