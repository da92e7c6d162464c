"""Batches are unpacked within a limit; one beyond it has its records, without their content."""

import gzip
import struct
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from dedup_service.core.size_limits import UNREADABLE_HEADER
from dedup_service.runtime.kafka.client import unpacking
from dedup_service.runtime.kafka.client.patches import _Batches
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
