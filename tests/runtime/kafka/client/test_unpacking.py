"""Batches are unpacked within a limit; one beyond it has its records, without their content."""

import gzip
import struct
import time
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.codec import snappy_encode
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import encode_varint

from dedup_service.core.size_limits import UNREADABLE_HEADER
from dedup_service.runtime.kafka.client import unpacking
from dedup_service.runtime.kafka.client.patches import _Batches, _PartitionRecords
from dedup_service.runtime.kafka.messages.page import PageMessage

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
PACKING = ["gzip", "lz4", "zstd"]
MEBIBYTE = 1 << 20


def batch(values: list[bytes], codec: str) -> bytes:
    """Return a batch of records with these values, at offset 0."""
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 1, -1, -1, -1, 1 << 30)
    for number, value in enumerate(values):
        builder.append(number, 1_000 + number, b"key", value, [("a", b"1")])
    return bytes(builder.build())


def read(raw: bytes) -> list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]]:
    """Return offset, key, value and headers of the records in a batch, as our consumers read it."""
    return [(r.offset, r.key, r.value, r.headers) for r in _Batches(MemoryRecords(raw)).next_batch()]


@pytest.mark.parametrize("codec", CODECS)
@given(values=st.lists(st.binary(max_size=200).map(lambda value: value * 10), min_size=1, max_size=5))
def test_batches_within_the_limit_are_read_as_by_the_library(values: list[bytes], codec: str) -> None:
    """Whatever they are packed with."""
    raw = batch(values, codec)
    assert read(raw) == [(r.offset, r.key, r.value, r.headers) for r in MemoryRecords(raw).next_batch()]


