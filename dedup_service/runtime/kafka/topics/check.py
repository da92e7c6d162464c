"""What is there: partitions, replication and settings of each topic, as the brokers report them.

Say what is wrong with the topics that exist, and what to do about each point.

A fault makes the service refuse to start, because verdicts would be lost or wrong; a note only says what to know.
The log must have one partition and keep everything: where it were compacted or had a retention, a restored service
would have forgotten pages, and two services would disagree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import administration
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.topics.plan import Topics

__all__ = ["TopicDescription", "TopicProblem", "check", "describe", "facts_of", "problems_of", "require_log"]

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
class TopicDescription:
    """One topic that exists. `settings` holds the values in force, whether set on the topic or on the broker.

    `offline`: partitions without a leader; `under_replicated`: partitions with fewer copies in sync than there are.
    """

    name: str
    partitions: int
    replication: int
    offline: int
    under_replicated: int
    settings: Mapping[str, str]


def describe(connection: Connection, topics: Topics) -> list[TopicDescription]:
    """The topics of the set that exist, in the order of `topics.all`; raises BrokerError."""
    with administration(connection) as client:
        return facts_of(client, topics)


def facts_of(client: KafkaAdminClient, topics: Topics) -> list[TopicDescription]:
    """As `describe`, with a client at hand."""
    found = {topic["name"]: topic["partitions"] for topic in client.describe_topics(list(topics.all)) if _exists(topic)}
    if not found:
        return []
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, list(SHOWN)) for name in found]
    settings = client.describe_configs(resources, config_filter="all")["topic"]
    return [_fact(name, found[name], settings.get(name, {})) for name in topics.all if name in found]


def _exists(topic: Mapping[str, Any]) -> bool:
    return topic["error_code"] == 0 and bool(topic["partitions"])


def _fact(
    name: str, partitions: list[Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]]
) -> TopicDescription:
    return TopicDescription(
        name=name,
        partitions=len(partitions),
        replication=min(len(partition["replica_nodes"]) for partition in partitions),
        offline=sum(partition["leader_id"] < 0 for partition in partitions),
        under_replicated=sum(len(p["isr_nodes"]) < len(p["replica_nodes"]) for p in partitions),
        settings={setting: str(entry["value"]) for setting, entry in settings.items()},
    )


@dataclass(frozen=True, slots=True)
class TopicProblem:
    """One point: what is (`found`), what should be (`wanted`), what to do.

    fault: the service refuses to start. passes: it may be gone by itself in a moment.
    """

    topic: str
    setting: str
    found: str
    wanted: str
    advice: str
    fault: bool = True
    passes: bool = False


def check(connection: Connection, topics: Topics) -> list[TopicProblem]:
    """What is wrong with the set, faults first; raises BrokerError."""
    return problems_of(describe(connection, topics), topics)


def require_log(connection: Connection, topics: Topics) -> None:
    """Return where the service can work with these topics.

    Raises ConfigurationError with every fault, UnreachableError where all of them may pass, and what `check` raises.
    """
    faults = [problem for problem in check(connection, topics) if problem.fault]
    if faults:
        told = "; ".join(f"{p.topic}: {p.setting} is {p.found}, must be {p.wanted} ({p.advice})" for p in faults)
        kind = UnreachableError if all(problem.passes for problem in faults) else ConfigurationError
        raise kind(f"the topics at {connection.bootstrap} cannot be used: {told}")


def problems_of(facts: list[TopicDescription], topics: Topics) -> list[TopicProblem]:
    """As `check`, of facts at hand."""
    by_name = {fact.name: fact for fact in facts}
    found = [*_missing(by_name, topics)]
    if log := by_name.get(topics.fingerprints):
        found += _log_faults(log)
    for fact in facts:
        found += _common(fact, is_log=fact.name == topics.fingerprints)
    found += _sizes(by_name, topics)
    return sorted(found, key=lambda problem: not problem.fault)


def _missing(present: dict[str, TopicDescription], topics: Topics) -> Iterator[TopicProblem]:
    prefix = f" --prefix {topics.prefix}" if topics.prefix else ""
    for name in topics.all:
        if name not in present:
            yield TopicProblem(name, "topic", "missing", "there", f"twinsieve topics create{prefix}")


def _log_faults(log: TopicDescription) -> Iterator[TopicProblem]:
    if log.partitions != 1:
        yield TopicProblem(
            log.name,
            "partitions",
            str(log.partitions),
            "1",
            "partitions cannot be taken away: start a new set with --prefix",
        )
    for setting, wanted in (("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")):
        if log.settings.get(setting) != wanted:
            yield TopicProblem(
                log.name, setting, log.settings.get(setting, "unknown"), wanted, _set(log.name, setting, wanted)
            )


def _common(fact: TopicDescription, *, is_log: bool) -> Iterator[TopicProblem]:
    policy, in_sync = fact.settings.get("cleanup.policy", "unknown"), int(fact.settings.get("min.insync.replicas", 1))
    if policy != "delete" and not is_log:
        yield TopicProblem(fact.name, "cleanup.policy", policy, "delete", _set(fact.name, "cleanup.policy", "delete"))
    if in_sync > fact.replication:
        yield TopicProblem(
            fact.name,
            "min.insync.replicas",
            str(in_sync),
            f"{fact.replication} at most",
            _set(fact.name, "min.insync.replicas", str(max(1, fact.replication - 1))),
        )
    if fact.offline:
        advice = "partitions have no leader: bring their brokers back"
        led = f"{fact.partitions - fact.offline}"
        yield TopicProblem(fact.name, "leaders", led, f"{fact.partitions}", advice, passes=True)
    yield from _notes(fact)


def _notes(fact: TopicDescription) -> Iterator[TopicProblem]:
    if fact.under_replicated and not fact.offline:
        advice = "copies are behind or their brokers away"
        yield TopicProblem(
            fact.name,
            "partitions in sync",
            str(fact.partitions - fact.under_replicated),
            str(fact.partitions),
            advice,
            fault=False,
        )
    if fact.settings.get("unclean.leader.election.enable") == "true":
        setting = "unclean.leader.election.enable"
        yield TopicProblem(fact.name, setting, "true", "false", _set(fact.name, setting, "false"), fault=False)


def _sizes(present: dict[str, TopicDescription], topics: Topics) -> Iterator[TopicProblem]:
    """Whatever fits into `pages` must fit where it goes."""
    if topics.pages not in present:
        return
    page = _max_bytes(present[topics.pages])
    for name, minimum in ((topics.unique, page), (topics.duplicate, page), (topics.dlq, page + 1)):
        if name in present and _max_bytes(present[name]) < minimum:
            found = str(_max_bytes(present[name]))
            yield TopicProblem(
                name,
                "max.message.bytes",
                found,
                f"{minimum} at least ({topics.pages} takes {page})",
                _set(name, "max.message.bytes", str(2 * page)),
            )


def _max_bytes(fact: TopicDescription) -> int:
    return int(fact.settings.get("max.message.bytes", 0))


def _set(topic: str, setting: str, value: str) -> str:
    return f"kafka-configs.sh --alter --topic {topic} --add-config {setting}={value}"
