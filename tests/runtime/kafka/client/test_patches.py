"""Cures of the library's faults, as far as they can be tested without a broker, and the releases they support."""

import logging

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.patches import PatchedKafkaClient, _Batches, check_client_release


def test_an_absent_broker_is_not_ready_instead_of_an_error() -> None:
    """The same holds for a broker that is no longer known."""
    client = PatchedKafkaClient(bootstrap_servers="127.0.0.1:1")
    try:
        [broker] = client.cluster.bootstrap_brokers()
        assert client.await_ready(broker.node_id, timeout_ms=500) is False
        assert client.await_ready(4711, timeout_ms=500) is False
    finally:
        client.close()


def test_untested_releases_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Another minor release gets one warning, another major release is refused."""
    with caplog.at_level(logging.WARNING):
        check_client_release("3.1.0")
        check_client_release("3.1.0")
    assert len(caplog.records) == 1
    with pytest.raises(ConfigurationError, match=r"4\.0\.0"):
        check_client_release("4.0.0")


def batch_of(*names: str) -> bytes:
    """A batch with one record for each header name."""
    builder = DefaultRecordBatchBuilder(2, 0, 1, -1, -1, -1, 1 << 16)
    for number, name in enumerate(names):
        builder.append(number, 1_000 + number, b"key", b"value", [(name, b"content"), ("other", b"")])
    return bytes(builder.build())


def test_a_header_name_of_any_bytes_is_read() -> None:
    """It is escaped; key, value, other headers and the neighbouring records are unchanged."""
    raw = batch_of("good", "odd!", "good").replace(b"odd!", b"\xffd\xfe!")
    records = list(_Batches(MemoryRecords(raw)).next_batch())
    assert [record.offset for record in records] == [0, 1, 2]
    assert [record.headers[0][0] for record in records] == ["good", r"\xffd\xfe!", "good"]
    assert all(record.headers[1] == ("other", b"") for record in records)
    assert {(record.key, record.value, record.timestamp - record.offset) for record in records} == {
        (b"key", b"value", 1_000)
    }


def test_ordinary_records_are_read_as_by_the_library() -> None:
    """Headers, timestamps and offsets equal those of the library alone."""
    raw = batch_of("a", "ü", "c")
    ours = list(_Batches(MemoryRecords(raw)).next_batch())
    its = list(MemoryRecords(raw).next_batch())
    assert [(r.offset, r.headers, r.value) for r in ours] == [(r.offset, r.headers, r.value) for r in its]
