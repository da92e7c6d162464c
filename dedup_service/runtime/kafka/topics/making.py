"""Make the topics that are missing. One that exists is never changed: `check` says what to do about it.

`remove` is for tests and trials: no command of ours deletes a log.
"""

from dataclasses import dataclass

from kafka import KafkaAdminClient

from dedup_service.runtime.kafka.settings import Connection
from dedup_service.runtime.kafka.topics.admin import administration
from dedup_service.runtime.kafka.topics.describing import facts_of
from dedup_service.runtime.kafka.topics.names import Topics
from dedup_service.runtime.kafka.topics.plan import Layout, TopicPlan, plan_for

__all__ = ["Made", "create", "remove"]


@dataclass(frozen=True, slots=True)
class Made:
    """What `create` did about one topic: `created`, or left as it was."""

    plan: TopicPlan
    created: bool


def create(connection: Connection, topics: Topics, layout: Layout | None = None) -> list[Made]:
    """Create the missing topics of the set and return when each has a leader for every partition.

    Without a layout: the default one, with three copies of everything where there are three brokers.
    Raises BrokerError, also when the brokers refuse a plan (more copies than brokers, say).
    """
    with administration(connection) as client:
        plans = plan_for(topics, layout or Layout(replication=usual_replication(client)))
        present = {fact.name for fact in facts_of(client, topics)}
        missing = [plan for plan in plans if plan.name not in present]
        _create(client, missing)
    return [Made(plan, created=plan in missing) for plan in plans]


def remove(connection: Connection, topics: Topics) -> None:
    """Delete the topics of the set with all that is in them; raises BrokerError."""
    with administration(connection) as client:
        present = [fact.name for fact in facts_of(client, topics)]
        if present:
            client.delete_topics(present)


def usual_replication(client: KafkaAdminClient) -> int:
    """Three copies where there are three brokers, else as many as there are brokers."""
    return min(3, len(client.describe_cluster()["brokers"]))


def _create(client: KafkaAdminClient, plans: list[TopicPlan]) -> None:
    if plans:
        client.create_topics(
            {
                plan.name: {
                    "num_partitions": plan.partitions,
                    "replication_factor": plan.replication,
                    "configs": dict(plan.settings),
                }
                for plan in plans
            },
            wait_for_metadata=True,
        )
