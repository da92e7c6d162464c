"""Record batches that are unpacked, and records that are read, within limits of memory.

The library unpacks a batch as a whole, however large it becomes. A stranger who may write to a topic could end
any reader with one batch of a megabyte: with gzip a gigabyte of zeros takes that much, with zstd far less, and
brokers only look at the records one after the other. So unpacking stops at `MAX_BATCH_BYTES`. The batch then
has the records that its header counts, without key and value, and with one header, `UNREADABLE_HEADER`, that
says why: each is a record that cannot be read, at its offset, and readers go on behind it.

Brokers accept batches that the library cannot read: they do not look at the checksum of an lz4 frame, at what
follows a gzip member, at the attributes of a record, or at the offset that an uncompressed record claims. So
whatever cannot be unpacked or read, or has too many headers for memory, is such a record too, and an offset is
one of those that the batch has.

A poll is bounded in records alone, and hundreds of small batches can each unpack to a large record. `limit_poll`
bounds it in bytes too: records that follow stay packed, and the next poll returns them.

A block of snappy needs no limit: three of its bytes stand for 64 at most.
Source: kafka-python 3.0.12, record/default_records.py; snappy, format_description.txt.
"""

import io
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import zstandard
from kafka import KafkaConsumer, codec
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.util import decode_varint

from dedup_service.core.size_limits import HEADER_OBJECTS_BYTES, MAX_BATCH_BYTES, UNREADABLE_HEADER

_MAX_POLL_BYTES = 32 << 20  # what either step of the service holds
_MAX_HEADERS = 200_000
"""Headers of a record that are read: 30 MiB of objects. One of two bytes takes 72 in memory, and zeros pack well."""
_PIECE_BYTES = 16 << 10  # of gzip: what is copied for each member
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_GZIP = 31  # zlib's number for a gzip header and the largest window


class _Refused(bytes):
    """Empty, instead of the records of a batch that cannot be read. why: the reason."""

    why = ""


class BoundedBatch(DefaultRecordBatch):  # type: ignore[misc]
    """The library's batch; its records take at most `MAX_BATCH_BYTES`."""

    __slots__ = ()  # as the library's class has it, or `__class__` could not be assigned
    if TYPE_CHECKING:
        _buffer: Any
        _pos: int
        _decompressed: bool
        _next_record_index: int

    def _maybe_uncompress(self) -> None:
        if self._decompressed or self.compression_type == self.CODEC_NONE:
            super()._maybe_uncompress()
            return
        self._assert_has_codec(self.compression_type)
        unpack = _UNPACK[self.compression_type]
        try:
            unpacked = unpack(bytes(self._buffer[self._pos :]), MAX_BATCH_BYTES + 1)
        except MemoryError:
            raise
        except Exception as error:  # whatever a codec raises; its bytes are those that were sent, by their checksum
            self._refuse(f"cannot be unpacked: {error!r}")
        else:
            self._buffer, self._pos = unpacked, 0  # type: ignore[misc]
            if len(unpacked) > MAX_BATCH_BYTES:
                self._refuse(f"unpacks to more than {MAX_BATCH_BYTES:,} bytes")
        self._decompressed = True  # type: ignore[misc]

    def __next__(self) -> Any:
        index = self._next_record_index
        if index >= self.records_count:  # bytes that are left are no record
            raise StopIteration
        try:
            record = self._read_msg()
        except (CorruptRecordError, ValueError, IndexError) as error:
            self._refuse(f"cannot be read from its record {index + 1} on: {error!r}")
            record = self._read_msg()
        last = self.last_offset - (self.records_count - 1 - index)
        record._offset = min(max(record.offset, self.base_offset + index), last)  # noqa: SLF001 - it has no setter
        self._next_record_index += 1  # type: ignore[misc]
        return record

    next = __next__

    def _read_msg(self, *arguments: Any) -> Any:
        if isinstance(self._buffer, _Refused):
            return self._unreadable(self._buffer.why)
        length, start = decode_varint(self._buffer, self._pos)
        if length > 2 * _MAX_HEADERS and (count := self._count_headers(start)) > _MAX_HEADERS:
            if start + length > len(self._buffer):
                raise CorruptRecordError(f"a record of {length:,} bytes ends behind its batch")
            self._pos = start + length  # type: ignore[misc]
            return self._unreadable(f"it has {count:,} headers, of which {_MAX_HEADERS:,} could be read")
        return super()._read_msg(*arguments)

    def _count_headers(self, at: int) -> int:
        """Return how many headers the record says to have whose attributes are at `at`."""
        for _ in range(3):  # attributes, time, offset
            _, at = decode_varint(self._buffer, at)
        for _ in range(2):  # key, value
            size, at = decode_varint(self._buffer, at)
            at += max(0, size)
        return int(decode_varint(self._buffer, at)[0])

    def _unreadable(self, why: str) -> DefaultRecord:
        offset = self.base_offset + self._next_record_index
        headers = [(UNREADABLE_HEADER, why.encode())]
        return DefaultRecord(0, offset, self.first_timestamp, self.timestamp_type, None, None, headers)

    def _refuse(self, problem: str) -> None:
        self._buffer, self._pos = _Refused(), 0  # type: ignore[misc]
        self._buffer.why = f"its batch of {self.records_count:,} records {problem}"


