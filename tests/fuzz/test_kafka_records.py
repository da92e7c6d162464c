"""Kafka records: keys, values and headers that anybody who may write to a topic chooses."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import RecordError, StateError
from dedup_service.core.extraction import Extraction
from dedup_service.core.log_records import LogRecord, Source, UnreadableRecord
from dedup_service.core.size_limits import (
    EVENT_MESSAGE_BYTES,
    MAX_HEADERS,
    MAX_HEADERS_BYTES,
    MAX_KEY_BYTES,
    MAX_NAME_CHARS,
    MAX_VALUE_BYTES,
    PAGE_MESSAGE_BYTES,
    UNREADABLE_HEADER,
    Header,
)
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.messages.headers import passed_on
from dedup_service.runtime.kafka.messages.log_record import decode, encode, log_message, log_messages
from dedup_service.runtime.kafka.messages.page import PageMessage, dead_letter, record_size, size_problem
from dedup_service.runtime.kafka.messages.verdict import read_verdict, verdict_value
from dedup_service.runtime.kafka.state.step_offsets import StepOffsets
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.readers.jsonlines import BYTE_ORDER_MARK, JsonLine
from tests.fuzz.budget import within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import altered, mutated
from tests.fuzz.test_jsonlines import FILES, LINES
from tests.runtime.kafka.messages.batches import sent_bytes
from tests.runtime.kafka.messages.sources import source_in
from tests.runtime.kafka.messages.test_log_record import records as log_records
from tests.runtime.kafka.messages.test_verdict import verdicts

NUMBERS = (
    b"-1",
    b"0",
    b"1e3",
    b"9" * 30,
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"1.5",
)
PIECES = (
    *(b"null", b"true", b'""', b"{}", b"[]", b'"', b"\\", b"\\ud800", b"\xff", b"[" * 3_000, b'{"a":' * 3_000),
    *(b'"v":1,', b'"v":3,', b'"kind":"page",', b'"kind":"x",', b'"evidence":"!",', b'"words":"-1",', b'"offset":-1,'),
    *NUMBERS,
)
LONG = st.builds(
    lambda size, byte: bytes([byte]) * size,
    st.integers(0, MAX_VALUE_BYTES // 64).map((64).__mul__),
    st.integers(0, 255),
)
NAMES = st.text(max_size=20) | st.sampled_from(
    ["ce_id", "twinsieve.topic", "twinsieve.partition", "twinsieve.offset", "twinsieve.error", UNREADABLE_HEADER]
)
HEADERS = st.lists(
    st.tuples(NAMES, st.none() | st.binary(max_size=20) | st.just(b"x" * 70_000)), max_size=12
) | st.builds(
    lambda header, count: [header] * count, st.tuples(NAMES, st.none() | st.binary(max_size=8)), st.integers(0, 600)
)


@dataclass(frozen=True)
class Record:
    """A record as a consumer returns it."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    topic: str = "pages"
    partition: int = 3
    offset: int = 41


RECORDS = st.builds(
    Record,
    st.none() | st.binary() | st.integers(0, 2 * MAX_KEY_BYTES).map(bytes),
    st.none() | st.binary() | mutated(LINES, PIECES),
    HEADERS,
)
LOG = st.lists(log_records, min_size=1, max_size=4).map(lambda some: log_messages("log", some)[0][0].value or b"")
VERDICTS = st.builds(verdict_value, verdicts, st.builds(Source, st.text(), st.integers(0, 9), st.integers(0, 9)))
STATS = st.just(
    b'{"sequence":7,"log":"l","space":"s","counts":{"unique":7},"entries":7,"lag":{"pages-0":0},"instance":"i"}'
)
OFFSET_KEYS = st.sampled_from([None, b"", b"decide/3", b"replay", b"\xff"])
OFFSETS = st.just(b'{"step":"decide","topic":"pages","partition":3,"offset":120,"v":1}')
MARKS = st.just(b'{"log":"l","finished":true,"v":1}')


def extracted(html: bytes | str, declared: str | None) -> Extraction:
    """Stand for the extraction, which `test_html` has."""
    return Extraction(text=str(html), title=declared or "")


