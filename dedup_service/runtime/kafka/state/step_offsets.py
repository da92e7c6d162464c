"""How far each step is in each partition of `pages`: the topic `dedup.offsets`, written with what the step did.

A step commits its position once as the offset of its consumer group and once as a message here: the deciding step in
the transaction of its outputs, which the group's generation fences, the fingerprinting step after its records are in
the log. A group's offsets can expire, be moved by hand, or be those of another
group. These messages cannot, so a step begins a partition where they say, and an output is written once
whatever becomes of the group. A partition without a message begins where it began when the log did, which the
log's first record says: so records that were deleted before the step had read any are missed, too.

One message for each step and partition counts, the latest: the topic is compacted. Key: `decide/3`. Value:
JSON, `{"v": 1, "step": "decide", "topic": "pages", "partition": 3, "offset": 120}`; the records below `offset`
are done. A replay leaves one message more (`ReplayMark`).

Invariant: `position` is asked after the group's offsets are known to be stable. A transaction of an earlier
owner of a partition is decided by then, and its message is below the high watermark up to which `refresh`
reads.
"""

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated

import msgspec

from dedup_service.core.errors import StateError
from dedup_service.runtime.kafka.client.admin import administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.headers import offset_headers
from dedup_service.runtime.kafka.topics import Topics

_LOG = logging.getLogger(__name__)

FINGERPRINT, DECIDE = "fingerprint", "decide"
"""The names of the steps."""

BACKFILL_DECIDED = "backfilled"
"""The deciding step again: the sequence of the log below which all is written about pages of files."""

Begins = tuple[int, ...] | None
"""Where each partition of `pages` began when the log did; those after them begin at 0. None: unknown."""

_VERSION = 1
_REPLAY_KEY = b"replay"
_BATCH_RECORDS = 2000
_TIMEOUT_S = 15.0
"""Above the longest transaction (10 s by default)."""


class _OffsetLine(msgspec.Struct, frozen=True):
    step: str
    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    offset: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    v: int = _VERSION


class ReplayMark(msgspec.Struct, frozen=True):
    """Whether the replay that filled these topics has ended. log: identity of the log that it fills."""

    log: str
    finished: bool
    v: int = _VERSION


_encoder = msgspec.json.Encoder()
_offset_decoder = msgspec.json.Decoder(_OffsetLine)
_mark_decoder = msgspec.json.Decoder(ReplayMark)


def require_finished(topics: Topics, offsets: "StepOffsets") -> None:
    """Raise StateError if `topics` are what a replay that did not end left behind."""
    if offsets.replay is not None and not offsets.replay.finished:
        raise StateError(
            f"the replay into {topics.fingerprints} has not ended, so the log is incomplete: wait if it is still "
            f"running; otherwise remove the topics with the prefix {topics.prefix!r}, create them again with "
            "`twinsieve topics create`, and repeat the replay"
        )


def replay_message(topics: Topics, mark: ReplayMark) -> Message:
    """Return the message that says how far the replay into `topics` is."""
    headers = offset_headers("replay", topics.offsets)
    return Message(topics.offsets, _encoder.encode(mark), _REPLAY_KEY, headers, partition=0)


def step_messages(topics: Topics, step: str, offsets: Mapping[TopicPartition, int]) -> Iterator[Message]:
    """Yield the messages that say that `step` has done the records of each partition below its offset."""
    for (topic, partition), offset in offsets.items():
        value = _encoder.encode(_OffsetLine(step, topic, partition, offset))
        key = f"{step}/{partition}"
        headers = offset_headers(f"{key}/{offset}", topics.offsets)
        yield Message(topics.offsets, value, key.encode(), headers, partition=0)


