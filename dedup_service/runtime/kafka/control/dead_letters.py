"""Dead letters of a service as lines of JSON: from `pages.dlq`, and back to `pages`.

A line has the record as its producer sent it, and beside it why it is a dead letter. So a person chooses and corrects
lines with the tools for text. Only what the service would take as a page is published again.
"""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import msgspec

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.size_limits import headers_too_large, key_too_large, value_too_large
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.errors import OptionError
from dedup_service.runtime.kafka.client.log_consumer import PartitionReader
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.topics import Topics


class Base64(msgspec.Struct, frozen=True):
    """Bytes that are not UTF-8."""

    base64: bytes


Content = str | Base64 | None


class LetterLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line. place: in `pages.dlq`, published: in `pages`, as topic/partition/offset; cut: a part is missing."""

    place: str = ""
    at: str = ""
    published: str = ""
    error: str = ""
    cut: bool = False
    key: Content = None
    value: Content
    headers: list[tuple[str, Content]] = []


def dead_letters(connection: Connection, topics: Topics) -> Iterator[LetterLine]:
    """Yield the dead letters that are there now, oldest first.

    Raises OptionError without the topic, UnreachableError, and NotAuthorisedError without *Read* on it.
    """
    with closing(PartitionReader(connection, fetch_bytes=8 << 20, timeout_s=30.0)) as reader:
        partitions = reader.partitions_of(topics.dlq)
        if not partitions:
            raise OptionError(f"there is no topic {topics.dlq}: is --prefix right? `twinsieve topics create` makes it")
        ends = reader.ends(partitions)
        reader.assign({partition: reader.beginnings[partition] for partition in partitions})
        for records in reader.read(ends):
            yield from map(_line, records)


def message_of(line: bytes, topic: str) -> Message:
    """Return the record of a line as a message for `topic`; RecordError if it is no page, or not whole."""
    try:
        letter = msgspec.json.decode(line, type=LetterLine)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordError(f"no line of `dead-letters list --json`: {error}") from None
    if letter.cut:
        raise RecordError(f"only a part of the record is here; {letter.published} has all, while it is kept")
    headers = tuple((name, _bytes(value) or b"") for name, value in letter.headers)
    message = Message(topic, _bytes(letter.value), _bytes(letter.key), headers)
    large = value_too_large(message.value or b"") or key_too_large(message.key) or headers_too_large(headers)
    PageMessage(topic, 0, 0, message.value, large).page(lambda _html, _encoding: Extraction())
    return message


def _line(record: ConsumerRecord) -> LetterLine:
    by_us = [(name, value or b"") for name, value in record.headers if name.startswith("twinsieve.")]
    ours = {name: value.decode("utf-8", "replace") for name, value in by_us}
    return LetterLine(
        place=f"{record.topic}/{record.partition}/{record.offset}",
        at=datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds"),
        published="/".join(ours.get(f"twinsieve.{name}", "?") for name in ("topic", "partition", "offset")),
        error=ours.get("twinsieve.error", ""),
        cut=any(name.startswith("twinsieve.cut_") for name in ours),
        key=_content(record.key),
        value=_content(record.value),
        headers=[(name, _content(value)) for name, value in record.headers if name not in ours],
    )


def _content(value: bytes | None) -> Content:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Base64(value)


def _bytes(content: Content) -> bytes | None:
    return content.base64 if isinstance(content, Base64) else None if content is None else content.encode()
