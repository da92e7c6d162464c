"""The log, read in order and without a group.

How: one partition, assigned and sought by us; committed records only. A position that the log does not have is never
moved: where the log begins later, ends earlier or is another topic under the same name, LogChangedError.
Source: kafka-python 3.0.12, consumer/fetcher.py.
"""

import logging
import time

from kafka import KafkaConsumer, errors
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import consumer
from dedup_service.runtime.kafka.client.errors import LogChangedError, UnreachableError
from dedup_service.runtime.kafka.client.retry import TRANSIENT, ThrottledWarning, permanent_error

__all__ = ["LogConsumer"]

_LOG = logging.getLogger(__name__)

_ANSWER_S = 30.0
_ASK_S = 5.0
_CLOSE_S = 5.0
_PAUSE_S = 0.1
_STANDING_S = 60.0
"""Transactions of services end within seconds, those of frozen ones after `transaction_timeout_s` (10 s)."""


class LogConsumer:
    """Committed records of partition 0 of `topic`, from offset 0 or where it is sought to; errors as `connect`'s."""

    def __init__(self, connection: Connection, topic: str, *, fetch_bytes: int = 8 << 20) -> None:
        self._connection = connection
        self._fetch_bytes = fetch_bytes
        self._partition = TopicPartition(topic, 0)
        self._identity: object = None
        self._position = 0
        self._complaint = ThrottledWarning(_LOG, f"{topic}: cannot be read for now", after_s=2.0)
        self._standing = ThrottledWarning(_LOG, f"{topic}: stands still", after_s=_STANDING_S, every_s=10 * _STANDING_S)
        self._consumer = self._connected()

    @property
    def position(self) -> int:
        """Offset of the next record to be read; past the markers of transactions, so it reaches `end()`."""
        return self._position

    def seek(self, offset: int) -> None:
        """Go on from `offset`."""
        self._consumer.seek(self._partition, offset)
        self._position = offset

    def poll(self, timeout_s: float, max_records: int) -> list[ConsumerRecord]:
        """Return the next records in order; [] where there are none, or no broker answers.

        Raises LogChangedError, NotAuthorisedError, ConfigurationError.
        """
        try:
            batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        except (errors.OffsetOutOfRangeError, errors.LogTruncationError) as error:
            raise self._changed(f"offset {self._position} is not in it ({type(error).__name__})") from error
        except TRANSIENT as error:
            self._bear(error, timeout_s)
            return []
        self._check_identity()
        self._position = internals.position(self._consumer, self._partition, self._position)
        self._complaint.over()
        found = [record for batch in batches.values() for record in batch]
        self._watch(moves=bool(found))
        return found

    def end(self) -> int:
        """Return the last stable offset: what is below it is decided.

        Raises UnreachableError where no broker says so within 30 s, LogChangedError where it is below the position.
        """
        deadline = time.monotonic() + _ANSWER_S
        while True:
            try:
                end = self._consumer.end_offsets([self._partition], timeout_ms=_ASK_S * 1000)[self._partition]
                break
            except TRANSIENT as error:
                self._bear(error, _PAUSE_S)
                if time.monotonic() > deadline:
                    raise UnreachableError(
                        f"nobody says where {self._partition.topic} ends ({type(error).__name__}: {error}); are its "
                        "brokers up?"
                    ) from error
        if end < self._position:
            raise self._changed(f"it was read up to offset {self._position} and ends at {end}")
        return int(end)

    def read_one(self, offset: int) -> ConsumerRecord | None:
        """Return the first committed record at or after `offset`, None where there is none; the position stays.

        Raises as `end`, and UnreachableError where it does not come within 30 s.
        """
        before, self._position = self._position, 0
        try:
            end = self.end()
            self.seek(offset)
            deadline = time.monotonic() + _ANSWER_S
            while self._position < end:
                if records := self.poll(_PAUSE_S, 1):
                    found: ConsumerRecord = records[0]
                    return found
                if time.monotonic() > deadline:
                    raise UnreachableError(f"{self._partition.topic} gives no record at offset {offset}; try again")
            return None
        finally:
            self.seek(before)

    def close(self) -> None:
        """Let go of the connection."""
        internals.close_consumer(self._consumer, _CLOSE_S)

    def _connected(self) -> KafkaConsumer:
        made = consumer(self._connection, self._fetch_bytes)
        made.assign([self._partition])
        made.seek(self._partition, self._position)
        return made

    def _watch(self, *, moves: bool) -> None:
        """Say so where records lie behind an open transaction for longer than any may last."""
        at = self._position
        _, end = (at, at) if moves else internals.positions_and_ends(self._consumer).get(self._partition, (at, at))
        if at >= end:
            self._standing.over()
            return
        self._standing.about(
            f"a transaction is open at offset {at}, and {end - at} records lie behind it; "
            "`twinsieve topics repair-transactions --dry-run` tells whether anybody will end it"
        )

    def _bear(self, error: BaseException, timeout_s: float) -> None:
        """Raise what is for good; for the rest complain and go on, with a new consumer where this one is dead."""
        if found := permanent_error(error, f"to read {self._partition.topic}"):
            raise found from error
        self._complaint.about(f"{type(error).__name__}: {error}")
        time.sleep(min(_PAUSE_S, timeout_s))
        if internals.is_dead(self._consumer):
            try:
                fresh = self._connected()
            except UnreachableError as still:
                self._complaint.about(still)
                return
            self.close()
            self._consumer = fresh

    def _check_identity(self) -> None:
        now = internals.topic_id(self._consumer, self._partition.topic)
        if now is None or now == self._identity:
            return
        if self._identity is not None:
            raise self._changed("it is another topic under the same name")
        self._identity = now

    def _changed(self, how: str) -> LogChangedError:
        return LogChangedError(
            f"the log {self._partition.topic} has changed under us: {how}; was it deleted, truncated or made anew? "
            "Bring the topic back, or start with a new one and an empty state folder"
        )
