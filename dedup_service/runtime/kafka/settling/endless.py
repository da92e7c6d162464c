"""Find transactions on our topics that nobody will end.

How: partitions tell whose transaction is open on them and since which offset; the coordinators' own log, read after
that, tells who is still at work. What is open before and after, at the same offset, while its coordinator has nothing
left to do, stays open for ever. Reading the log needs *Read* on `__transaction_state`.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.client.consumers import consumer
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import PASSING, for_good, passing
from dedup_service.runtime.kafka.settling.states import Outcome, State, decode, is_at_work, outcome_of
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

    The offsets of groups are looked at as well, for producers that wrote into `topics`. Raises BrokerError.
    """
    with administration(connection) as client:
        before = _open_on(client, _places(client, [*topics.all, OFFSETS]))
        if not before:
            return []
        states = _of_producers(_states(connection))
        after = {one.identity for one in _open_on(client, {one.place for one in before})}
    still = [one for one in before if one.identity in after]
    names = set(topics.all)
    known = ((one, states.get(one.producer_id, [])) for one in still)
    wanted = ((one, of_it) for one, of_it in known if one.place.topic in names or _wrote_into(of_it, names))
    return sorted(_endless(one, of_it) for one, of_it in wanted if not is_at_work(of_it, one.place))


def _endless(one: _Open, states: list[State]) -> Endless:
    decided = outcome_of(states, one.place, one.producer_id, one.epoch)
    outcome, epoch = decided or (None, one.epoch)
    name = states[-1].transactional_id if states else "unknown"
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


def _wrote_into(states: Iterable[State], names: set[str]) -> bool:
    return any(topic in names for state in states for topic, _ in state.places)


def _of_producers(states: Iterable[State]) -> dict[int, list[State]]:
    """All states of the transactional id that a producer number belongs to, also those under its other numbers."""
    by_name: dict[str, list[State]] = defaultdict(list)
    for state in states:
        by_name[state.transactional_id].append(state)
    return {state.producer_id: of_name for of_name in by_name.values() for state in of_name}


def _states(connection: Connection) -> list[State]:
    """The whole transaction log, partition by partition: all of an id are in one."""
    reader = consumer(connection, _FETCH_BYTES)
    try:
        return [state for record in _all(reader) if (state := decode(record.key, record.value))]
    except PASSING as error:
        doing = f"to read {STATES}"
        raise for_good(error, doing) or passing(error, doing) from error
    finally:
        reader.close(autocommit=False, timeout_ms=2000)


def _all(reader: KafkaConsumer) -> Iterator[ConsumerRecord]:
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
