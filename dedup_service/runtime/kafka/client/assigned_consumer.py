"""A consumer of assigned partitions that survives what may pass: the one adapter below all readers.

How: it makes the library's consumer on first use, seeks to its positions, and closes it. While brokers are
away it keeps trying and logs a throttled warning; a consumer whose network thread has ended is replaced; what
no second try changes is raised. `LogConsumer`, `PartitionReader` and `admin.committed_offsets` read through
it, so none of them can forget a cure or lose a thread.

Invariant: after each call there is at most one consumer of the library, and none after `close`.
Source: kafka-python 3.0.12, consumer/fetcher.py.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from kafka import KafkaConsumer, errors

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition, consumer
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.retry import TRANSIENT, ThrottledWarning, permanent_error

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

PAUSE_S = 0.1
"""Between two tries."""
_CLOSE_S = 5.0

POSITION_LOST = (errors.OffsetOutOfRangeError, errors.LogTruncationError)
"""What `AssignedConsumer.poll` raises for a position that the brokers do not have."""


class AssignedConsumer:
    """A consumer of assigned partitions that survives unavailable brokers and the end of its network thread.

    It connects on first use. name: what is read, for warnings. group: whose committed offsets it may ask for;
    it never joins the group. committed: False for one that is only asked for ends.
    """

    def __init__(
        self, connection: Connection, fetch_bytes: int, name: str, *, group: str | None = None, committed: bool = True
    ) -> None:
        self._connection = connection
        self._configs: dict[str, Any] = {"committed": committed} if group is None else {"group_id": group}
        self._fetch_bytes = fetch_bytes
        self._consumer: KafkaConsumer | None = None
        self._warning = ThrottledWarning(_LOG, f"{name}: cannot be read for now", after_s=2.0)
        self.positions: dict[TopicPartition, int] = {}

    def connected(self) -> KafkaConsumer:
        """Return the library's consumer; if there is none, create it and seek to the positions."""
        if self._consumer is None:
            self._consumer = self._connect()
        return self._consumer

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, each from its offset."""
        self.positions = dict(offsets)
        if self._consumer is None:
            self.connected()
        else:
            self._place(self._consumer)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read an assigned partition from `offset` on."""
        self.positions[partition] = offset
        self.connected().seek(partition, offset)

    def poll(
        self, timeout_s: float, max_records: int, paused: Collection[TopicPartition] = ()
    ) -> list[ConsumerRecord] | None:
        """Return the next records, None if brokers are unavailable.

        Raises `POSITION_LOST`, and what is permanent.
        """
        reader = self.connected()
        self._pause(reader, frozenset(paused))
        internals.release_paused_records(reader)
        try:
            batches = reader.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        except POSITION_LOST:
            raise
        except Exception as error:
            topics = ", ".join(sorted({partition.topic for partition in self.positions}))
            self._survive(error, min(PAUSE_S, timeout_s), f"to read {topics}")
            return None
        for partition, before in self.positions.items():
            self.positions[partition] = internals.position(reader, partition, before)
        self._warning.over()
        return [record for batch in batches.values() for record in batch]

    def ask(self, request: Callable[[KafkaConsumer], T], what: str, timeout_s: float) -> T:
        """Return what `request` returns; what: what it asks for, after "no broker says".

        Tried again until `timeout_s` is over, and then UnreachableError. A single try must end by itself.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return request(self.connected())
            except TwinsieveError:
                raise
            except Exception as error:
                self._survive(error, PAUSE_S, f"to say {what}")
                if time.monotonic() > deadline:
                    raise UnreachableError(
                        f"no broker says {what} ({type(error).__name__}: {error}); check that the brokers run"
                    ) from error

    def known_end(self, partition: TopicPartition, otherwise: int) -> int:
        """Return the end of the partition as last heard, uncommitted records included; sends no request."""
        _, end = internals.positions_and_ends(self.connected()).get(partition, (0, otherwise))
        return end

    def topic_id(self, topic: str) -> object:
        """Return the identity of the topic as last heard, None if it is unknown."""
        return internals.topic_id(self.connected(), topic)

    def close(self) -> None:
        """Close the connection."""
        if self._consumer is not None:
            internals.close_consumer(self._consumer, _CLOSE_S)
            self._consumer = None

    def _connect(self) -> KafkaConsumer:
        reader = consumer(self._connection, self._fetch_bytes, **self._configs)
        try:
            self._place(reader)
        except BaseException:
            internals.close_consumer(reader, _CLOSE_S)
            raise
        return reader

    def _place(self, reader: KafkaConsumer) -> None:
        if self.positions:
            reader.assign(list(self.positions))
        for partition, offset in self.positions.items():
            reader.seek(partition, offset)

    def _pause(self, reader: KafkaConsumer, paused: frozenset[TopicPartition]) -> None:
        before: Any = reader.paused()
        if before == paused:
            return
        reader.resume(*(before - paused))
        reader.pause(*(paused - before))

    def _survive(self, error: Exception, pause_s: float, action: str) -> None:
        """Raise what is permanent, or no error of brokers.

        Else warn, pause, and replace a consumer whose network thread has ended, whatever has ended it.
        """
        dead = self._consumer is not None and internals.is_dead(self._consumer)
        if not dead and not isinstance(error, TRANSIENT):
            raise error
        if found := permanent_error(error, action, needs="Read"):
            raise found from error
        self._warning.about(f"{type(error).__name__}: {error}")
        time.sleep(pause_s)
        if self._consumer is not None and internals.is_dead(self._consumer):
            try:
                fresh = self._connect()
            except UnreachableError as unreachable:
                self._warning.about(unreachable)
                return
            internals.close_consumer(self._consumer, _CLOSE_S)
            self._consumer = fresh
