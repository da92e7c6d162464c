"""Record batches that are unpacked, and records that are read, within limits of memory.

The library unpacks a batch as a whole, however large it becomes. A stranger who may write to a topic could end
any reader with one batch of a megabyte: with gzip a gigabyte of zeros takes that much, with zstd far less, and
brokers only look at the records one after the other. So unpacking stops at `MAX_BATCH_BYTES`. The batch then
has the records that its header counts, without key and value, and with one header, `UNREADABLE_HEADER`, that
says why: each is a record that cannot be read, at its offset, and readers go on behind it.

A poll is bounded in records alone, and hundreds of small batches can each unpack to a large record. `limit_poll`
bounds it in bytes too: records that follow stay packed, and the next poll returns them.

Snappy needs no limit: three of its bytes stand for 64 at most, so a batch has at most 22 times its own size.
Source: kafka-python 3.0.12, record/default_records.py; snappy, format_description.txt.
"""

import io
import zlib
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import lz4.frame
import zstandard
from kafka import KafkaConsumer
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch

from dedup_service.core.size_limits import MAX_BATCH_BYTES, UNREADABLE_HEADER

__all__ = ["BoundedBatch", "limit_poll"]

_MAX_POLL_BYTES = 32 << 20  # what either step of the service holds
_STEP_RECORDS = 4  # read between two looks at the bytes: costs 3 µs a record
_HEADER_OBJECTS_BYTES = 150  # str, bytes and tuple, in CPython 3.11
_GZIP = 31  # zlib's number for a gzip header and the largest window


class _Refused(bytes):
    """Empty, instead of the records of a batch that is too large."""


class BoundedBatch(DefaultRecordBatch):  # type: ignore[misc]
    """The library's batch; its records take at most `MAX_BATCH_BYTES`."""

    __slots__ = ()  # as the library's class has it, or `__class__` could not be assigned
    if TYPE_CHECKING:
        _buffer: Any
        _pos: int
        _decompressed: bool

    def _maybe_uncompress(self) -> None:
        unpack = _UNPACK.get(self.compression_type)
        if self._decompressed or unpack is None:
            super()._maybe_uncompress()
            return
        self._assert_has_codec(self.compression_type)
        unpacked = unpack(bytes(self._buffer[self._pos :]), MAX_BATCH_BYTES + 1)
        self._buffer = unpacked if len(unpacked) <= MAX_BATCH_BYTES else _Refused()
        self._pos = 0
        self._decompressed = True

    def _read_msg(self, *arguments: Any) -> Any:
        if not isinstance(self._buffer, _Refused):
            return super()._read_msg(*arguments)
        why = f"its batch of {self.records_count:,} records unpacks to more than {MAX_BATCH_BYTES:,} bytes"
        offset = self.base_offset + self._next_record_index
        headers = [(UNREADABLE_HEADER, why.encode())]
        return DefaultRecord(0, offset, self.first_timestamp, self.timestamp_type, None, None, headers)


def _gunzip(packed: bytes, most: int) -> bytes:
    """Return the beginning of all members: a member may be followed by another one."""
    unpacked = bytearray()
    while packed and len(unpacked) < most:
        member = zlib.decompressobj(_GZIP)
        unpacked += member.decompress(packed, most - len(unpacked))
        packed = member.unused_data
    return bytes(unpacked)


def _unlz4(packed: bytes, most: int) -> bytes:
    unpacked: bytes = lz4.frame.LZ4FrameDecompressor().decompress(packed, max_length=most)
    return unpacked


def _unzstd(packed: bytes, most: int) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True) as reader:
        return reader.read(most)


_UNPACK: dict[int, Callable[[bytes, int], bytes]] = {
    DefaultRecordBatch.CODEC_GZIP: _gunzip,
    DefaultRecordBatch.CODEC_LZ4: _unlz4,
    DefaultRecordBatch.CODEC_ZSTD: _unzstd,
}
"""Codec → the first bytes of what a batch unpacks to, at most so many."""


def limit_poll(consumer: KafkaConsumer) -> KafkaConsumer:
    """Make each poll of the consumer end soon after 32 MiB of records, unpacked; return it."""
    fetcher = consumer._fetcher  # noqa: SLF001 - the fetcher has no setting for it
    fetched_records = fetcher.fetched_records

    def within_limit(max_records: int | None = None, update_offsets: bool = True) -> tuple[dict[Any, list[Any]], bool]:
        if not update_offsets:
            return fetched_records(max_records, update_offsets)  # type: ignore[no-any-return]
        left: int = fetcher.config["max_poll_records"] if max_records is None else max_records
        found: dict[Any, list[Any]] = defaultdict(list)
        size, partial = 0, False
        while left > 0 and size < _MAX_POLL_BYTES:
            try:
                step, partial = fetched_records(min(left, _STEP_RECORDS), update_offsets)
            except Exception:
                if not found:
                    raise
                break  # what was found is not lost; the next fetch fails again
            if not step:
                break
            for partition, records in step.items():
                found[partition] += records
                left -= len(records)
                size += sum(map(_memory_of, records))
        return dict(found), partial

    fetcher.fetched_records = within_limit
    return consumer


def _memory_of(record: Any) -> int:
    headers = max(0, record.serialized_header_size) + _HEADER_OBJECTS_BYTES * len(record.headers)
    return int(max(0, record.serialized_key_size) + max(0, record.serialized_value_size) + headers)
