"""Records that are too large to be passed on: dead letters, and the pages behind them get their verdicts.

They are written as a stranger would write them: compressed, so that the brokers take them however large they
are when they are read.
"""

import base64
import gzip
import json
import random
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.codec import snappy_encode
from kafka.consumer.fetcher import ConsumerRecord
from kafka.record.util import calc_crc32c, encode_varint
from kafka.serializer import Serializer

from dedup_service.core.size_limits import MAX_HEADERS_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES
from dedup_service.runtime.kafka.client.connect import consumer
from dedup_service.runtime.kafka.messages.page import CUT_BYTES, CUT_KEY_BYTES
from dedup_service.runtime.kafka.messages.verdict import read_verdict
from dedup_service.runtime.kafka.topics import Topics
from tests.chaos.reading import read_all
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from tests.integration.kafka.test_service import Progress, running, settings

pytestmark = pytest.mark.slow

MEBIBYTE = 1 << 20
STORY = "台风昨夜在沿海登陆，风力十二级，沿海地区转移居民三万人，学校停课，航班取消，今天下午风力减弱，向西北移动。" * 3
PAGES_BEHIND = 10

Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True)
class Hostile:
    """A record to publish with `codec`."""

    codec: str
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


class EmptyAsNull(Serializer):  # type: ignore[misc]
    """Writes empty values as nulls: the library itself refuses a null value beside a null key."""

    def serialize(self, topic: str, headers: object, data: bytes) -> bytes | None:
        """Return the value to write."""
        return data or None


