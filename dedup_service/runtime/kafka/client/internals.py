"""Work inside the library that its public methods do not offer.

This is the module that may touch private attributes; each function says which, and why. Release 3.0.12;
another one has to pass `tests/integration/kafka` first. What is wrong with the public methods:
`commit_transaction` and `send_offsets_to_transaction` wait indefinitely for a result that could be awaited
with a limit; `flush` waits its timeout once per batch; `close` raises if it cannot flush and leaves its
thread running; a commit goes through although a batch of its transaction has expired, so results are awaited
before it. The order below: producers, consumers, admin client.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer.transaction import WriteTxnMarkersRequest
from kafka.structs import ConsumerGroupMetadata, MemberState, OffsetAndMetadata, TopicPartition

# ruff: noqa: SLF001 - this module is the one that may


def send_offsets(
    producer: KafkaProducer,
    offsets: Mapping[TopicPartition, int],
    group: ConsumerGroupMetadata | None,
    timeout_s: float,
) -> None:
    """Add offsets to the open transaction; KafkaTimeoutError after `timeout_s`.

    Touches `_transaction_manager` and `_sender`: `send_offsets_to_transaction` of the producer has no
    timeout.
    """
    values = {partition: OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()}
    result = producer._transaction_manager.send_offsets_to_transaction(values, group)
    producer._sender.wakeup()
    _wait(result, "the offsets", timeout_s)


def commit(producer: KafkaProducer, timeout_s: float) -> None:
    """Commit the open transaction; KafkaTimeoutError after `timeout_s`, and then the outcome is unknown.

    Touches `_transaction_manager` and `_sender`: `commit_transaction` of the producer has no timeout.
    """
    result = producer._transaction_manager.begin_commit()
    producer._sender.wakeup()
    _wait(result, "the commit", timeout_s)


def _wait(result: Any, what: str, timeout_s: float) -> None:
    if not result.wait(timeout_ms=max(0.0, timeout_s) * 1000):
        raise errors.KafkaTimeoutError(f"{what} got no answer in time")


def wait_for_all(producer: KafkaProducer, futures: Iterable[Any], timeout_s: float) -> None:
    """Send what lingers and wait for all of `futures`.

    Raise the first failure, KafkaTimeoutError after `timeout_s`. Touches `_accumulator` and `_sender`:
    `flush` waits its timeout once per batch, and does not raise failures.
    """
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
    """Return why the producer has failed, None if it has not.

    Touches `_transaction_manager`: the exceptions of a failed producer do not always give the reason.
    """
    manager = producer._transaction_manager
    return manager.last_error if manager is not None else None


def has_failed(producer: KafkaProducer) -> bool:
    """Whether the producer cannot send anything more.

    Touches `_closed`, `_sender` and `_transaction_manager`: the library says so only by raising from the
    next call.
    """
    manager = producer._transaction_manager
    return bool(producer._closed or not producer._sender.is_alive() or (manager is not None and manager.has_error()))


def was_refused(future: Any) -> bool:
    """Whether the brokers refused the batch of this failed message, rather than abort it for another one.

    Touches `_produce_future` of the future: both have the same error. A batch that is refused ends with no
    offset (`ProducerBatch.complete_exceptionally`), one that is aborted for it with offset -1
    (`ProducerBatch.abort`).
    """
    batch = future._produce_future
    return bool(batch.value is not None and batch.value[0] is None)


def discard(producer: KafkaProducer, join_s: float) -> Any:
    """Stop a producer without sending anything more.

    Return its thread, which may need a request's timeout to end. Touches `_sender`, `_unregister_cleanup`
    and `_closed`: `close` would flush first, raise if it cannot, and leave the thread running.
    """
    sender = producer._sender
    sender.force_close()
    sender.join(join_s)
    producer._unregister_cleanup()
    producer._closed = True
    return sender


def committed(
    consumer: KafkaConsumer, partitions: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, int]:
    """Return the committed offsets of those partitions that have one; waits for those in open transactions.

    Touches `_coordinator`: `KafkaConsumer.committed` asks for one partition at a time.
    """
    found = consumer._coordinator.fetch_committed_offsets(list(partitions), timeout_ms=timeout_s * 1000)
    return {partition: offset.offset for partition, offset in found.items()}


def commit_offsets(consumer: KafkaConsumer, offsets: Mapping[TopicPartition, int], timeout_s: float) -> None:
    """Commit offsets for the group; KafkaTimeoutError after `timeout_s`.

    Touches `_coordinator`: `commit` of the consumer asks for leader epochs, which nobody here has.
    """
    values = {partition: OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()}
    consumer._coordinator.commit_offsets_sync(values, timeout_ms=timeout_s * 1000)


def partitions_without_position(consumer: KafkaConsumer) -> frozenset[TopicPartition]:
    """Return the assigned partitions without a position to read from.

    Touches `_subscription`: the library says only by an exception that there are such partitions.
    """
    assignment = dict(consumer._subscription.assignment)
    return frozenset(partition for partition, state in assignment.items() if not state.has_valid_position)


def position(consumer: KafkaConsumer, partition: TopicPartition, default: int) -> int:
    """Return the next offset to be read, `default` if it is unknown.

    Touches `_subscription`: `KafkaConsumer.position` may send requests, without a time limit.
    """
    state = consumer._subscription.assignment.get(partition)
    return default if state is None or state.position is None else int(state.position.offset)


def positions(consumer: KafkaConsumer) -> dict[TopicPartition, int]:
    """Return the offset of the next record to be read of each assigned partition that has a position.

    Touches `_subscription`: `KafkaConsumer.position` may send requests, without a time limit.
    """
    assignment = dict(consumer._subscription.assignment)
    return {
        partition: int(state.position.offset) for partition, state in assignment.items() if state.has_valid_position
    }


def positions_and_ends(consumer: KafkaConsumer) -> dict[TopicPartition, tuple[int, int]]:
    """Return (next offset, end of the partition as last heard) of each partition where both are known.

    Touches `_subscription`: `KafkaConsumer.position` may send requests, without a time limit.
    """
    assignment = dict(consumer._subscription.assignment)
    return {
        partition: (state.position.offset, state.highwater)
        for partition, state in assignment.items()
        if state.position is not None and state.highwater is not None
    }


def lost_positions(error: errors.OffsetOutOfRangeError) -> dict[TopicPartition, int]:
    """Return the positions that the brokers do not have.

    They are an undocumented argument of the exception.
    """
    return dict(error.args[0]) if error.args and isinstance(error.args[0], dict) else {}


def release_paused_records(consumer: KafkaConsumer) -> None:
    """Let records of partitions that were paused and resumed be returned; to be called before each `poll`.

    Touches `_fetcher._next_partition_records`. `Fetcher.fetched_records` sets records of a paused partition
    aside, and takes them back once the slot in use is None. An exhausted slot is empty but not None: where
    nothing else arrives, such records are never returned.
    """
    fetcher = consumer._fetcher
    if fetcher._next_partition_records is not None and not fetcher._next_partition_records:
        fetcher._next_partition_records = None


def fetch_only_below(consumer: KafkaConsumer, ends: Callable[[], Mapping[TopicPartition, int]]) -> None:
    """Fetch from now on only partitions that are in `ends()` and whose position is below their offset there.

    Touches `_fetcher._fetchable_partitions`: a `poll` that returns records, or skips a marker, sends the next fetch
    before its caller could pause the partition.
    """
    fetchable = consumer._fetcher._fetchable_partitions

    def below() -> list[TopicPartition]:
        known = ends()
        return [partition for partition in fetchable() if position(consumer, partition, 0) < known.get(partition, 0)]

    consumer._fetcher._fetchable_partitions = below


def note_ends(consumer: KafkaConsumer) -> dict[TopicPartition, int]:
    """Return where committed records end, of each partition that a broker has told of; it is kept up to date.

    Touches `_fetcher._parse_fetched_data`: the library keeps the high watermark, which an open transaction is below.
    """
    ends: dict[TopicPartition, int] = {}
    parse = consumer._fetcher._parse_fetched_data

    def parsed(fetch: Any) -> Any:
        if not fetch.partition_data.error_code:
            ends[fetch.topic_partition] = fetch.partition_data.last_stable_offset
        return parse(fetch)

    consumer._fetcher._parse_fetched_data = parsed
    return ends


def refresh_metadata(consumer: KafkaConsumer, topic: str, timeout_s: float) -> None:
    """Fetch the partitions of `topic` before the group is joined; KafkaTimeoutError after `timeout_s`.

    Touches `_cluster`, `_net` and `_manager`: a leader of a group that does not know the partitions yet
    assigns none, and may never assign any after that. The consumer must have subscribed: a leader that learns of
    partitions after it has joined joins once more, which ends every transaction of the moment.
    """
    consumer._cluster.set_topics([topic])
    consumer._net.run(consumer._manager.wait_for, consumer._cluster.request_update(), timeout_s * 1000)


def partitions_of(consumer: KafkaConsumer, topic: str, timeout_s: float) -> list[TopicPartition]:
    """Return the partitions of `topic` in their order, [] if it does not exist; KafkaTimeoutError after `timeout_s`.

    TopicAuthorizationFailedError if the user may not see it. Touches `_cluster`, `_net` and `_manager`:
    `KafkaConsumer.partitions_for_topic` waits for its answer indefinitely, and returns nothing for a topic
    that is refused.
    """
    cluster = consumer._cluster
    try:
        asked = cluster.request_update() if topic in cluster._topics else cluster.add_topic(topic)
        consumer._net.run(consumer._manager.wait_for, asked, timeout_s * 1000)
    except errors.UnknownTopicOrPartitionError:
        return []
    if topic in cluster.unauthorized_topics:
        raise errors.TopicAuthorizationFailedError(topic)
    return [TopicPartition(topic, number) for number in sorted(cluster.partitions_for_topic(topic) or ())]


def has_coordinator(consumer: KafkaConsumer) -> bool:
    """Whether the group's coordinator is known and connected.

    Touches `_coordinator`: the library does not tell a missing coordinator from a quiet topic.
    """
    return consumer._coordinator.coordinator_id is not None


def is_joining(consumer: KafkaConsumer) -> bool:
    """Whether the member is joining the group, or has to; repeats a join whose answer was missed.

    Touches `_coordinator`, its `_lock` and `_join_task`, and sets `rejoin_needed`. A join that is answered
    while no `poll` waits for it is never finished (`coordinator/base.py`, `join_group_async`): the answer
    has cleared `rejoin_needed`, so it is never processed, and the member stays half in, without heartbeats,
    until the group removes it. With short polls it might never get in.
    """
    coordinator = consumer._coordinator
    with coordinator._lock:
        answered = coordinator._join_task is None or coordinator._join_task.is_done
        if coordinator.state is MemberState.REBALANCING and not coordinator.rejoin_needed and answered:
            coordinator.rejoin_needed = True
    return bool(coordinator.state is not MemberState.STABLE or coordinator.need_rejoin())


def join_again_as_leader(consumer: KafkaConsumer) -> None:
    """Let a member join once more where the leader that the brokers name is who it was before.

    Touches `_coordinator`, its `_generation` and `_process_join_group_response`. A leader that comes back under its
    name gets its partitions without a rebalance, and its former id as that of the leader: it takes itself for a
    follower, so nobody assigns partitions that were added since the last rebalance, or will be (KIP-814; the library
    speaks version 7 of the request, which cannot say it). The second join of a leader makes a rebalance. Brokers make
    a member's id of its name, a hyphen, and 36 characters.
    """
    coordinator = consumer._coordinator
    process = coordinator._process_join_group_response

    def processed(response: Any, send_time: float) -> Any:
        known = coordinator._generation.member_id
        answer = process(response, send_time)
        leader, member = response.leader, response.member_id
        former = leader.startswith(f"{coordinator.group_instance_id}-") and len(leader) == len(member)
        if former and member not in (leader, known):
            raise errors.RebalanceInProgressError  # the library joins again at once, with its new id
        return answer

    coordinator._process_join_group_response = processed


def is_fenced_member(consumer: KafkaConsumer) -> bool:
    """Whether another process is in the group under our instance name.

    Touches `_coordinator` and its `_heartbeat_enabled`: the heartbeat learns of the fence and stops, but
    nothing is raised, and `poll()` still returns records.
    """
    coordinator = consumer._coordinator
    return bool(
        coordinator.state is MemberState.STABLE
        and not coordinator.rejoining
        and not coordinator.need_rejoin()
        and not coordinator._heartbeat_enabled
    )


def topic_id(consumer: KafkaConsumer, topic: str) -> Any:
    """Return the identity of the topic as last heard, None if it is unknown.

    A topic created again has another. Touches `_cluster`: identities are not part of the library's public
    metadata.
    """
    return consumer._cluster.topic_id(topic)


def is_dead(consumer: KafkaConsumer) -> bool:
    """Whether the consumer was closed or its network thread has ended, after which every call raises.

    Touches `_net._exception` and `_closed`: the library has no question for it.
    """
    return consumer._net._exception is not None or consumer._closed


def close_consumer(consumer: KafkaConsumer, timeout_s: float) -> None:
    """Close the consumer, also if its coordinator is unavailable or its network thread has ended.

    Touches `_client`, `_net` and its wakeup sockets: `close` would raise then and leave the network thread
    running. A thread that has ended leaves its selector and two sockets, since closing it runs the very task
    that ended it once more.
    """
    try:
        consumer.close(autocommit=False, timeout_ms=timeout_s * 1000)
    except Exception:  # the exception that ended a network thread may be any, and every call raises it again
        close_network(consumer._client)


def close_network(client: Any) -> None:
    """Close the network side of a client: thread, connections, sockets. Never raises.

    Touches `_manager` and its connections, `_net`, its tasks, `_selector` and wakeup sockets; see
    `close_consumer`.
    """
    net = client._net
    transports = [connection.transport for connection in list(client._manager._conns.values())]
    sockets = [transport._sock for transport in transports if transport is not None]
    with suppress(Exception):
        client.close()
    for task in list(net._pending_tasks):  # each lets go of its socket
        with suppress(Exception):
            net.cancel(task)
    for left in (*sockets, net._wakeup_r, net._wakeup_w, net._selector):
        with suppress(Exception):
            left.close()


def refused_settings(client: KafkaAdminClient, topics: Iterable[str]) -> dict[str, type[errors.KafkaError]]:
    """Return why the brokers do not say the settings of a topic, for each that they refuse.

    Touches `_describe_configs_request` and `_manager`: `describe_configs` drops the errors of single topics.
    """
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, []) for topic in topics]
    request = client._describe_configs_request(resources)
    results = client._manager.run(client._manager.send, request).results
    return {result.resource_name: errors.for_code(result.error_code) for result in results if result.error_code}


def knows_topics(client: KafkaAdminClient, broker: int, topics: Iterable[str], timeout_s: float) -> bool:
    """Return whether this broker lists all topics, with a leader of each partition; True if it does not answer.

    Touches `_manager`: `wait_for_topics` asks one broker, and another may learn of the topics later.
    """
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(topics=[topic(name=name) for name in topics], allow_auto_topic_creation=False)

    async def ask() -> Any:
        return await client._manager.send(request, node_id=broker, request_timeout_ms=timeout_s * 1000)

    try:
        answer = client._manager.run(ask)
    except (errors.KafkaError, OSError):
        return True  # it is down: it learns of them when it starts
    return all(
        not topic.error_code and topic.partitions and all(part.leader_id >= 0 for part in topic.partitions)
        for topic in answer.topics
    )


def write_marker(
    client: KafkaAdminClient,
    partition: TopicPartition,
    producer: tuple[int, int],
    coordinator_epoch: int,
    *,
    committed: bool,
) -> None:
    """End the transaction of `producer` (id, epoch) on one partition; raise what its leader answers.

    Touches `_async_get_leader_for_partitions` and `_manager`: the admin client can abort a hanging
    transaction, but not commit it.
    """
    topic = WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic(
        name=partition.topic, partition_indexes=[partition.partition]
    )
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=committed,
        topics=[topic],
        coordinator_epoch=coordinator_epoch,
    )

    async def ask() -> Any:
        (leader,) = await client._async_get_leader_for_partitions([partition])
        return await client._manager.send(WriteTxnMarkersRequest(markers=[marker]), node_id=leader)

    answer = client._manager.run(ask)
    codes = [one.error_code for marker in answer.markers for topic in marker.topics for one in topic.partitions]
    for code in codes:
        if (kind := errors.for_code(code)) is not errors.NoError:
            raise kind(f"{partition.topic}-{partition.partition}: its leader does not end the transaction")
