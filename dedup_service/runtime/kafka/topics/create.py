"""Create the topics that are missing. One that exists is never changed: `check` says what to do about it.

`remove` is for tests and trials: no command deletes a log.
"""

from dataclasses import dataclass

from dedup_service.runtime.kafka.client.admin import TopicDescription, TopicPlan, administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics.check import CHECKED_SETTINGS
from dedup_service.runtime.kafka.topics.plan import Layout, Topics, plan_for


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """What `create` did about one topic.

    `existing`: the topic as it was before, None if it was created.
    """

    plan: TopicPlan
    existing: TopicDescription | None

    @property
    def created(self) -> bool:
        """Whether the topic was missing."""
        return self.existing is None

    @property
    def differences(self) -> dict[str, tuple[str, str]]:
        """What an existing topic has and what the plan says, by the name of each setting that differs."""
        if self.existing is None:
            return {}
        actual = {"partitions": str(self.existing.partitions), "replication": str(self.existing.replication)}
        actual |= self.existing.settings
        planned = {"partitions": str(self.plan.partitions), "replication": str(self.plan.replication)}
        planned |= self.plan.settings
        return {name: (actual[name], value) for name, value in planned.items() if actual.get(name, value) != value}


def create(connection: Connection, topics: Topics, layout: Layout | None = None) -> list[TopicCreation]:
    """Create the missing topics of the set; return when each partition has a leader.

    Raises ConfigurationError if the brokers refuse the layout (for example more replicas than brokers),
    BrokerError.
    """
    with administration(connection) as admin:
        plans = plan_for(topics, layout or Layout(), admin.count_brokers())
        names = topics.all if layout is None or layout.slots is None else (*topics.all, *topics.of_shards)
        existing = {topic.name: topic for topic in admin.describe_topics(names, CHECKED_SETTINGS)}
        admin.create_topics([plan for plan in plans if plan.name not in existing])
    return [TopicCreation(plan, existing.get(plan.name)) for plan in plans]


def remove(connection: Connection, topics: Topics) -> None:
    """Delete those topics of the set that exist, with all their records; raises BrokerError."""
    with administration(connection) as admin:
        admin.delete_topics((*topics.all, *topics.of_shards))
