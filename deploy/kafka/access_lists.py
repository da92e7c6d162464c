"""Access control lists of a test's broker: what the user of the service may do, granted and withdrawn."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import OutputMode, Topics
from deploy.kafka.cluster import Cluster

DENY_BY_DEFAULT = {"allow.everyone.if.no.acl.found": "false"}
"""Settings of a cluster with `sasl` whose users may do nothing until it is granted."""


@dataclass(frozen=True)
class Grant:
    """One operation on one resource. kind: a `ResourceType`, as TOPIC or GROUP; prefixed: all that begin with name."""

    kind: str
    name: str
    operation: str
    prefixed: bool = False


def needed(topics: Topics, group: str) -> list[Grant]:
    """What docs/service.md says that the service needs."""
    used = topics.needed_for(OutputMode.PAGES)
    outputs = [name for name in used if name not in {topics.pages, topics.fingerprints}]
    name = f"{topics.prefix}{group}"
    return [
        Grant("TOPIC", topics.pages, "READ"),
        Grant("TOPIC", topics.fingerprints, "READ"),
        Grant("TOPIC", topics.fingerprints, "WRITE"),
        Grant("TOPIC", topics.offsets, "READ"),
        *(Grant("TOPIC", topic, "WRITE") for topic in outputs),
        *(Grant("TOPIC", topic, operation) for topic in used for operation in ("DESCRIBE", "DESCRIBE_CONFIGS")),
        *(Grant("GROUP", one, "READ") for one in (name, f"{name}.decide")),
        *(Grant("TRANSACTIONAL_ID", f"{name}.", operation, prefixed=True) for operation in ("WRITE", "DESCRIBE")),
    ]


class AccessLists:
    """The lists of a cluster; `admin`: the connection of a super user."""

    def __init__(self, cluster: Cluster) -> None:
        self.admin = Connection(cluster.inner_bootstrap)
        self._principal = f"User:{cluster.user}"

    def grant(self, grants: Iterable[Grant]) -> None:
        """Allow the service's user each of them."""
        acls = [
            ACL(self._principal, "*", ACLOperation[grant.operation], ACLPermissionType.ALLOW, self._pattern(grant))
            for grant in grants
        ]
        with self._client() as client:
            assert not client.create_acls(acls)["failed"]

    def withdraw(self, grants: Iterable[Grant]) -> None:
        """Allow them no more."""
        filters = [
            ACLFilter(
                self._principal,
                "*",
                ACLOperation[grant.operation],
                ACLPermissionType.ALLOW,
                ResourcePatternFilter(ResourceType[grant.kind], grant.name, self._kind(grant)),
            )
            for grant in grants
        ]
        with self._client() as client:
            client.delete_acls(filters)

    def count(self) -> int:
        """Return the number of rules for the user that the broker knows; a change takes it a moment."""
        everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        rules = ACLFilter(self._principal, None, ACLOperation.ANY, ACLPermissionType.ANY, everything)
        with self._client() as client:
            found, _ = client.describe_acls(rules)
            return len(found)

    def _pattern(self, grant: Grant) -> ResourcePattern:
        return ResourcePattern(ResourceType[grant.kind], grant.name, self._kind(grant))

    @staticmethod
    def _kind(grant: Grant) -> ACLResourcePatternType:
        return ACLResourcePatternType.PREFIXED if grant.prefixed else ACLResourcePatternType.LITERAL

    @contextmanager
    def _client(self) -> Iterator[Any]:
        client = KafkaAdminClient(bootstrap_servers=self.admin.servers)
        try:
            yield client
        finally:
            client.close()