def _gunzip(packed: bytes, most: int) -> bytes:
    """Return the beginning of all members: a member may be followed by another one."""
    unpacked = bytearray()
    at = 0
    while at < len(packed) and len(unpacked) < most:
        member = zlib.decompressobj(_GZIP)
        while at < len(packed) and not member.eof and len(unpacked) < most:
            piece = packed[at : at + _PIECE_BYTES]
            unpacked += member.decompress(piece, most - len(unpacked))
            at += len(piece) - len(member.unused_data)
    return bytes(unpacked)


def _unlz4(packed: bytes, most: int) -> bytes:
    unpacked: bytes = codec.lz4.LZ4FrameDecompressor().decompress(packed, max_length=most)
    return unpacked


def _unzstd(packed: bytes, most: int) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True) as reader:
        return reader.read(most)


def _unsnappy(packed: bytes, most: int) -> bytes:
    """Return the beginning of all blocks. The library copies what is left for each, minutes for 8 MiB of empty ones."""
    if not packed.startswith(_XERIAL):
        return bytes(codec.snappy.decompress(packed))
    unpacked = bytearray()
    at = _XERIAL_HEADER_BYTES
    while at < len(packed) and len(unpacked) < most:
        begin = at + 4
        at = begin + int.from_bytes(packed[at:begin], "big")
        unpacked += codec.snappy.decompress(packed[begin:at])
    return bytes(unpacked)


_UNPACK: dict[int, Callable[[bytes, int], bytes]] = {
    DefaultRecordBatch.CODEC_SNAPPY: _unsnappy,
    DefaultRecordBatch.CODEC_GZIP: _gunzip,
    DefaultRecordBatch.CODEC_LZ4: _unlz4,
    DefaultRecordBatch.CODEC_ZSTD: _unzstd,
}
"""Codec → the first bytes of what a batch unpacks to, at most so many."""


def limit_poll(consumer: KafkaConsumer) -> KafkaConsumer:
    """Make each poll of the consumer end with the record that fills 32 MiB, unpacked; return it."""
    fetcher = consumer._fetcher  # noqa: SLF001 - the fetcher has no setting for it
    fetched_records, append = fetcher.fetched_records, fetcher._append  # noqa: SLF001
    spent = 0

    def fetched_within_limit(*arguments: Any, **named: Any) -> Any:
        nonlocal spent
        spent = 0
        return fetched_records(*arguments, **named)

    def within_limit(records: Iterator[Any]) -> Iterator[Any]:
        nonlocal spent
        for record in records:
            spent += _memory_of(record)
            yield record
            if spent >= _MAX_POLL_BYTES:
                return

    def append_within_limit(drained: Any, part: Any, most: int, update_offsets: bool) -> int:
        if not part:
            return int(append(drained, part, most, update_offsets))
        rest = part.record_iterator
        part.record_iterator = within_limit(rest)
        try:
            count = append(drained, part, most, update_offsets)
        finally:
            if part:  # it has more
                part.record_iterator = rest
        return most if spent >= _MAX_POLL_BYTES else count

    fetcher.fetched_records, fetcher._append = fetched_within_limit, append_within_limit  # noqa: SLF001
    return consumer


def _memory_of(record: Any) -> int:
    size = record.serialized_key_size + record.serialized_value_size + record.serialized_header_size
    return int(size + HEADER_OBJECTS_BYTES * len(record.headers))
