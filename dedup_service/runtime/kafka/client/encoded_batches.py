"""Many messages handed to a producer of the library as whole batches of encoded records.

    batches = hand_over(producer, messages)       # then internals.wait_for_all(producer, batches, …)
    offsets = places(batches, len(messages))

For each message `KafkaProducer.send` checks types, estimates a size, takes locks, wakes a thread and makes two futures:
35 µs, several times what its bytes take. Here the records of a partition are encoded one after the other and become a
batch, as the library's own accumulator would have made it; compression, sequences, acknowledgement and repetition stay
the library's.

A batch that a topic refuses by its size is cut in two by the library, and so on, until it is clear which record is too
large. That needs a future for each record, so such a batch fails here as a whole (`is_done` with an error): write its
messages one by one then, with a new producer.

Invariant: records of a partition keep the order of their messages.
Source: Kafka protocol, "Record" and "Record Batch"; kafka-python 3.0.12, producer/record_accumulator.py and
record/default_records.py. This module may touch private attributes, as `internals` may: it says which.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from kafka import KafkaProducer, errors
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.memory_records import MemoryRecordsBuilder

from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.producers import Message, partition_for

# ruff: noqa: SLF001 - see above

_NO_BYTES = b"\x01"  # the length -1


class EncodedBatch(ProducerBatch):  # type: ignore[misc]
    """A batch of the library, and the future of all its records. positions: of their messages in what was handed over.

    As a future of the library it has `is_done`, `exception` and `get`.
    """

    def __init__(self, partition: TopicPartition, records: MemoryRecordsBuilder, positions: Sequence[int]) -> None:
        self.positions = positions
        self._cut: Exception | None = None
        super().__init__(partition, records)

    @property
    def _record_futures(self) -> list[Any]:
        """The futures of single records, which the library asks for to cut the batch in two."""
        self._cut = errors.MessageSizeTooLargeError("one of these messages is too large for its topic")
        self.produce_future._latch.set()
        return []

    @_record_futures.setter
    def _record_futures(self, _none: list[Any]) -> None:
        """Nothing to keep: the library's constructor sets an empty list."""

    @property
    def is_done(self) -> bool:
        """Whether all records are acknowledged, or the batch has failed."""
        return self._cut is not None or bool(self.produce_future.is_done)

    @property
    def exception(self) -> BaseException | None:
        """Why the batch failed; None if it has not."""
        if self._cut is not None or not self.produce_future.is_done:
            return self._cut
        if self.produce_future.exception is not None:
            return self.produce_future.exception  # type: ignore[no-any-return]
        _, _, exception_of = self.produce_future.value
        return None if exception_of is None else exception_of(0)

    def get(self, timeout: float) -> None:
        """Wait until it is done; raise its error, KafkaTimeoutError after `timeout` seconds."""
        if not self.is_done and not self.produce_future.wait(timeout):
            raise errors.KafkaTimeoutError(f"Timeout after waiting for {timeout} secs.")
        if self.exception is not None:
            raise self.exception

    @property
    def first_offset(self) -> int:
        """Offset of the first record, once the batch is acknowledged."""
        return int(self.produce_future.value[0])


def hand_over(producer: KafkaProducer, messages: Sequence[Message]) -> list[EncodedBatch]:
    """Hand messages to the producer; return their batches, as futures.

    Raises KafkaError if a topic is not known. Touches `_accumulator`, `_metadata`, `_wait_on_metadata` and
    `_transaction_manager`.
    """
    groups: dict[TopicPartition, list[int]] = {}
    partitions: dict[str, int] = {}
    for position, message in enumerate(messages):
        if message.topic not in partitions:
            partitions[message.topic] = _partitions_of(producer, message.topic)
        number = message.partition
        if number is None:
            count = partitions[message.topic]
            number = position % count if message.key is None else partition_for(message.key, count)
        groups.setdefault(TopicPartition(message.topic, number), []).append(position)
    batches: list[EncodedBatch] = []
    for partition, positions in groups.items():
        if producer._transaction_manager.is_transactional():
            producer._transaction_manager.maybe_add_partition_to_transaction(partition)
        batches += _add(producer._accumulator, partition, messages, positions)
    return batches


