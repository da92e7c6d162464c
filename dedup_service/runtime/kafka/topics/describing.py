"""What is there: partitions, replication and settings of each topic, as the brokers report them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.topics.admin import administration
from dedup_service.runtime.kafka.topics.names import Topics

__all__ = ["TopicFact", "describe", "facts_of"]

SHOWN = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "max.message.bytes",
    "min.insync.replicas",
    "compression.type",
    "unclean.leader.election.enable",
)


@dataclass(frozen=True, slots=True)
class TopicFact:
    """One topic that exists. `settings` holds the values in force, whether set on the topic or on the broker.

    `offline`: partitions without a leader; `under_replicated`: partitions with fewer copies in sync than there are.
    """

    name: str
    partitions: int
    replication: int
    offline: int
    under_replicated: int
    settings: Mapping[str, str]


def describe(connection: Connection, topics: Topics) -> list[TopicFact]:
    """The topics of the set that exist, in the order of `topics.all`; raises BrokerError."""
    with administration(connection) as client:
        return facts_of(client, topics)


def facts_of(client: KafkaAdminClient, topics: Topics) -> list[TopicFact]:
    """As `describe`, with a client at hand."""
    found = {topic["name"]: topic["partitions"] for topic in client.describe_topics(list(topics.all)) if _exists(topic)}
    if not found:
        return []
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, list(SHOWN)) for name in found]
    settings = client.describe_configs(resources, config_filter="all")["topic"]
    return [_fact(name, found[name], settings.get(name, {})) for name in topics.all if name in found]


def _exists(topic: Mapping[str, Any]) -> bool:
    return topic["error_code"] == 0 and bool(topic["partitions"])


def _fact(name: str, partitions: list[Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]]) -> TopicFact:
    return TopicFact(
        name=name,
        partitions=len(partitions),
        replication=min(len(partition["replica_nodes"]) for partition in partitions),
        offline=sum(partition["leader_id"] < 0 for partition in partitions),
        under_replicated=sum(len(p["isr_nodes"]) < len(p["replica_nodes"]) for p in partitions),
        settings={setting: str(entry["value"]) for setting, entry in settings.items()},
    )
