"""Requests about topics, transactions and consumer groups.

`administration` gives an `Admin` for a few requests and closes it. Every error of the library is translated
once, there. Committed offsets are read by a consumer instead: the library's admin client does not ask for
stable offsets (`require_stable`), so it would ignore what an open transaction is about to commit. Every
request ends: with the connection's `request_timeout_ms`, or with the limit given below.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, errors
from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove, OffsetSpec

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.assigned_consumer import AssignedConsumer
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition, connect
from dedup_service.runtime.kafka.client.retry import TRANSIENT, Backoff, permanent_error, transient_error

_LOG = logging.getLogger(__name__)

_LEADERS_TIMEOUT_S = 30.0
_OFFSETS_TIMEOUT_S = 30.0
"""Above the longest transaction: an offset in an open one has to be waited for."""
_ATTEMPT_S = 10.0
_FETCH_BYTES = 1 << 20

_CREATED = (errors.NoError, errors.TopicAlreadyExistsError)  # another process may create the topic at the same time
_INVALID_PLAN = (
    errors.InvalidReplicationFactorError,
    errors.InvalidPartitionsError,
    errors.InvalidConfigurationError,
    errors.InvalidTopicError,
    errors.PolicyViolationError,
)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """One topic as it should be."""

    name: str
    partitions: int
    replication: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic that exists. `settings`: the values in force, whether set on the topic or on the broker.

    `topic_id`: its identity; a topic that is deleted and created again gets another one.

    `offline`: partitions without a leader; `under_replicated`: partitions with fewer replicas in sync than
    assigned.
    """

    name: str
    partitions: int
    replication: int
    offline: int
    under_replicated: int
    settings: Mapping[str, str]
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open on a partition, as the partition's leader reports it.

    offset: of its first record there. last_write_ms: when the producer last wrote there, Unix milliseconds.
    coordinator_epoch: of the coordinator that last wrote a marker there, -1 where none did.
    """

    partition: TopicPartition
    producer_id: int
    epoch: int
    offset: int
    last_write_ms: int
    coordinator_epoch: int


@contextmanager
def administration(connection: Connection) -> Iterator["Admin"]:
    """Yield an `Admin`; the errors of its requests leave this block as ours.

    Raises UnreachableError if no broker answers, NotAuthorisedError if the brokers refuse the user,
    ConfigurationError for what they cannot do, BrokerError for the rest.
    """
    client: Any = connect(KafkaAdminClient, connection)
    try:
        yield Admin(client)
    except (errors.KafkaError, OSError) as error:
        action = f"an administrative request to {connection.bootstrap}"
        raise (permanent_error(error, action) or transient_error(error, action)) from error
    finally:
        client.close()


class Admin:
    """The requests, over one client of the library.

    Use it inside `administration`, which translates its errors.
    """

    def __init__(self, client: KafkaAdminClient) -> None:
        self._client = client

    def count_brokers(self) -> int:
        """Return how many brokers the cluster has now."""
        return len(self._client.describe_cluster()["brokers"])

    def describe_topics(self, names: Sequence[str], settings: Sequence[str]) -> list[TopicDescription]:
        """Return those of the topics that exist, in the order of `names`, with the values of `settings`.

        Raises NotAuthorisedError if the brokers do not say these.
        """
        found = self._topics(names)
        if not found:
            return []
        resources = [ConfigResource(ConfigResourceType.TOPIC, name, list(settings)) for name in found]
        values = self._client.describe_configs(resources, config_filter="all")["topic"]
        if silent := [name for name in found if not values.get(name)]:
            for name in self._deleted(silent):
                del found[name]
        return [_described(found[name], values.get(name, {})) for name in names if name in found]

    def _wait_for_every_broker(self, topics: Sequence[str]) -> None:
        """Wait until no broker would call the topics missing: the next request may go to any of them."""
        pauses = Backoff(first_s=0.05, longest_s=0.5)
        deadline = time.monotonic() + _LEADERS_TIMEOUT_S
        for broker in self._client.describe_cluster()["brokers"]:
            number = broker["broker_id"]
            while not internals.knows_topics(self._client, number, topics, _ATTEMPT_S):
                if time.monotonic() > deadline:
                    raise errors.KafkaTimeoutError(f"broker {number} does not know the new topics")
                pauses.wait(errors.UnknownTopicOrPartitionError(f"broker {number}"))

    def _deleted(self, topics: Sequence[str]) -> list[str]:
        """Return those of these topics that were deleted just now; raise why the settings of others are not said."""
        refused = internals.refused_settings(self._client, topics)
        hidden = {topic for topic, kind in refused.items() if kind is errors.TopicAuthorizationFailedError}
        if hidden:
            error = errors.TopicAuthorizationFailedError(hidden)
            raise permanent_error(error, "to describe topics", needs="DescribeConfigs") or error
        for topic, kind in refused.items():
            if kind is not errors.UnknownTopicOrPartitionError:
                raise kind(topic)
        return list(refused)

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end of each partition, records of open transactions included."""
        latest = dict.fromkeys(partitions, OffsetSpec.LATEST)
        return {partition: at.offset for partition, at in self._client.list_partition_offsets(latest).items()}

    def beginnings(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition that its retention has left."""
        earliest = dict.fromkeys(partitions, OffsetSpec.EARLIEST)
        return {partition: at.offset for partition, at in self._client.list_partition_offsets(earliest).items()}

    def partitions_of(self, names: Sequence[str]) -> list[TopicPartition]:
        """Return all partitions of those of the topics that exist."""
        return [
            TopicPartition(name, partition["partition_index"])
            for name, topic in self._topics(names).items()
            for partition in topic["partitions"]
        ]

    def create_topics(self, plans: Sequence[TopicPlan]) -> None:
        """Create the topics.

        Return when every broker that answers knows a leader of each partition, or raise after 30 s. Existing
        ones are left. Raises ConfigurationError if the brokers refuse a plan, for example more replicas than
        brokers.
        """
        if not plans:
            return
        requested = {
            plan.name: {
                "num_partitions": plan.partitions,
                "replication_factor": plan.replication,
                "configs": dict(plan.settings),
            }
            for plan in plans
        }
        for answer in self._client.create_topics(requested, raise_errors=False)["topics"]:
            _require_created(answer)
        self._client.wait_for_topics(list(requested), timeout_ms=_LEADERS_TIMEOUT_S * 1000)
        self._wait_for_every_broker(list(requested))

    def delete_topics(self, names: Sequence[str]) -> None:
        """Delete those of the topics that exist, with all their records."""
        self._client.delete_topics(list(names), raise_errors=False)

    def members_of(self, groups: Sequence[str], topic: str) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
        """Return the members of each group by name, with the partitions of `topic` that each has."""
        return {
            group: sorted(
                (one["group_instance_id"] or one["client_id"], _assigned(one, topic)) for one in said["members"]
            )
            for group, said in self._client.describe_groups(list(groups)).items()
        }

    def open_transactions(self, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
        """Return the transactions that are open on the partitions."""
        return [
            OpenTransaction(
                partition=partition,
                producer_id=producer.producer_id,
                epoch=producer.producer_epoch,
                offset=producer.current_transaction_start_offset,
                last_write_ms=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
            )
            for partition, state in self._client.describe_producers(partitions).items()
            for producer in state.active_producers
            if producer.current_transaction_start_offset >= 0
        ]

    def transactions_of(self, producer_ids: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Return (transactional id, state) by producer id, of those that a coordinator knows and this user may see."""
        ids = sorted(set(producer_ids))
        found = self._client.list_transactions(producer_id_filters=ids) if ids else {}
        return {
            listing.producer_id: (listing.transactional_id, listing.state.value)
            for listings in found.values()
            for listing in listings
        }

    def write_marker(
        self, partition: TopicPartition, producer: tuple[int, int], coordinator_epoch: int, *, committed: bool
    ) -> None:
        """End the transaction of `producer` (id, epoch) on one partition, committed or aborted."""
        internals.write_marker(self._client, partition, producer, coordinator_epoch, committed=committed)

    def remove_member(self, group: str, instance: str) -> None:
        """Remove a static member from its group."""
        self._client.remove_group_members(group, [MemberToRemove(group_instance_id=instance)])

    def _topics(self, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return each topic that exists, as the library describes it."""
        answers = self._client.describe_topics(list(names))
        for topic in answers:
            if topic["error_code"] == errors.TopicAuthorizationFailedError.errno:
                raise errors.TopicAuthorizationFailedError(topic["name"])  # it may exist: not a missing one
        return {topic["name"]: topic for topic in answers if not topic["error_code"] and topic["partitions"]}


def leave_group(connection: Connection, group: str, instance: str) -> None:
    """Remove a static member from its group, so that its partitions move at once.

    The library never does it (KIP-345). Where it fails, the end of the session has the same effect, only
    later.
    """
    try:
        with administration(connection) as admin:
            admin.remove_member(group, instance)
    except (*TRANSIENT, TwinsieveError) as error:
        _LOG.warning(
            "group %s: could not remove member %s, which leaves when its session ends: %s", group, instance, error
        )


def committed_offsets(connection: Connection, group: str, topic: str) -> dict[TopicPartition, int]:
    """Return the committed offset of each partition of `topic` that has one, without joining the group.

    {} if the topic does not exist. Offsets in open transactions are waited for. Raises UnreachableError if no
    answer comes within 30 s, NotAuthorisedError if the brokers refuse the group or the topic, and what
    `connect` raises.
    """

    def offsets(reader: KafkaConsumer) -> dict[TopicPartition, int]:
        partitions = internals.partitions_of(reader, topic, _ATTEMPT_S)
        return internals.committed(reader, partitions, _ATTEMPT_S)

    what = f"what group {group} has committed for {topic}"
    with closing(AssignedConsumer(connection, _FETCH_BYTES, f"offsets of group {group}", group=group)) as reader:
        return reader.ask(offsets, what, _OFFSETS_TIMEOUT_S)


def _assigned(member: Mapping[str, Any], topic: str) -> tuple[int, ...]:
    """Return the partitions of a topic that a member has; none while its group moves them."""
    parts = (member["member_assignment"] or {}).get("assigned_partitions", ())
    return tuple(sorted(number for part in parts if part["topic"] == topic for number in part["partitions"]))


def _described(topic: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]) -> TopicDescription:
    partitions = topic["partitions"]
    return TopicDescription(
        name=topic["name"],
        partitions=len(partitions),
        replication=min(len(partition["replica_nodes"]) for partition in partitions),
        offline=sum(partition["leader_id"] < 0 for partition in partitions),
        under_replicated=sum(len(p["isr_nodes"]) < len(p["replica_nodes"]) for p in partitions),
        settings={setting: str(entry["value"]) for setting, entry in settings.items()},
        topic_id=str(topic["topic_id"]),
    )


def _require_created(answer: Mapping[str, Any]) -> None:
    error = errors.for_code(answer["error_code"])
    if error in _CREATED:
        return
    text = f"topic {answer['name']} was not created: {answer.get('error_message') or error.__name__}"
    raise ConfigurationError(text) if error in _INVALID_PLAN else error(text)
