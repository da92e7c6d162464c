"""Make the topics that are missing. One that exists is never changed: `check` says what to do about it.

`remove` is for tests and trials: no command of ours deletes a log.
"""

from dataclasses import dataclass
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import administration
from dedup_service.runtime.kafka.topics.check import TopicDescription, facts_of
from dedup_service.runtime.kafka.topics.plan import Layout, TopicPlan, Topics, plan_for

__all__ = ["Made", "create", "remove"]

_THERE = (kafka.errors.NoError, kafka.errors.TopicAlreadyExistsError)  # somebody else may create them as we do
_WRONG = (
    kafka.errors.InvalidReplicationFactorError,
    kafka.errors.InvalidPartitionsError,
    kafka.errors.InvalidConfigurationError,
    kafka.errors.InvalidTopicError,
    kafka.errors.PolicyViolationError,
)


@dataclass(frozen=True, slots=True)
class Made:
    """What `create` did about one topic. `found`: how it was there before, None where it was created now."""

    plan: TopicPlan
    found: TopicDescription | None

    @property
    def created(self) -> bool:
        """Whether it was missing."""
        return self.found is None

    @property
    def differences(self) -> dict[str, tuple[str, str]]:
        """What is there and what the plan says, by name, where a topic that was there differs."""
        if self.found is None:
            return {}
        there = {"partitions": str(self.found.partitions), "replication": str(self.found.replication)}
        there |= self.found.settings
        planned = {"partitions": str(self.plan.partitions), "replication": str(self.plan.replication)}
        planned |= self.plan.settings
        return {name: (there[name], value) for name, value in planned.items() if there.get(name, value) != value}


def create(connection: Connection, topics: Topics, layout: Layout | None = None) -> list[Made]:
    """Create the missing topics of the set; returns when each partition has a leader.

    Raises ConfigurationError where the brokers refuse the layout (more copies than brokers, say), BrokerError.
    """
    with administration(connection) as client:
        brokers = len(client.describe_cluster()["brokers"])
        plans = plan_for(topics, layout or Layout(), brokers)
        found = {fact.name: fact for fact in facts_of(client, topics)}
        _create(client, [plan for plan in plans if plan.name not in found])
    return [Made(plan, found.get(plan.name)) for plan in plans]


def remove(connection: Connection, topics: Topics) -> None:
    """Delete the topics of the set with all that is in them, as far as they are there; raises BrokerError."""
    with administration(connection) as client:
        client.delete_topics(list(topics.all), raise_errors=False)


def _create(client: KafkaAdminClient, plans: list[TopicPlan]) -> None:
    if not plans:
        return
    wanted = {
        plan.name: {
            "num_partitions": plan.partitions,
            "replication_factor": plan.replication,
            "configs": dict(plan.settings),
        }
        for plan in plans
    }
    for answer in client.create_topics(wanted, raise_errors=False)["topics"]:
        _raise_unless_there(answer)
    client.wait_for_topics(list(wanted), timeout_ms=30_000)


def _raise_unless_there(answer: dict[str, Any]) -> None:
    error = kafka.errors.for_code(answer["error_code"])
    if error in _THERE:
        return
    told = f"topic {answer['name']} was not created: {answer.get('error_message') or error.__name__}"
    raise ConfigurationError(told) if error in _WRONG else error(told)
