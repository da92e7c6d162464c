"""Find transactions on our topics that nobody will end.

How: partitions tell whose transaction is open on them and since which offset; the coordinators' own log, read after
that, tells who is still at work. What is open before and after, at the same offset, while its coordinator has nothing
left to do, stays open for ever. Reading the log needs *Read* on `__transaction_state`.
"""

import time
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.consumers import consumer
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import PASSING, for_good, passing
from dedup_service.runtime.kafka.settling.history import History, Outcome
from dedup_service.runtime.kafka.settling.states import decode
from dedup_service.runtime.kafka.topics.admin import administration
from dedup_service.runtime.kafka.topics.names import Topics

__all__ = ["Endless", "find_endless"]

STATES, OFFSETS = "__transaction_state", "__consumer_offsets"

_FETCH_BYTES = 8 << 20
_ANSWER_S = 60.0
"""Without a record for so long the log counts as out of reach."""


@dataclass(frozen=True, slots=True, order=True)
class Endless:
    """A transaction that stays open on a partition from `offset` on.

    since_ms: when the producer last wrote there. outcome: what its coordinator decided, None where its log has that no
    more. epochs: of the producer for the marker, and of the coordinator that wrote there last.
    """

    topic: str
    partition: int
    offset: int
    since_ms: int
    transactional_id: str
    producer_id: int
    outcome: Outcome | None
    epoch: int
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class _Open:
    place: TopicPartition
    producer_id: int
    epoch: int
    offset: int
    since_ms: int
    coordinator_epoch: int

    @property
    def identity(self) -> tuple[TopicPartition, int, int]:
        """What makes it the same transaction when it is seen again; a producer's later one begins elsewhere."""
        return self.place, self.producer_id, self.offset


def find_endless(connection: Connection, topics: Topics) -> list[Endless]:
    """Return them, by topic and partition; reads the transaction log from its beginning.

    The offsets of groups are looked at as well, for producers that wrote into `topics`. Raises BrokerError,
    ConfigurationError where the log is of a format to come.
    """
    with administration(connection) as client:
        before = _open_on(client, _places(client, [*topics.all, OFFSETS]))
        if not before:
            return []
        histories = _histories(connection, {one.producer_id for one in before})
        after = {one.identity for one in _open_on(client, {one.place for one in before})}
    names = set(topics.all)
    found = []
    for one in before:
        history = histories.get(one.producer_id)
        ours = one.place.topic in names or (history is not None and not history.topics.isdisjoint(names))
        if ours and one.identity in after and not (history and history.is_at_work(one.place)):
            found.append(_endless(one, history))
    return sorted(found)


def _endless(one: _Open, history: History | None) -> Endless:
    decided = history.outcome(one.place, one.producer_id, one.epoch) if history else None
    outcome, epoch = decided or (None, one.epoch)
    name = history.last.transactional_id if history else "unknown"
    return Endless(
        topic=one.place.topic,
        partition=one.place.partition,
        offset=one.offset,
        since_ms=one.since_ms,
        transactional_id=name,
        producer_id=one.producer_id,
        outcome=outcome,
        epoch=epoch,
        coordinator_epoch=max(0, one.coordinator_epoch),
    )


def _open_on(client: KafkaAdminClient, places: Iterable[TopicPartition]) -> list[_Open]:
    return [
        _Open(
            place,
            producer.producer_id,
            producer.producer_epoch,
            producer.current_transaction_start_offset,
            producer.last_timestamp,
            producer.coordinator_epoch,
        )
        for place, state in client.describe_producers(places).items()
        for producer in state.active_producers
        if producer.current_transaction_start_offset >= 0
    ]


def _places(client: KafkaAdminClient, names: list[str]) -> list[TopicPartition]:
    """All partitions of those of the topics that are there."""
    there = [topic for topic in client.describe_topics(names) if not topic["error_code"]]
    return [TopicPartition(topic["name"], one["partition_index"]) for topic in there for one in topic["partitions"]]


def _histories(connection: Connection, producers: Container[int]) -> dict[int, History]:
    """Read the transaction log for what it says of the ids that have, or had, one of these producers' numbers."""
    reader = consumer(connection, _FETCH_BYTES)
    by_name: dict[str, History] = {}
    by_producer: dict[int, History] = {}
    try:
        for record in _all(reader):
            state = decode(record.key, record.value)
            if state is None:
                continue
            if history := by_name.get(state.transactional_id):
                history.note(state)
            elif state.producer_id in producers:
                history = by_name[state.transactional_id] = History(state)
            if history and state.producer_id in producers:
                by_producer[state.producer_id] = history
    except PASSING as error:
        doing = f"to read {STATES}"
        raise for_good(error, doing) or passing(error, doing) from error
    except ValueError as error:
        raise ConfigurationError(f"{STATES} cannot be read as this release of Kafka writes it: {error}") from error
    finally:
        reader.close(autocommit=False, timeout_ms=2000)
    return by_producer


def _all(reader: KafkaConsumer) -> Iterator[ConsumerRecord]:
    """The whole log, partition by partition in order: all states of an id are in one."""
    places = [TopicPartition(STATES, number) for number in sorted(reader.partitions_for_topic(STATES) or ())]
    reader.assign(places)
    reader.seek_to_beginning()
    ends, deadline = reader.end_offsets(places), time.monotonic() + _ANSWER_S
    while any(reader.position(place) < end for place, end in ends.items()):
        records = [record for batch in reader.poll(timeout_ms=500).values() for record in batch]
        yield from records
        if records:
            deadline = time.monotonic() + _ANSWER_S
        elif time.monotonic() > deadline:
            raise UnreachableError(f"{STATES} gives no records; try again")
