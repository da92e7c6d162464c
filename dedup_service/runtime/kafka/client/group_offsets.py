"""Where a group goes on, and what is left of a partition: questions with an end."""

import time
from collections.abc import Iterable

from kafka import KafkaConsumer, errors
from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.client import inside
from dedup_service.runtime.kafka.client.errors import LogChangedError
from dedup_service.runtime.kafka.client.retrying import Complaint
from dedup_service.runtime.kafka.client.translated import PASSING, for_good, passing

__all__ = ["committed", "moved"]

_ASK_S = 5.0


def committed(
    reader: KafkaConsumer, group: str, partitions: frozenset[TopicPartition], timeout_s: float
) -> dict[TopicPartition, int]:
    """Return the committed offset of each partition, the beginning where there is none.

    Offsets in open transactions are waited for. Raises BrokerError where no answer comes within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    try:
        found = inside.committed(reader, partitions, timeout_s) if partitions else {}
        missing = [at for at in partitions if at not in found]
        left_s = max(0.5, deadline - time.monotonic())
        return {**found, **(reader.beginning_offsets(missing, timeout_ms=left_s * 1000) if missing else {})}
    except PASSING as error:
        doing = f"to read the offsets of group {group}"
        raise for_good(error, doing) or passing(error, doing) from error


def moved(
    reader: KafkaConsumer, error: errors.OffsetOutOfRangeError, complaint: Complaint
) -> dict[TopicPartition, tuple[int, int]]:
    """Return (position, beginning) of partitions whose next records were deleted.

    Raises LogChangedError where a partition ends before the position: it was made anew, or lost its end.
    """
    lost = inside.lost_positions(error)
    try:
        beginnings = reader.beginning_offsets(list(lost), timeout_ms=_ASK_S * 1000)
        ends = reader.end_offsets(list(lost), timeout_ms=_ASK_S * 1000)
    except PASSING as second:
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