def places(batches: Iterable[EncodedBatch], count: int) -> list[tuple[int, int]]:
    """Return (partition, offset) of each message, in their order. count: of all messages."""
    found = [(-1, -1)] * count
    for batch in batches:
        partition, first = batch.topic_partition.partition, batch.first_offset
        for offset, position in enumerate(batch.positions, first):
            found[position] = partition, offset
    return found


def _partitions_of(producer: KafkaProducer, topic: str) -> int:
    """Return how many partitions a topic has; it is one whose leaders the producer asks for from now on."""
    numbers = producer._metadata.partitions_for_topic(topic)
    if not numbers:
        producer._wait_on_metadata(topic, producer.config["max_block_ms"])
        numbers = producer._metadata.partitions_for_topic(topic)
    return len(numbers)


def _add(
    accumulator: Any, partition: TopicPartition, messages: Sequence[Message], positions: Sequence[int]
) -> list[EncodedBatch]:
    """Encode the messages at these positions into batches of the accumulator's size, and add them to it.

    Touches `_batches`, `_incomplete`, `_tp_lock` and `_appends_in_progress`.
    """
    batches: list[EncodedBatch] = []
    records: list[bytes] = []
    size, first = 0, 0
    limit = accumulator.config["batch_size"]
    for at, position in enumerate(positions):
        message = messages[position]
        may_fit = not records or size + len(message.value or b"") <= limit  # else a large page would be encoded twice
        record = encode_record(len(records), message) if may_fit else b""
        if records and (not may_fit or size + len(record) > limit):
            batches.append(_batch(accumulator.config, partition, records, positions[first:at]))
            record = encode_record(0, message)
            records, size, first = [], 0, at
        records.append(record)
        size += len(record)
    batches.append(_batch(accumulator.config, partition, records, positions[first:]))
    accumulator._appends_in_progress.increment()
    try:
        with accumulator._tp_lock(partition):
            for batch in batches:
                accumulator._batches[partition].append(batch)
                accumulator._incomplete.add(batch)
    finally:
        accumulator._appends_in_progress.decrement()
    return batches


def _batch(
    config: dict[str, Any], partition: TopicPartition, records: Sequence[bytes], positions: Sequence[int]
) -> EncodedBatch:
    """Return a batch of encoded records.

    Touches `_builder` and `_next_offset` of the library's builder, and there the fields that `append` sets.
    """
    made = MemoryRecordsBuilder(config["message_version"], config["compression_attrs"], config["batch_size"])
    builder = made._builder
    builder._first_timestamp = builder._max_timestamp = int(time.time() * 1000)
    builder._buffer = bytearray().join((builder._buffer, *records))
    builder._num_records, builder._last_offset = len(records), len(records) - 1
    made._next_offset = len(records)
    batch = EncodedBatch(partition, made, positions)
    batch.max_record_size = max(map(len, records))
    return batch


def _varint(number: int) -> bytes:
    """Return a number of at least 0 in zigzag base 128."""
    number <<= 1
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    digits.append(number)
    return bytes(digits)


_VARINTS = [_varint(number) for number in range(1 << 13)]
_NAMES: dict[str, bytes] = {}  # of headers, encoded; ours are a dozen
_MAX_NAMES = 1 << 10
_COPIED_BYTES = 8 << 10
"""A shorter value is copied once more: that takes less time than to add up the lengths of all parts."""


def encode_record(offset: int, message: Message) -> bytes:
    """Return a record of a batch. offset: within the batch; its timestamp is that of the batch."""
    short, known = _VARINTS, len(_VARINTS)
    parts = [b"\0\0", short[offset] if offset < known else _varint(offset)]
    value = b"" if message.key is None and message.value is None else message.value  # as `producers.send`
    for content in (message.key, value):
        if content is None:
            parts.append(_NO_BYTES)
            continue
        length = len(content)
        parts += (short[length] if length < known else _varint(length), content)
    parts.append(_varint(len(message.headers)))
    for name, content in message.headers:
        length = len(content)
        parts += (_NAMES.get(name) or _name(name), short[length] if length < known else _varint(length), content)
    if value is None or len(value) < _COPIED_BYTES:
        body = b"".join(parts)
        return _varint(len(body)) + body
    return b"".join((_varint(sum(map(len, parts))), *parts))


def _name(name: str) -> bytes:
    encoded = name.encode("utf-8")
    encoded = _varint(len(encoded)) + encoded
    if len(_NAMES) < _MAX_NAMES:  # producers of pages choose names
        _NAMES[name] = encoded
    return encoded
