r"""Read records whose header names are not UTF-8.

The library decodes header names strictly: one byte that is not UTF-8 fails the whole batch with `CorruptRecordError`,
at every try, and the partition stands still for good. Brokers do not look at names, so anybody who may write to a
topic could stop it. Here such a name is read with its bytes escaped (`\xff`), and the record comes through.

How: the library's own parser is tried first; only where it fails on a name is the record read by ours.
Source: Kafka protocol, "Record"; kafka-python 3.0.12, record/default_records.py and consumer/fetcher.py.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.util import decode_varint

__all__ = ["read_any_header"]

# ruff: noqa: SLF001 - a parser inside the library's


def read_any_header(consumer: KafkaConsumer) -> KafkaConsumer:
    """Return the consumer, which from now on reads header names of any bytes."""
    consumer._fetcher.PartitionRecords = _PartitionRecords
    return consumer


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Iterator[Any]:
        return super()._unpack_records(tp, _Batches(records), *deserializers)  # type: ignore[no-any-return]


class _Batches:
    """The library's record batches, each with our parser as the second one."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def next_batch(self) -> Any:
        batch = self._batches.next_batch()
        if type(batch) is DefaultRecordBatch:
            batch.__class__ = _Batch
        return batch


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    __slots__ = ()  # as the library's has it, or no batch could become one
    if TYPE_CHECKING:
        _pos: int

    def _read_msg(self, *arguments: Any) -> Any:
        try:
            return super()._read_msg(*arguments)
        except UnicodeDecodeError:
            return self._read_with_escapes()

    def _read_with_escapes(self) -> DefaultRecord:
        buffer: Any = self._buffer
        length, start = decode_varint(buffer, self._pos)
        _, at = decode_varint(buffer, start)  # attributes, unused
        elapsed, at = decode_varint(buffer, at)
        delta, at = decode_varint(buffer, at)
        key, at = _bytes(buffer, at)
        value, at = _bytes(buffer, at)
        count, at = decode_varint(buffer, at)
        headers = []
        for _ in range(count):
            name, at = _bytes(buffer, at)
            content, at = _bytes(buffer, at)
            headers.append(((name or b"").decode("utf-8", "backslashreplace"), content))
        if at - start != length:
            raise CorruptRecordError(f"a record of {length} bytes ends after {at - start}")
        self._pos = at  # type: ignore[misc]
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        timestamp = self.max_timestamp if appended else self.first_timestamp + elapsed
        return DefaultRecord(length, self.base_offset + delta, timestamp, self.timestamp_type, key, value, headers)


def _bytes(buffer: Any, at: int) -> tuple[bytes | None, int]:
    size, at = decode_varint(buffer, at)
    return (None, at) if size < 0 else (bytes(buffer[at : at + size]), at + size)
