"""Static members leave a group only when somebody says so: the client library never does (KIP-345).

Where a group goes on, and what is left of a partition: questions with an end.

How far a group has come, asked without being a member of it.
"""

import logging
import time
from collections.abc import Iterable

from kafka import KafkaAdminClient, KafkaConsumer, errors
from kafka.admin import MemberToRemove
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import connect
from dedup_service.runtime.kafka.client.errors import BrokerError, LogChangedError
from dedup_service.runtime.kafka.client.retry import TRANSIENT, ThrottledWarning, permanent_error, transient_error

__all__ = ["committed", "committed_offsets", "leave_group", "moved"]

_LOG = logging.getLogger(__name__)


def leave_group(connection: Connection, group: str, instance: str) -> None:
    """Take the member out of the group, so that its partitions move at once; a session's end does the same later."""
    try:
        client = connect(KafkaAdminClient, connection)
        try:
            client.remove_group_members(group, [MemberToRemove(group_instance_id=instance)])
        finally:
            client.close()
    except (*TRANSIENT, TwinsieveError) as error:
        _LOG.warning("group %s: %s leaves when its session ends, as nobody could be told: %s", group, instance, error)


_ASK_S = 5.0


def committed(
    reader: KafkaConsumer, group: str, partitions: frozenset[TopicPartition], timeout_s: float
) -> dict[TopicPartition, int]:
    """Return the committed offset of each partition, the beginning where there is none.

    Offsets in open transactions are waited for. Raises BrokerError where no answer comes within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    try:
        found = internals.committed(reader, partitions, timeout_s) if partitions else {}
        missing = [at for at in partitions if at not in found]
        left_s = max(0.5, deadline - time.monotonic())
        return {**found, **(reader.beginning_offsets(missing, timeout_ms=left_s * 1000) if missing else {})}
    except TRANSIENT as error:
        doing = f"to read the offsets of group {group}"
        raise permanent_error(error, doing) or transient_error(error, doing) from error


def moved(
    reader: KafkaConsumer, error: errors.OffsetOutOfRangeError, complaint: ThrottledWarning
) -> dict[TopicPartition, tuple[int, int]]:
    """Return (position, beginning) of partitions whose next records were deleted.

    Raises LogChangedError where a partition ends before the position: it was made anew, or lost its end.
    """
    lost = internals.lost_positions(error)
    try:
        beginnings = reader.beginning_offsets(list(lost), timeout_ms=_ASK_S * 1000)
        ends = reader.end_offsets(list(lost), timeout_ms=_ASK_S * 1000)
    except TRANSIENT as second:
        complaint.about(second)
        return {}
    gone = {at: (position, beginnings[at]) for at, position in lost.items() if position < beginnings[at]}
    _refuse_shortened(lost, ends, gone)
    return gone


def _refuse_shortened(
    lost: dict[TopicPartition, int], ends: dict[TopicPartition, int], gone: Iterable[TopicPartition]
) -> None:
    for at, position in lost.items():
        if at not in gone and position > ends[at]:
            raise LogChangedError(
                f"{at.topic}-{at.partition} was read up to offset {position} and ends at {ends[at]}: the topic "
                "was made anew or lost its end; its offsets mean other records now: use a new group and a new log"
            )


_TIMEOUT_MS = 30_000  # above the longest transaction: an offset in an open one has to be waited for


def committed_offsets(connection: Connection, group: str, topic: str) -> dict[TopicPartition, int]:
    """Return the committed offset of each partition of `topic` that has one; BrokerError where nobody answers."""
    try:
        consumer = KafkaConsumer(
            **connection.configs(group_id=group, isolation_level="read_committed", enable_auto_commit=False)
        )
        try:
            partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
            offsets = {at: consumer.committed(at, timeout_ms=_TIMEOUT_MS) for at in partitions}
        finally:
            consumer.close(autocommit=False)
    except KafkaError as error:
        raise BrokerError(
            f"cannot read the offsets of group {group}: {error!r}; try again when the brokers answer"
        ) from error
    return {at: offset for at, offset in offsets.items() if offset is not None}