def repeated(size: int) -> bytes:
    """Return letters that zstd packs to nearly nothing and lz4 not at all: a block beyond its window, repeated."""
    block = base64.b64encode(random.Random(7).randbytes(100_000))
    return (block * (size // len(block) + 1))[:size]


def page(url: str, size: int) -> bytes:
    """Return a page of `size` bytes; most of it is a key that the service does not read."""
    head, tail = json.dumps({"url": url, "text": STORY, "filler": ""}).encode().split(b'""')
    return head + b'"' + repeated(size - len(head) - len(tail) - 2) + b'"' + tail


def large_header() -> Hostile:
    """Return a record with a header of 2 MiB."""
    return Hostile("gzip", b"k", b"x", [("zeros", bytes(2 * MEBIBYTE)), ("trace", b"1")])


def large_page() -> Hostile:
    """Return a page of 14 MiB with a header of 3 MiB."""
    headers = [("ce_id", b"7"), ("more", repeated(3 * MEBIBYTE))]
    return Hostile("zstd", b"https://a.example/large", page("https://a.example/large", 14 * MEBIBYTE), headers)


def publish(broker: Broker, topics: Topics, hostile: Sequence[Hostile]) -> None:
    """Put the records into partition 0 of `pages`, and ordinary pages behind them."""
    for one in hostile:
        _send(broker, topics, one.codec, [(one.key, one.value, one.headers)])
    urls = [f"https://a.example/{number}" for number in range(PAGES_BEHIND)]
    _send(
        broker, topics, "gzip", [(url.encode(), json.dumps({"url": url, "text": STORY}).encode(), ()) for url in urls]
    )


def _send(
    broker: Broker, topics: Topics, codec: str, records: Sequence[tuple[bytes | None, bytes | None, Headers]]
) -> None:
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        compression_type=codec,
        max_request_size=256 * MEBIBYTE,
        value_serializer=EmptyAsNull(),
        metrics_enabled=False,
    )
    try:
        for key, value, headers in records:
            producer.send(topics.pages, value or b"", key, list(headers), partition=0).get(timeout=HANG_S)
    finally:
        producer.close()


def served(broker: Broker, topics: Topics, state: Path, records: int) -> dict[str, list[ConsumerRecord]]:
    """Run the service until it has answered so many records; return what it wrote."""
    progress = Progress()
    with running(settings(broker, topics, state), progress):
        progress.wait_for(lambda: progress.done >= records)
    return read_all(broker.bootstrap, [topics.verdicts, topics.unique, topics.dlq])


def verdict_urls(found: dict[str, list[ConsumerRecord]], topics: Topics) -> list[str]:
    """Return the URLs of all verdicts, in order."""
    return [read_verdict(record.value)[0].url for record in found[topics.verdicts]]


@pytest.mark.parametrize("make", [large_header, large_page])
def test_one_record_too_large_to_be_written_stops_nobody(
    broker: Broker, topics: Topics, tmp_path: Path, make: Callable[[], Hostile]
) -> None:
    """It becomes a dead letter with place, reason and the headers that fit; each page behind it gets a verdict."""
    hostile = make()
    publish(broker, topics, [hostile])
    found = served(broker, topics, tmp_path / "state", 1 + PAGES_BEHIND)
    assert sorted(verdict_urls(found, topics)) == [f"https://a.example/{number}" for number in range(PAGES_BEHIND)]
    (letter,) = found[topics.dlq]
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (hostile.key, hostile.value)
    (small,) = [header for header in hostile.headers if len(header[1]) < 10]
    assert small in letter.headers
    assert len(letter.headers) == 1 + 6
    assert headers["twinsieve.cut_headers_from_bytes"] == b"%d" % sum(len(n) + len(v) for n, v in hostile.headers)
    assert b"the headers have" in headers["twinsieve.error"]
    place = [headers[f"twinsieve.{part}"] for part in ("topic", "partition", "offset")]
    assert place == [topics.pages.encode(), b"0", b"0"]


def test_whatever_is_published_gets_an_answer(broker: Broker, topics: Topics, tmp_path: Path) -> None:
    """Oversized values and keys, 100,000 headers and nulls are dead letters that say what was cut."""
    hostile = [
        Hostile("gzip", b"k", bytes(16 * MEBIBYTE), [("trace", b"1")]),
        Hostile("gzip", bytes(2 * MEBIBYTE), b'{"url": "https://a.example/key", "text": "t"}'),
        Hostile("lz4", b"k", b"{}", [(f"h{number}", b"") for number in range(100_000)]),
        Hostile("gzip", None, None, [("a", b""), ("a", b"1"), ("a", b""), ("", b"")]),
    ]
    publish(broker, topics, hostile)
    found = served(broker, topics, tmp_path / "state", len(hostile) + PAGES_BEHIND)
    assert len(found[topics.verdicts]) == PAGES_BEHIND
    value, key, many, nulls = found[topics.dlq]
    assert (value.value, value.key, dict(value.headers)["trace"]) == (bytes(CUT_BYTES), b"k", b"1")
    assert dict(value.headers)["twinsieve.cut_from_bytes"] == b"%d" % (16 * MEBIBYTE)
    assert (key.key, key.value) == (bytes(CUT_KEY_BYTES), hostile[1].value)
    assert dict(key.headers)["twinsieve.cut_key_from_bytes"] == b"%d" % (2 * MEBIBYTE)
    assert many.value == hostile[2].value
    assert b"it has 100,000 headers" in dict(many.headers)["twinsieve.error"]
    assert (nulls.key, nulls.value) == (None, b"")
    assert nulls.headers[:4] == [("a", b""), ("a", b"1"), ("a", b""), ("", b"")]


@pytest.mark.long
def test_a_batch_that_unpacks_to_any_size_stops_nobody(broker: Broker, topics: Topics, tmp_path: Path) -> None:
    """It is not unpacked as a whole: 150 MiB of zeros stand here for what would take all memory."""
    publish(broker, topics, [Hostile("zstd", b"k", bytes(150 * MEBIBYTE), [("trace", b"1")])])
    found = served(broker, topics, tmp_path / "state", 1 + PAGES_BEHIND)
    assert len(found[topics.verdicts]) == PAGES_BEHIND
    (letter,) = found[topics.dlq]
    headers = dict(letter.headers)
    assert (letter.key, letter.value, headers["twinsieve.offset"]) == (None, b"", b"0")
    assert headers["twinsieve.error"] == b"its batch of 1 records unpacks to more than 134,217,728 bytes"


def test_a_poll_is_bounded_in_bytes(broker: Broker, topics: Topics) -> None:
    """Forty batches of 2 KB unpack to 8 MiB each: a poll returns a few, and all polls together return all."""
    _send(broker, topics, "zstd", [(b"%d" % number, bytes(8 * MEBIBYTE), ()) for number in range(40)])
    reader = consumer(broker.connection, 8 * MEBIBYTE)
    try:
        reader.assign([TopicPartition(topics.pages, 0)])
        reader.seek_to_beginning()
        keys: list[bytes] = []
        deadline = time.monotonic() + HANG_S
        while len(keys) < 40 and time.monotonic() < deadline:
            records = [record for found in reader.poll(500, 500).values() for record in found]
            assert sum(len(record.value) for record in records) <= 64 * MEBIBYTE
            keys += [record.key for record in records]
    finally:
        reader.close()
    assert keys == [b"%d" % number for number in range(40)]


def test_the_largest_record_that_is_accepted_is_passed_on(broker: Broker, topics: Topics, tmp_path: Path) -> None:
    """Value, key and headers at their limits, of bytes that do not compress, are in `pages.unique` unchanged."""
    headers = [("a", repeated(MAX_HEADERS_BYTES - 2)), ("b", b"")]
    largest = Hostile("zstd", repeated(MAX_KEY_BYTES), page("https://a.example/largest", MAX_VALUE_BYTES), headers)
    publish(broker, topics, [largest])
    found = served(broker, topics, tmp_path / "state", 1 + PAGES_BEHIND)
    (passed,) = [record for record in found[topics.unique] if record.key == largest.key]
    assert passed.value == largest.value
    assert passed.headers[:2] == [largest.headers[0], ("b", b"")]
    assert found[topics.dlq] == []
    assert len(found[topics.verdicts]) == 1 + PAGES_BEHIND


def test_a_batch_that_only_brokers_can_read_stops_nobody(broker: Broker, topics: Topics, tmp_path: Path) -> None:
    """Wrong checksum, bytes behind a member, streams in a row: dead letters. A forged offset is not believed."""
    import lz4.frame

    publish(broker, topics, [])
    record = raw_record(b'{"url": "https://a.example/raw"}')
    frame = lz4.frame.compress(record, content_checksum=True, block_linked=False)
    _produce(broker, topics, 3, frame[:-1] + bytes([frame[-1] ^ 1]))
    _produce(broker, topics, 1, gzip.compress(record) + b"more")
    _produce(broker, topics, 2, snappy_encode(record[:9]) + snappy_encode(record[9:]))
    _produce(broker, topics, 0, raw_record(b'{"url": "https://a.example/raw"}', delta=1_000_000))
    publish(broker, topics, [])
    found = served(broker, topics, tmp_path / "state", 4 + 2 * PAGES_BEHIND)
    assert len(found[topics.verdicts]) == 1 + 2 * PAGES_BEHIND
    places = [dict(letter.headers)["twinsieve.offset"] for letter in found[topics.dlq]]
    assert places == [b"10", b"11", b"12"]
    assert all(b"cannot be unpacked" in dict(letter.headers)["twinsieve.error"] for letter in found[topics.dlq])


def raw_record(value: bytes, delta: int = 0) -> bytes:
    """Return a record that claims to be `delta` offsets behind the first of its batch."""
    body = bytearray([0])
    for number in (0, delta, -1, len(value)):
        encode_varint(number, body.append)
    body += value
    encode_varint(0, body.append)
    length = bytearray()
    encode_varint(len(body), length.append)
    return bytes(length + body)


def _produce(broker: Broker, topics: Topics, codec: int, body: bytes) -> None:
    """Put a batch of one record with this body into partition 0 of `pages`; no client would write it."""
    now = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", codec, 0, now, now, -1, -1, -1, 1) + body
    rest = struct.pack(">ibI", -1, 2, calc_crc32c(memoryview(checked))) + checked
    batch = struct.pack(">qi", 0, len(rest)) + rest
    name = struct.pack(">h", len(topics.pages)) + topics.pages.encode()
    produce_v8 = struct.pack(">hhihhhii", 0, 8, 1, -1, -1, -1, 10_000, 1)
    request = produce_v8 + name + struct.pack(">iii", 1, 0, len(batch)) + batch
    host, port = broker.bootstrap.split(":")
    with socket.create_connection((host, int(port)), 30) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    assert struct.unpack_from(">h", answer, 8 + len(name) + 8) == (0,), answer
