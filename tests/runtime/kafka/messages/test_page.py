"""A message of `pages` is read like a line of a file; anything else is rejected with a reason."""

import pickle

import pytest

from dedup_service.core import size_limits
from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction, extract
from dedup_service.core.page import Page
from dedup_service.core.size_limits import MAX_NAME_CHARS
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.readers.jsonlines import JsonLine

VALUES = [
    b'{"url": "https://a.example/1?utm_source=x", "text": "A text.", "title": "T", "unknown": [1]}',
    b'{"url": "https://a.example/1", "id": "one", "text": "A text.", "keywords": ["a"], "lang": null}',
    b'{"url": "https://a.example/1", "html": "<html><body><p>A paragraph of a page.</p></body></html>"}',
    b'{"url": "https://a.example/1"}',
    b'\xef\xbb\xbf{"url": "urn:x", "text": "A text."}',
]


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


def test_an_oversized_value_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason gives its size and the limit."""
    monkeypatch.setattr(size_limits, "MAX_VALUE_BYTES", 20)
    with pytest.raises(RecordError, match="30 bytes, the limit is 20"):
        page_of(b'{"url": "u:1", "text": "abcd"}')


def test_a_message_knows_its_place_and_can_be_pickled() -> None:
    """People look it up by topic, partition and offset; worker processes receive it pickled."""
    message = PageMessage("pages", 3, 41, b"{}")
    assert (message.place, message.number) == ("pages, partition 3, offset 41", 42)
    assert pickle.loads(pickle.dumps(message)) == message
    assert message.identity != PageMessage("pages", 4, 41, b"{}").identity
    assert PageMessage("pages", 3, 41, None).raw == b""
