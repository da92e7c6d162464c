"""Dead letters of a service as lines of JSON: listed from `pages.dlq`, and published to `pages` again.

A line has the record as its producer sent it, and beside it why it is here and where it was published. So a person
chooses and corrects lines with the tools for text, and what is left is published.

Invariant: only what the service would take as a page is published. A letter that has but a part of its record is not.
"""

from collections.abc import Iterable, Iterator
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
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.headers import Headers
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.topics import Topics

_FETCH_BYTES = 8 << 20
_TIMEOUT_S = 30.0
_OURS = "twinsieve."


class Base64(msgspec.Struct, frozen=True):
    """Bytes that are no UTF-8."""

    base64: bytes


Content = str | Base64 | None


class LetterLine(msgspec.Struct, frozen=True, kw_only=True):
    """One dead letter. place: in `pages.dlq`; published: in `pages`; both as topic/partition/offset.

    at: when it was written. error: why it is here. cut: it has only a part of its record. key, value, headers: of the
    record as its producer sent it.
    """

    place: str = ""
    at: str = ""
    published: str = ""
    error: str = ""
    cut: bool = False
    key: Content = None
    value: Content
    headers: list[tuple[str, Content]] = []


decode_line = msgspec.json.Decoder(LetterLine).decode


def dead_letters(connection: Connection, topics: Topics) -> Iterator[LetterLine]:
    """Yield the dead letters that are there now, oldest first in each partition.

    Raises OptionError without the topic, UnreachableError, and NotAuthorisedError without *Read* on it.
    """
    with closing(PartitionReader(connection, fetch_bytes=_FETCH_BYTES, timeout_s=_TIMEOUT_S)) as reader:
        partitions = reader.partitions_of(topics.dlq)
        if not partitions:
            raise OptionError(f"there is no topic {topics.dlq}: is --prefix right? `twinsieve topics create` makes it")
        ends = reader.ends(partitions)
        reader.assign({partition: reader.beginnings[partition] for partition in partitions})
        for records in reader.read(ends):
            yield from map(_line, records)


def publish(connection: Connection, topics: Topics, lines: Iterable[LetterLine]) -> int:
    """Publish records to `pages`, with their keys and headers; return their number.

    Raises as `producers.append`; earlier lines may be published by then. A page that is published twice is `unchanged`.
    """
    messages = [Message(topics.pages, _bytes(line.value), _bytes(line.key), _headers(line)) for line in lines]
    return len(append(connection, topics.pages, messages)) if messages else 0


def refusal(line: LetterLine) -> str | None:
    """Return why the service would refuse the record of a line, or why it is not whole; None for a page."""
    if line.cut:
        return f"only a part of the record is here; the whole one is at {line.published}, while that topic keeps it"
    value = _bytes(line.value)
    too_large = value_too_large(value or b"") or key_too_large(_bytes(line.key)) or headers_too_large(_headers(line))
    try:
        PageMessage("", 0, 0, value, too_large).page(_no_extraction)
    except RecordError as error:
        return str(error)
    return None


def _no_extraction(_html: bytes | str, _encoding: str | None) -> Extraction:
    return Extraction()


def _line(record: ConsumerRecord) -> LetterLine:
    ours = {name[len(_OURS) :]: _text(value) for name, value in record.headers if name.startswith(_OURS)}
    return LetterLine(
        place=f"{record.topic}/{record.partition}/{record.offset}",
        at=datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds"),
        published="/".join(ours.get(name, "?") for name in ("topic", "partition", "offset")),
        error=ours.get("error", ""),
        cut=any(name.startswith("cut_") for name in ours),
        key=_content(record.key),
        value=_content(record.value),
        headers=[(name, _content(value)) for name, value in record.headers if not name.startswith(_OURS)],
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def _content(value: bytes | None) -> Content:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return Base64(value)


def _bytes(content: Content) -> bytes | None:
    return content.base64 if isinstance(content, Base64) else None if content is None else content.encode()


def _headers(line: LetterLine) -> Headers:
    return tuple((name, _bytes(value) or b"") for name, value in line.headers)