class StepOffsets:
    """A reader of `dedup.offsets`, and the messages that a step adds. One thread uses an instance.

    begins: None if the topic is not the one of the log's first record. replay: the mark of the replay that filled
    the topics, None if none did.
    """

    def __init__(self, connection: Connection, topics: Topics, begins: Begins = None) -> None:
        self._connection = connection
        self._topics = topics
        self._begins = begins
        self._partition = TopicPartition(topics.offsets, 0)
        self._reader: LogConsumer | None = None
        self._offsets: dict[tuple[str, TopicPartition], int] = {}
        self.replay: ReplayMark | None = None

    def of(self, step: str) -> dict[TopicPartition, int]:
        """Return the offset of `step` in each partition that it has begun, as last read."""
        return {partition: offset for (name, partition), offset in self._offsets.items() if name == step}

    def refresh(self) -> None:
        """Read what has been committed since the last call, open transactions awaited.

        Raises as `LogConsumer`; UnreachableError if the brokers do not answer, or a transaction stays open.
        """
        with administration(self._connection) as admin:
            end = admin.high_watermarks([self._partition])[self._partition]
        deadline = time.monotonic() + _TIMEOUT_S
        for records in self._log().read_to_end(max_records=_BATCH_RECORDS, end=end):
            self._take(records)
            if not records and time.monotonic() > deadline:
                raise UnreachableError(
                    f"{self._topics.offsets} cannot be read to offset {end}; a transaction is open: if it stays so, "
                    "run `twinsieve topics repair-transactions --dry-run`"
                )

    def catch_up(self, timeout_s: float) -> None:
        """Read what is committed now; open transactions are not awaited.

        Raises as `LogConsumer`; UnreachableError also if a message does not come within `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        for records in self._log().read_to_end(max_records=_BATCH_RECORDS):
            self._take(records)
            if not records and time.monotonic() > deadline:
                raise UnreachableError(f"{self._topics.offsets} gives no message within {timeout_s:g} s; try again")

    def poll(self, timeout_s: float = 0.0) -> None:
        """Read what has arrived; wait for the first message until `timeout_s`."""
        self._take(self._log().poll(timeout_s, _BATCH_RECORDS))

    def positions(self, step: str, committed: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int | None]:
        """Return where `step` continues in each partition of `committed`, the offsets of its consumer group.

        That is the offset in the topic; where there is none, where the partition began, or if that is unknown the
        group's offset, which may be None. Raises as `refresh`.
        """
        self.refresh()
        known = self.of(step)
        for partition, offset in committed.items():
            if offset is not None and known.get(partition, offset) != offset:
                _LOG.warning(
                    "the group of step %s is at offset %d of %s-%d, the step has done what is below %d: it continues "
                    "there, whatever the group's offset is",
                    step, offset, partition.topic, partition.partition, known[partition],
                )  # fmt: skip
        return {
            partition: known.get(partition, self._start(partition, offset)) for partition, offset in committed.items()
        }

    def _start(self, partition: TopicPartition, committed: int | None) -> int | None:
        """Return where a step continues in a partition without a message."""
        if self._begins is None:
            return committed
        return self._begins[partition.partition] if partition.partition < len(self._begins) else 0

    def messages(self, step: str, offsets: Mapping[TopicPartition, int]) -> Iterator[Message]:
        """Yield the messages that say that `step` has done the records of each partition below its offset."""
        return step_messages(self._topics, step, offsets)

    def close(self) -> None:
        """Close the connection."""
        if self._reader is not None:
            self._reader.close()

    def _log(self) -> LogConsumer:
        if self._reader is None:
            self._reader = LogConsumer(self._connection, self._topics.offsets, fetch_bytes=1 << 20)
        return self._reader

    def _take(self, records: Collection[object]) -> None:
        for record in records:
            key, value = record.key, record.value or b""  # type: ignore[attr-defined] # the library has no types
            try:
                self._take_one(key, value)
            except (ValueError, RecursionError, msgspec.MsgspecError) as error:
                _LOG.warning("%s: a message is not an offset and is ignored: %s", self._topics.offsets, error)

    def _take_one(self, key: bytes | None, value: bytes) -> None:
        """Take a message; ValueError and its like if it is no offset."""
        if key == _REPLAY_KEY:
            self.replay = _mark_decoder.decode(value)
            return
        line = _offset_decoder.decode(value)
        partition = TopicPartition(line.topic, line.partition)
        before = self._offsets.get((line.step, partition), 0)
        self._offsets[line.step, partition] = max(before, line.offset)
