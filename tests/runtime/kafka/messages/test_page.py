"""A message of `pages` is read like a line of a file; anything else is rejected with a reason."""

import pickle
import tracemalloc
from dataclasses import dataclass

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction, extract
from dedup_service.core.page import Page
from dedup_service.core.size_limits import MAX_HEADERS_BYTES, MAX_KEY_BYTES, MAX_NAME_CHARS, MAX_VALUE_BYTES
from dedup_service.runtime.kafka.messages.page import PageMessage, record_size
from dedup_service.runtime.readers.jsonlines import JsonLine

VALUES = [
    b'{"url": "https://a.example/1?utm_source=x", "text": "A text.", "title": "T", "unknown": [1]}',
    b'{"url": "https://a.example/1", "id": "one", "text": "A text.", "keywords": ["a"], "lang": null}',
    b'{"url": "https://a.example/1", "html": "<html><body><p>A paragraph of a page.</p></body></html>"}',
    b'{"url": "https://a.example/1"}',
    b'\xef\xbb\xbf{"url": "urn:x", "text": "A text."}',
]


@dataclass(frozen=True)
class Record:
    """A record as a consumer returns it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    topic: str = "pages"
    partition: int = 3
    offset: int = 41


def extract_html(html: bytes | str, declared_encoding: str | None) -> Extraction:
    """The real extraction, with the signature that records expect."""
    return extract(html, declared_encoding=declared_encoding)


def page_of(value: bytes | None) -> Page:
    """Return the page in a message with this value."""
    return PageMessage("pages", 3, 41, value).page(extract_html)


@pytest.mark.parametrize("value", VALUES)
def test_a_topic_and_a_file_with_the_same_pages_agree(value: bytes) -> None:
    """The same code decodes both."""
    assert page_of(value) == JsonLine(1, value).page(extract_html)


@pytest.mark.parametrize(
    ("number", "text"),
    [(b"7", "7"), (b"0", "0"), (b"-1.5", "-1.5"), (b"123456789012345678901", "123456789012345678901")],
)
def test_a_number_as_id_is_taken_as_text(number: bytes, text: str) -> None:
    """Databases publish numbers as ids; a page with one is a page, as a row of Parquet is."""
    value = b'{"url": "u:1", "text": "A text.", "id": %s}' % number
    assert page_of(value).id == text
    html = b'{"url": "u:1", "html": "<p>A text.", "id": %s}' % number
    assert page_of(html).id == text
    assert PageMessage("pages", 0, 0, value).unread().id == text


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "the value is null"),
        (b"", "not a page in JSON"),
        (b"hello", "not a page in JSON"),
        (b"\xff\xfe", "not a page in JSON"),
        (b'{"text": "no address"}', "url"),
        (b'{"url": 7, "text": "wrong type"}', "url"),
        (b'{"url": " ", "text": "no address"}', "`url` is empty"),
        (b'["https://a.example/"]', "not a page in JSON"),
        (
            b'{"url": "%s", "text": "t"}' % (b"u" * (MAX_NAME_CHARS + 1)),
            r"`url` has 8,193 characters, the limit is 8,192",
        ),
        (b'{"url": "u:1", "id": "%s", "text": "t"}' % (b"i" * (MAX_NAME_CHARS + 1)), r"`id` has 8,193 characters"),
    ],
)
def test_a_rejection_says_why(value: bytes | None, says: str) -> None:
    """The reason is written with the dead letter."""
    with pytest.raises(RecordError, match=says):
        page_of(value)


PAGE = b'{"url": "u:1", "text": "A text."}'
OVERSIZED = [
    (b"", bytes(MAX_VALUE_BYTES + 1), [], "the value has 15,728,641 bytes, the limit is 15,728,640"),
    (bytes(MAX_KEY_BYTES + 1), PAGE, [], "the key has 98,305 bytes, the limit is 98,304"),
    (None, PAGE, [("a", bytes(MAX_HEADERS_BYTES))], "the headers have 524,289 bytes"),
    (None, PAGE, [("a", None)] * 100_000, "it has 100,000 headers, the limit is 256"),
]


@pytest.mark.parametrize(
    ("key", "value", "headers", "says"), OVERSIZED, ids=["value", "key", "headers", "many headers"]
)
def test_an_oversized_record_is_rejected_and_its_bytes_are_let_go(
    key: bytes | None, value: bytes, headers: list[tuple[str, bytes | None]], says: str
) -> None:
    """The reason gives size and limit; what goes to the workers is small, whatever the record is."""
    message = PageMessage.of(Record(key, value, headers))
    assert len(pickle.dumps(message)) < 1000
    with pytest.raises(RecordError, match=says):
        message.page(extract_html)


def test_a_record_within_the_limits_is_read() -> None:
    """Neither key nor headers are."""
    record = Record(bytes(MAX_KEY_BYTES), PAGE, [("a", bytes(MAX_HEADERS_BYTES // 256 - 1))] * 256)
    assert PageMessage.of(record) == PageMessage("pages", 3, 41, PAGE)
    assert PageMessage.of(record).page(extract_html).url == "u:1"


def test_the_size_of_a_record_is_the_memory_that_it_takes() -> None:
    """Keys and headers count, and each header for its objects, of which 100,000 take 15 MB."""
    small, many = Record(b"kk", b"vvv", [("é", b"1"), ("b", None)]), [(f"h{number}", b"1") for number in range(100_000)]
    assert record_size(small) == 2 + 3 + 3 + 1 + 2 * 150
    assert record_size(Record(None, None, [])) == 0
    tracemalloc.start()
    held = [(name[:1] + name[1:], bytes([1, number & 255])) for number, (name, _) in enumerate(many)]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / 2 < record_size(Record(None, None, held)) < 2 * taken


def test_a_message_knows_its_place_and_can_be_pickled() -> None:
    """People look it up by topic, partition and offset; worker processes receive it pickled."""
    message = PageMessage("pages", 3, 41, b"{}")
    assert (message.place, message.number) == ("pages, partition 3, offset 41", 42)
    assert pickle.loads(pickle.dumps(message)) == message
    assert message.identity != PageMessage("pages", 4, 41, b"{}").identity
    assert PageMessage("pages", 3, 41, None).raw == b""