def check_page(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> None:
    """What must hold for any record of `pages`."""
    record = Record(key, value, headers)
    size = sum(len(name) + len(content or b"") for name, content in headers)
    with within(key, value, bytes(size)):
        message = PageMessage.of(record)
        assert record_size(record) >= size
        try:
            page = message.page(extracted)
        except RecordError as error:
            problem = str(error)
        else:
            problem = None
            assert size_problem(record) is None
            assert max(len(page.url), len(page.id)) <= MAX_NAME_CHARS
            assert value is not None
            assert page == JsonLine(1, value.removeprefix(BYTE_ORDER_MARK)).page(extracted), "as in a file"
        letter = dead_letter(record, 7, problem or "cannot be passed on")
    assert sent_bytes(letter.value, letter.key, letter.headers) <= PAGE_MESSAGE_BYTES
    assert source_in(letter.headers) == Source("pages", 3, 41)
    assert len({name for name, _ in letter.headers if name.startswith("twinsieve.offset")}) == 1
    if size <= MAX_HEADERS_BYTES and len(headers) <= MAX_HEADERS:
        assert letter.headers == passed_on(
            headers,
            Source("pages", 3, 41),
            7,
            **_cuts(letter.headers),
            error=dict(letter.headers)["twinsieve.error"].decode(),
        )
    again = dead_letter(Record(letter.key, letter.value, letter.headers), 8, "again")
    assert sent_bytes(again.value, again.key, again.headers) <= PAGE_MESSAGE_BYTES


def _cuts(headers: Sequence[tuple[str, bytes]]) -> dict[str, int]:
    """Return the sizes that a dead letter names."""
    return {
        name.removeprefix("twinsieve."): int(value)
        for name, value in headers
        if name in {"twinsieve.cut_from_bytes", "twinsieve.cut_key_from_bytes"}
    }


def check_log(value: bytes) -> None:
    """What must hold for any message of the log."""
    with within(value):
        try:
            records = decode(value)
        except StateError:
            return
    for record in records:
        if isinstance(record, UnreadableRecord):
            assert len(record.problem) < 2_000 + 4 * len(value)
        else:
            check_written(record)


def check_written(record: LogRecord) -> None:
    """What must hold for any record that can be read."""
    written = encode(record)
    (again,) = decode(written)
    assert encode(again) == written
    message = log_message("fingerprints", record)
    assert message.value == written
    source = getattr(record, "source", None)
    if source is not None:
        assert 0 <= source.offset < 1 << 63
        assert 0 <= source.partition < 1 << 31


def check_verdict(value: bytes) -> None:
    """What must hold for any message of `verdicts`."""
    with within(value):
        try:
            verdict, source = read_verdict(value)
        except ValueError:
            pass
        else:
            assert read_verdict(verdict_value(verdict, source)) == (verdict, source)


def check_offset(key: bytes | None, value: bytes | None) -> None:
    """What must hold for any message of `dedup.offsets`."""
    offsets = StepOffsets(Connection("localhost:9"), Topics())
    with within(key, value):
        offsets._take([Record(key, value, ())])
    for step in ("decide", "fingerprint"):
        for partition, offset in offsets.of(step).items():
            assert 0 <= offset < 1 << 63, "a consumer can seek there"
            assert 0 <= partition.partition < 1 << 31


@fuzzed(50)
@given(record=RECORDS)
def test_any_record_is_a_page_or_a_dead_letter(record: Record) -> None:
    """Only RecordError, and whatever the record was, its dead letter fits its topic, twice over."""
    check_page(record.key, record.value, record.headers)


@fuzzed(10)
@given(value=LONG, key=st.none() | LONG.map(lambda data: data[: 2 * MAX_KEY_BYTES]))
def test_any_large_record_is_a_page_or_a_dead_letter(value: bytes, key: bytes | None) -> None:
    """The same up to the limits and beyond."""
    check_page(key, value, ())


@fuzzed(20)
@given(value=FILES)
def test_any_bytes_are_a_value(value: bytes) -> None:
    """Bytes that no producer of pages would write."""
    check_page(None, value, ())


@fuzzed(50)
@given(value=mutated(LOG, PIECES) | altered(LOG) | st.binary())
def test_any_message_of_the_log_is_read_or_refused(value: bytes) -> None:
    """A record, an UnreadableRecord or StateError; a record is written as it was read."""
    check_log(value)
    assert len(value) < EVENT_MESSAGE_BYTES


@fuzzed(20)
@given(value=mutated(VERDICTS, PIECES) | altered(VERDICTS) | altered(STATS))
def test_any_message_is_a_verdict_or_none(value: bytes) -> None:
    """Only ValueError, also for the counts of the service."""
    check_verdict(value)


@fuzzed(20)
@given(key=OFFSET_KEYS, value=mutated(OFFSETS, PIECES) | altered(OFFSETS) | altered(MARKS) | st.none() | st.binary())
def test_any_message_is_an_offset_or_ignored(key: bytes | None, value: bytes | None) -> None:
    """Whatever is in the topic, an offset that a step believes is one that a partition can have."""
    check_offset(key, value)


@fuzzed(10)
@given(
    headers=HEADERS, topic=st.text(max_size=9), partition=st.integers(0, 2**31 - 1), offset=st.integers(0, 2**63 - 1)
)
def test_the_source_of_a_record_that_was_passed_on_is_ours(
    headers: Sequence[Header], topic: str, partition: int, offset: int
) -> None:
    """Headers of ours that a producer sent are replaced."""
    source = Source(topic, partition, offset)
    assert source_in(passed_on(headers, source, 1)) == source
