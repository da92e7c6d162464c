"""What must be done inside the client library, all in one place.

Each function is one of the library's own (release 3.0.12) with what it lacks: an end. `commit_transaction` and
`send_offsets_to_transaction` wait for ever for a result that knows how to wait for a time; `flush` waits its timeout
once per batch; `close` raises where it cannot flush and leaves its thread running; and a commit goes through although
a batch of its transaction has expired, so results are looked at before it. An administrator can abort a transaction
that hangs, not commit it.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, errors
from kafka.protocol.producer.transaction import WriteTxnMarkersRequest
from kafka.structs import ConsumerGroupMetadata, MemberState, OffsetAndMetadata, TopicPartition

__all__ = [
    "close_consumer",
    "commit",
    "committed",
    "discard",
    "has_coordinator",
    "has_failed",
    "is_dead",
    "is_fenced_member",
    "is_joining",
    "last_error",
    "lost_positions",
    "partitions_without_position",
    "position",
    "positions_and_ends",
    "refresh_metadata",
    "release_paused_records",
    "send_offsets",
    "topic_id",
    "wait_for_all",
    "was_refused",
    "write_marker",
]

# ruff: noqa: SLF001 - this module is the one that may


def send_offsets(
    producer: KafkaProducer,
    offsets: Mapping[TopicPartition, int],
    group: ConsumerGroupMetadata | None,
    timeout_s: float,
) -> None:
    """Add offsets to the open transaction; KafkaTimeoutError after `timeout_s`."""
    whole = {at: OffsetAndMetadata(offset, "", -1) for at, offset in offsets.items()}
    result = producer._transaction_manager.send_offsets_to_transaction(whole, group)
    producer._sender.wakeup()
    _wait(result, "the offsets", timeout_s)


def commit(producer: KafkaProducer, timeout_s: float) -> None:
    """Commit the open transaction; KafkaTimeoutError after `timeout_s`, and nobody knows then what became of it."""
    result = producer._transaction_manager.begin_commit()
    producer._sender.wakeup()
    _wait(result, "the commit", timeout_s)


def _wait(result: Any, what: str, timeout_s: float) -> None:
    if not result.wait(timeout_ms=max(0.0, timeout_s) * 1000):
        raise errors.KafkaTimeoutError(f"{what} got no answer in time")


def wait_for_all(producer: KafkaProducer, futures: Iterable[Any], timeout_s: float) -> None:
    """Send what lingers, wait for all of `futures`; raises the first failure, KafkaTimeoutError after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    accumulator = producer._accumulator
    accumulator.begin_flush()
    try:
        producer._sender.wakeup()
        for future in futures:
            if not future.is_done:
                future.get(timeout=max(0.0, deadline - time.monotonic()))
            elif future.exception is not None:
                raise future.exception
    finally:
        accumulator._flushes_in_progress.decrement()


def last_error(producer: KafkaProducer) -> BaseException | None:
    """Return why the producer has failed, which its calls do not always say."""
    manager = producer._transaction_manager
    return manager.last_error if manager is not None else None


def discard(producer: KafkaProducer, patience_s: float) -> Any:
    """Stop a producer without sending anything more; return its thread, which may need a request's timeout to end."""
    sender = producer._sender
    sender.force_close()
    sender.join(patience_s)
    producer._unregister_cleanup()
    producer._closed = True  # close() would flush first, raise, and leave the rest undone
    return sender


def committed(
    consumer: KafkaConsumer, partitions: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, int]:
    """Return the committed offset of those that have one, in one request; waits while transactions hold them open."""
    found = consumer._coordinator.fetch_committed_offsets(list(partitions), timeout_ms=timeout_s * 1000)
    return {at: offset.offset for at, offset in found.items()}


def partitions_without_position(consumer: KafkaConsumer) -> frozenset[TopicPartition]:
    """Return the assigned partitions of which it is not known where to begin."""
    assignment = dict(consumer._subscription.assignment)
    return frozenset(at for at, state in assignment.items() if not state.has_valid_position)


def positions_and_ends(consumer: KafkaConsumer) -> dict[TopicPartition, tuple[int, int]]:
    """Return the (next offset, end of the log as last heard) of each partition where both are known; asks nobody."""
    assignment = dict(consumer._subscription.assignment)
    return {
        at: (state.position.offset, state.highwater)
        for at, state in assignment.items()
        if state.position is not None and state.highwater is not None
    }


def is_fenced_member(consumer: KafkaConsumer) -> bool:
    """Whether another process is in the group under our instance name.

    The heartbeat learns it, stops beating, and tells nobody: `poll()` goes on returning records.
    """
    coordinator = consumer._coordinator
    return bool(
        coordinator.state is MemberState.STABLE
        and not coordinator.rejoining
        and not coordinator.need_rejoin()
        and not coordinator._heartbeat_enabled
    )


