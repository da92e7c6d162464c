"""Readers without a consumer group: the log in its order, and any partitions once.

How: partitions are assigned and positions sought by us; only committed records are seen. `AssignedConsumer`
survives what may pass and raises what no second try changes.

- `LogConsumer` follows the log. A position that the log does not have is never moved: where the log begins
  later, ends earlier or is another topic under the same name, it raises LogChangedError.
- `PartitionReader` reads what some partitions have: one record, a range, or everything. Retention may delete
  records while it reads; such a position moves to the nearest one that exists.

Invariant: `position` is past the markers of transactions, so it reaches the end. One thread uses an
instance.
Source: kafka-python 3.0.12, consumer/fetcher.py.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from kafka import KafkaConsumer

from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.assigned_consumer import PAUSE_S, POSITION_LOST, AssignedConsumer
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.client.errors import LogChangedError, UnreachableError
from dedup_service.runtime.kafka.client.retry import ThrottledWarning

Progress = Callable[[int, int], None]
"""Progress callback: (done, total), in offsets of the log."""

_LOG = logging.getLogger(__name__)

_ANSWER_S = 30.0
_ASK_S = 5.0
_POLL_S = 0.5
_STALL_S = 60.0
"""Transactions of services end within seconds, those of frozen ones after `transaction_timeout_s` (10 s)."""


class LogConsumer:
    """Committed records of partition 0 of `topic`, from offset 0 or where it is sought to.

    All offsets, also those of records, are numbered from `first`, which is 0 until `number_from` says otherwise. Raises
    as `connect`.
    """

    def __init__(self, connection: Connection, topic: str, *, fetch_bytes: int = 8 << 20) -> None:
        self._partition = TopicPartition(topic, 0)
        self.first = 0
        self._identity: object = None
        self._stall = ThrottledWarning(_LOG, f"{topic}: reading is blocked", after_s=_STALL_S, every_s=10 * _STALL_S)
        self._reader = AssignedConsumer(connection, fetch_bytes, topic)
        self._reader.assign({self._partition: 0})

    @property
    def position(self) -> int:
        """Offset of the next record to be read; past the markers of transactions, so it reaches `end()`."""
        return self._reader.positions[self._partition] + self.first

    def number_from(self, first: int) -> None:
        """Number the records from `first` on; the reader stays where it is in the topic."""
        self.first = first

    def seek(self, offset: int) -> None:
        """Continue from `offset`; from the first record if that is before it."""
        self._reader.seek(self._partition, max(0, offset - self.first))

    def poll(self, timeout_s: float, max_records: int) -> list[ConsumerRecord]:
        """Return the next records in order; [] if there are none, or no broker answers.

        Raises LogChangedError, NotAuthorisedError, ConfigurationError.
        """
        try:
            records = self._reader.poll(timeout_s, max_records)
        except POSITION_LOST as error:
            raise self._changed(f"offset {self.position - self.first} is not in it ({type(error).__name__})") from error
        if records is None:
            return []
        self._check_identity()
        self._warn_of_stall(moves=bool(records))
        return [record._replace(offset=record.offset + self.first) for record in records] if self.first else records

    def end(self, timeout_s: float = _ANSWER_S) -> int:
        """Return the last stable offset: what is below it is decided.

        Raises UnreachableError if no broker answers within `timeout_s`, and one try, up to 5 s; LogChangedError if it
        is below the position.
        """
        end = self._end(timeout_s)
        if end < self.position:
            raise self._changed(f"it was read up to offset {self.position - self.first} and ends at {end - self.first}")
        return end

    def read_to_end(
        self,
        progress: Progress = lambda _done, _total: None,
        *,
        max_records: int = 2000,
        end: int | None = None,
    ) -> Iterator[list[ConsumerRecord]]:
        """Yield the records from the position to `end`, in batches.

        By default to the end that the log has now. A batch is empty if no record came within half a
        second, so that a caller can look whether it should stop. progress is called before each batch, and
        once at the end. Raises as `end` and `poll`; it has no time limit.
        """
        last = self.end() if end is None else end
        while (position := self.position) < last:
            progress(position - self.first, last - self.first)
            yield self.poll(_POLL_S, max_records)
        progress(last - self.first, last - self.first)

    def read_one(self, offset: int) -> ConsumerRecord | None:
        """Return the first committed record at or after `offset`, None if there is none.

        The position is kept. Raises UnreachableError if no broker gives it within 30 s, and as `poll`.
        """
        before, end = self.position, self._end()
        self.seek(offset)
        try:
            deadline = time.monotonic() + _ANSWER_S
            while self.position < end:
                if records := self.poll(PAUSE_S, 1):
                    return records[0]
                if time.monotonic() > deadline:
                    raise UnreachableError(
                        f"{self._partition.topic} gives no record at offset {offset - self.first}; try again"
                    )
            return None
        finally:
            self.seek(before)

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _end(self, timeout_s: float = _ANSWER_S) -> int:
        partition = self._partition
        end: int = self._reader.ask(
            lambda reader: int(reader.end_offsets([partition], timeout_ms=_ASK_S * 1000)[partition]),
            f"where {partition.topic} ends",
            timeout_s,
        )
        return end + self.first

    def _warn_of_stall(self, *, moves: bool) -> None:
        """Warn if records lie behind an open transaction for longer than any may last."""
        at = self._reader.positions[self._partition]
        end = at if moves else self._reader.known_end(self._partition, at)
        if at >= end:
            self._stall.over()
            return
        self._stall.about(
            f"a transaction is open at offset {at}, and {end - at} records lie behind it; run "
            "`twinsieve topics repair-transactions --dry-run` to see whether its producer can still end it"
        )

    def _check_identity(self) -> None:
        now = self._reader.topic_id(self._partition.topic)
        if now is None or now == self._identity:
            return
        if self._identity is not None:
            raise self._changed("it is another topic under the same name")
        self._identity = now

    def _changed(self, how: str) -> LogChangedError:
        return LogChangedError(
            f"the log {self._partition.topic} has changed: {how}; was it deleted, truncated or created again? "
            "Bring the topic back, or start with a new one and an empty state folder"
        )


class PartitionReader:
    """Committed records of any partitions, read once. It connects on first use and raises as `connect`.

    timeout_s: how long one answer, or the next record, may take before UnreachableError. Methods also raise
    NotAuthorisedError and ConfigurationError. committed: False for one that is only asked for `ends`, which then
    are those of all records, in open transactions, too.
    """

    def __init__(self, connection: Connection, *, fetch_bytes: int, timeout_s: float, committed: bool = True) -> None:
        self._timeout_s = timeout_s
        name = f"partitions at {connection.bootstrap}"
        self._reader = AssignedConsumer(connection, fetch_bytes, name, committed=committed)
        self.beginnings: dict[TopicPartition, int] = {}
        """The first offset of each partition, as last asked for."""

    def connect(self) -> None:
        """Connect now if not yet connected."""
        self._reader.connected()

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """Offset of the next record to be read, for each assigned partition."""
        return self._reader.positions

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of `topic` in their order, [] if it does not exist."""
        return self._reader.ask(
            lambda reader: internals.partitions_of(reader, topic, _ASK_S),
            f"which partitions {topic} has",
            self._timeout_s,
        )

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the last stable offset of each partition; updates `beginnings`, too."""
        asked = list(partitions)
        if not asked:
            return {}

        def bounds(reader: KafkaConsumer) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
            first = reader.beginning_offsets(asked, timeout_ms=_ASK_S * 1000)
            return first, reader.end_offsets(asked, timeout_ms=_ASK_S * 1000)

        topics = ", ".join(sorted({partition.topic for partition in asked}))
        beginnings, ends = self._reader.ask(bounds, f"where {topics} begins and ends", self._timeout_s)
        self.beginnings.update(beginnings)
        return dict(ends)

    def offset_at(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        """Return the offset of the first record not older than `timestamp_ms`, None if there is none."""
        found = self._reader.ask(
            lambda reader: reader.offsets_for_times({partition: timestamp_ms}, timeout_ms=_ASK_S * 1000).get(partition),
            f"which offset of {partition.topic} belongs to a time",
            self._timeout_s,
        )
        return None if found is None else int(found.offset)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from now on, each from its offset."""
        self._reader.assign(offsets)

    def poll(self, timeout_s: float, max_records: int, paused: Collection[TopicPartition] = ()) -> list[ConsumerRecord]:
        """Return the next records, in order within each partition and none of `paused`.

        [] if there are none. If records were deleted before they were read, `beginnings` and
        `positions` are moved.
        """
        try:
            return self._reader.poll(timeout_s, max_records, paused) or []
        except POSITION_LOST:
            self._move_positions()
            return []

    def read(self, ends: Mapping[TopicPartition, int], *, max_records: int = 2000) -> Iterator[list[ConsumerRecord]]:
        """Yield the records of the assigned partitions until each has reached its end.

        Raises UnreachableError if no record comes within `timeout_s`.
        """
        deadline = time.monotonic() + self._timeout_s
        while any(self.positions[partition] < end for partition, end in ends.items()):
            if records := self.poll(_POLL_S, max_records):
                yield records
                deadline = time.monotonic() + self._timeout_s
            elif time.monotonic() > deadline:
                topics = ", ".join(sorted({partition.topic for partition in ends}))
                raise UnreachableError(f"{topics} gave no record within {self._timeout_s:g} s; try again")

    def read_at(self, partition: TopicPartition, offset: int) -> ConsumerRecord | None:
        """Return the record at `offset`, None if it does not exist any more.

        Raises UnreachableError if no broker gives it within `timeout_s`.
        """
        self.assign({partition: offset})
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline:
            if records := self.poll(PAUSE_S, 1):
                return records[0] if records[0].offset == offset else None
            if self.positions[partition] != offset:
                return None
        raise UnreachableError(
            f"{partition.topic}, partition {partition.partition}, gives no record at offset {offset}; try again"
        )

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _move_positions(self) -> None:
        """Move each position that does not exist to the nearest one that does, and seek all again."""
        ends = self.ends(self.positions.keys())
        for partition, position in dict(self.positions).items():
            self._reader.seek(partition, min(max(position, self.beginnings[partition]), ends[partition]))