@pytest.mark.parametrize("codec", PACKING)
def test_a_batch_beyond_the_limit_has_its_records_without_content(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each says why, and is a record that cannot be read as a page; a batch at the limit is read."""
    values = [bytes(3000), b"", bytes(2000)]
    size = len(batch(values, "none")) - DefaultRecordBatchBuilder.HEADER_STRUCT.size
    raw = batch(values, codec)
    monkeypatch.setattr(unpacking, "MAX_BATCH_BYTES", size)
    assert [value for _, _, value, _ in read(raw)] == values
    monkeypatch.setattr(unpacking, "MAX_BATCH_BYTES", size - 1)
    why = f"its batch of 3 records unpacks to more than {size - 1:,} bytes"
    headers = [(UNREADABLE_HEADER, why.encode())]
    assert read(raw) == [(offset, None, None, headers) for offset in range(3)]
    (record, *_) = _Batches(MemoryRecords(raw)).next_batch()
    message = PageMessage.of(_Placed(record))
    assert (message.offset, message.problem) == (0, why)


class _Placed:
    """A record of a batch as a consumer returns it."""

    topic, partition = "pages", 0

    def __init__(self, record: object) -> None:
        self._record = record

    def __getattr__(self, name: str) -> object:
        return getattr(self._record, name)


@pytest.mark.parametrize("codec", PACKING)
def test_a_small_batch_cannot_take_all_memory(codec: str) -> None:
    """One of 400 MiB of zeros is packed to 2 MiB or less; reading it takes the limit, not three times its size."""
    raw = bomb(400 * MEBIBYTE, codec)
    assert len(raw) < 2 * MEBIBYTE
    tracemalloc.start()
    ((_, _, value, headers),) = read(raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 320 * MEBIBYTE
    assert value is None
    assert headers[0][0] == UNREADABLE_HEADER


def bomb(size: int, codec: str) -> bytes:
    """Return a batch of one record of `size` zeros, made without them."""
    head = DefaultRecordBatchBuilder.HEADER_STRUCT.size
    packed = PACKERS[codec](size)
    raw = batch([bytes(1000)], codec)[:head] + packed
    return raw[:8] + struct.pack(">i", len(raw) - 12) + raw[12:]


def _gzipped(size: int) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(size // MEBIBYTE)) + packer.flush()


def _lz4(size: int) -> bytes:
    import lz4.frame

    with lz4.frame.LZ4FrameCompressor() as packer:
        packed = packer.begin()
        packed += b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(size // MEBIBYTE))
        return bytes(packed + packer.flush())


def _zstd(size: int) -> bytes:
    import zstandard

    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(size // MEBIBYTE)) + packer.flush()


PACKERS = {"gzip": _gzipped, "lz4": _lz4, "zstd": _zstd}


def test_members_of_gzip_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is on all of them together."""
    packed = gzip.compress(b"a" * 100) + gzip.compress(b"b" * 100)
    assert unpacking._gunzip(packed, 1000) == b"a" * 100 + b"b" * 100
    assert unpacking._gunzip(packed, 150) == b"a" * 100 + b"b" * 50


def packed(body: bytes, codec: str, count: int = 1) -> bytes:
    """Return a batch with this body instead of its records."""
    head = DefaultRecordBatchBuilder.HEADER_STRUCT.size
    raw = batch([b"value"] * count, "none")[:head] + body
    attributes = struct.pack(">h", CODECS[codec])
    return raw[:8] + struct.pack(">i", len(raw) - 12) + raw[12:21] + attributes + raw[23:]


def record(delta: int, attributes: int = 0, headers: int = 0) -> bytes:
    """Return one record that claims the offset `delta`; its headers have neither name nor value."""
    value = encoded(len(b"value")) + b"value"
    body = bytes([attributes]) + encoded(0) + encoded(delta) + encoded(-1) + value
    body += encoded(headers) + b"\0\1" * headers
    return encoded(len(body)) + body


def encoded(number: int) -> bytes:
    out = bytearray()
    encode_varint(number, out.append)
    return bytes(out)


def wrong_checksum() -> bytes:
    import lz4.frame

    frame: bytes = lz4.frame.compress(record(0), content_checksum=True, block_linked=False)
    return frame[:-1] + bytes([frame[-1] ^ 1])


UNREADABLE = {
    "lz4": wrong_checksum(),
    "gzip": gzip.compress(record(0)) + b"more",
    "snappy": snappy_encode(record(0)[:5]) + snappy_encode(record(0)[5:]),
    "none": record(0, attributes=0x80),
}


@pytest.mark.parametrize("codec", UNREADABLE)
def test_what_brokers_take_and_cannot_be_read_is_a_record_without_content(codec: str) -> None:
    """Apache Kafka 4.3.1 takes each of these; an exception would stop the partition at every start."""
    ((offset, key, value, ((name, why),)),) = read(packed(UNREADABLE[codec], codec))
    assert (offset, key, value, name) == (0, None, None, UNREADABLE_HEADER)
    assert why.startswith(b"its batch of 1 records cannot be " + (b"read" if codec == "none" else b"unpacked"))


def test_records_before_an_unreadable_one_are_read() -> None:
    """Its place is lost from there on, the number of records is not."""
    found = read(packed(record(0) + record(1, attributes=0x80) + record(2), "none", 3))
    assert [(offset, value) for offset, _, value, _ in found] == [(0, b"value"), (1, None), (2, None)]


@pytest.mark.parametrize("deltas", [(10**6, 1, -5), (0, 0, 0), (2, 1, 0), (-(1 << 31), (1 << 31) - 1, 0)])
def test_offsets_are_those_of_the_batch(deltas: tuple[int, ...]) -> None:
    """Brokers keep what the records of an uncompressed batch claim: one could move a group beyond the end."""
    found = read(packed(b"".join(map(record, deltas)), "none", 3))
    assert [(offset, value) for offset, _, value, _ in found] == [(number, b"value") for number in range(3)]


def test_offsets_of_a_compacted_batch_are_kept() -> None:
    """It has fewer records than offsets."""
    raw = batch([b"a", b"b", b"c", b"d"], "none")
    few = packed(record(0) + record(3), "none", 2)
    compacted = few[:23] + raw[23:27] + few[27:]
    assert [offset for offset, *_ in read(compacted)] == [0, 3]


def test_a_wrong_checksum_is_raised_and_the_batch_asked_for_again() -> None:
    """The library's fetcher would ask its ended generator for more, without an end."""
    raw = bytearray(batch([b"value"], "none"))
    raw[-1] ^= 1
    part = _PartitionRecords(0, TopicPartition("pages", 0), MemoryRecords(bytes(raw)))
    with pytest.raises(CorruptRecordError):
        part.take(10)
    assert not part


def test_headers_cannot_take_all_memory() -> None:
    """11 KB of zstd hold 60 million, which take gigabytes and minutes. The records beside such a one are read."""
    raw = packed(record(0) + record(1, headers=1_000_000) + record(2, headers=200_000), "none", 3)
    tracemalloc.start()
    (_, *before), (_, *bomb), (_, *behind) = read(raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert before == [None, b"value", []]
    assert bomb == [None, None, [(UNREADABLE_HEADER, b"it has 1,000,000 headers, of which 200,000 could be read")]]
    assert behind[1] == b"value"
    assert peak < 40 << 20


@pytest.mark.parametrize("codec", ["snappy", "gzip"])
def test_unpacking_takes_linear_time(codec: str) -> None:
    """Of empty blocks or members, of which brokers take 8 MiB: copying the rest for each took minutes."""
    head, body = snappy_encode(b"")[:16], snappy_encode(record(0))[16:]
    snappy = head + (struct.pack(">i", 1) + b"\0") * 800_000 + body
    raw = packed({"snappy": snappy, "gzip": gzip.compress(b"") * 100_000 + gzip.compress(record(0))}[codec], codec)
    began = time.process_time()
    ((_, _, value, _),) = read(raw)
    assert value == b"value"
    assert time.process_time() - began < 4