def lost_positions(error: errors.OffsetOutOfRangeError) -> dict[TopicPartition, int]:
    """Return the positions that the brokers do not have."""
    return dict(error.args[0]) if error.args and isinstance(error.args[0], dict) else {}


def position(consumer: KafkaConsumer, partition: TopicPartition, otherwise: int) -> int:
    """Return the next offset to be read; without asking anybody, as the library's own may for ever."""
    state = consumer._subscription.assignment.get(partition)
    return otherwise if state is None or state.position is None else int(state.position.offset)


def has_coordinator(consumer: KafkaConsumer) -> bool:
    """Whether the broker that keeps the group is known and connected."""
    return consumer._coordinator.coordinator_id is not None


def refresh_metadata(consumer: KafkaConsumer, topic: str, timeout_s: float) -> None:
    """Have the consumer know the partitions of `topic`; KafkaTimeoutError after `timeout_s`.

    A leader of a group that has not heard of them yet hands out nothing, and may never hand out anything after that.
    """
    consumer._cluster.set_topics([topic])
    consumer._net.run(consumer._manager.wait_for, consumer._cluster.request_update(), timeout_s * 1000)


def is_joining(consumer: KafkaConsumer) -> bool:
    """Whether the member is on its way into the group, or must be.

    A join that is answered while no `poll` waits for it is never finished (`coordinator/base.py`, `join_group_async`):
    the answer has cleared `rejoin_needed`, so nobody looks at it, and the member stays half in, without heartbeats,
    until the group puts it out. Here it is made to join once more; with short polls it might never get in.
    """
    coordinator = consumer._coordinator
    with coordinator._lock:
        answered = coordinator._join_task is None or coordinator._join_task.is_done
        if coordinator.state is MemberState.REBALANCING and not coordinator.rejoin_needed and answered:
            coordinator.rejoin_needed = True
    return bool(coordinator.state is not MemberState.STABLE or coordinator.need_rejoin())


def release_paused_records(consumer: KafkaConsumer) -> None:
    """Let records of partitions that were paused and resumed be returned; to be called before each `poll`.

    `Fetcher.fetched_records` puts what it has of a paused partition aside, and takes it back once the slot in use is
    None. An exhausted slot is empty but not None: where nothing else arrives, such records are never returned.
    """
    fetcher = consumer._fetcher
    if fetcher._next_partition_records is not None and not fetcher._next_partition_records:
        fetcher._next_partition_records = None


def is_dead(consumer: KafkaConsumer) -> bool:
    """Whether the consumer's network thread has ended, after which every call raises."""
    return consumer._net._exception is not None or consumer._closed


def topic_id(consumer: KafkaConsumer, topic: str) -> Any:
    """Return the identity of the topic as last heard, None where nothing was; one made anew has another."""
    return consumer._cluster.topic_id(topic)


def close_consumer(consumer: KafkaConsumer, timeout_s: float) -> None:
    """Close, also where the coordinator is away: `close` would raise then and leave its network thread running."""
    try:
        consumer.close(autocommit=False, timeout_ms=timeout_s * 1000)
    except (errors.KafkaError, OSError, RuntimeError):
        consumer._client.close()


def has_failed(producer: KafkaProducer) -> bool:
    """Whether nothing more can be sent by it."""
    manager = producer._transaction_manager
    return bool(producer._closed or not producer._sender.is_alive() or (manager is not None and manager.has_error()))


def was_refused(future: Any) -> bool:
    """Whether a message that failed was refused itself, and did not merely go down with one that was.

    A batch that the brokers refuse ends with no offset (`ProducerBatch.complete_exceptionally`), one that is aborted
    for it ends with the same error and offset -1 (`ProducerBatch.abort`).
    """
    batch = future._produce_future
    return bool(batch.value is not None and batch.value[0] is None)


def write_marker(
    client: KafkaAdminClient,
    place: TopicPartition,
    producer: tuple[int, int],
    coordinator_epoch: int,
    *,
    committed: bool,
) -> None:
    """End the transaction of `producer` (number, epoch) on one partition; raises what its leader answers."""
    topic = WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic(
        name=place.topic, partition_indexes=[place.partition]
    )
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=committed,
        topics=[topic],
        coordinator_epoch=coordinator_epoch,
    )

    async def ask() -> Any:
        (leader,) = await client._async_get_leader_for_partitions([place])
        return await client._manager.send(WriteTxnMarkersRequest(markers=[marker]), node_id=leader)

    answer = client._manager.run(ask)
    codes = [one.error_code for each in answer.markers for topic in each.topics for one in topic.partitions]
    for code in codes:
        if (kind := errors.for_code(code)) is not errors.NoError:
            raise kind(f"{place.topic}-{place.partition}: its leader does not end the transaction")
