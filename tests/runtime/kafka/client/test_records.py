"""Records with header names that no client library would write, but any client may."""

from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from dedup_service.runtime.kafka.client.patches import _Batches


def batch_of(*names: str) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 1, -1, -1, -1, 1 << 16)
    for number, name in enumerate(names):
        builder.append(number, 1_000 + number, b"key", b"value", [(name, b"content"), ("other", b"")])
    return bytes(builder.build())


def test_a_header_name_of_any_bytes_does_not_hide_the_record() -> None:
    """It is escaped; key, value, other headers and the records around it are as they were."""
    raw = batch_of("good", "odd!", "good").replace(b"odd!", b"\xffd\xfe!")
    records = list(_Batches(MemoryRecords(raw)).next_batch())
    assert [record.offset for record in records] == [0, 1, 2]
    assert [record.headers[0][0] for record in records] == ["good", r"\xffd\xfe!", "good"]
    assert all(record.headers[1] == ("other", b"") for record in records)
    assert {(record.key, record.value, record.timestamp - record.offset) for record in records} == {
        (b"key", b"value", 1_000)
    }


def test_usual_records_are_read_by_the_library() -> None:
    """Headers, times and offsets come out as the library alone would give them."""
    raw = batch_of("a", "ü", "c")
    ours = list(_Batches(MemoryRecords(raw)).next_batch())
    its = list(MemoryRecords(raw).next_batch())
    assert [(r.offset, r.headers, r.value) for r in ours] == [(r.offset, r.headers, r.value) for r in its]
