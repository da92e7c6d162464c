"""Keys and headers of messages.

Keys: pages and verdicts are keyed by the canonical URL, so the visits of one page stay in one partition, in
order.

Headers of our own messages: CloudEvents 1.0 in binary mode (headers `ce_…`, value = data). `ce_type` names
schema and version, `ce_source` the topic that the message was written to. `ce_id` is made from what the
message is about, so the same event has the same id whichever process writes it. There is no `ce_time`: a
verdict is a function of the log, which has no clock, and every Kafka record has a timestamp anyway.

Headers of records that are passed on, to `pages.unique`, `pages.duplicate` or `pages.dlq`: such a record
keeps its value, its key and the headers of its producer, CloudEvents ones included; ours are added under
their own names, `twinsieve.…`. A header that already has such a name, as on a record that passed through
twinsieve before, is replaced.

Source: CloudEvents, "Kafka Protocol Binding" 1.0.2, section 3.2; dead letters after Kafka Connect's
`__connect.errors.…` (KIP-298).
"""

import uuid
from collections.abc import Iterable, Sequence

from dedup_service.core.log_records import ExpiredRecord, LogRecord, PageRecord, RejectedRecord, Source
from dedup_service.core.size_limits import UNREADABLE_HEADER, Header

PAGE_TYPE = "twinsieve.page.v1"
LOG_TYPE = "twinsieve.log.v1"
BATCH_TYPE = "twinsieve.log.pages.v1"
VERDICT_TYPE = "twinsieve.verdict.v1"
STATS_TYPE = "twinsieve.stats.v1"
OFFSET_TYPE = "twinsieve.offset.v1"
CANONICAL_TYPE = "twinsieve.canonical.v1"

Headers = tuple[tuple[str, bytes], ...]
"""Names and values, in order; a name may be repeated."""

STATS_KEY = b"stats"
"""One key for all stats: they stay in one partition, in order."""


def page_key(canonical_url: str) -> bytes:
    """Return the key of a page and of its verdict.

    >>> page_key("https://news.example/a?b=1")
    b'https://news.example/a?b=1'
    """
    return canonical_url.encode("utf-8", "replace")


def event_headers(event_type: str, topic: str, event_id: str, content_type: bytes = b"application/json") -> Headers:
    """Return the CloudEvents headers of a message written to `topic`."""
    return (
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode("utf-8", "replace")),
        ("ce_source", f"/twinsieve/{topic}".encode()),
        ("ce_type", event_type.encode()),
        ("content-type", content_type),
    )


def page_headers(topic: str, event_id: str) -> Headers:
    """Return the headers for a producer of pages; `event_id` identifies one fetch of one page."""
    return event_headers(PAGE_TYPE, topic, event_id)


def log_headers(record: LogRecord, topic: str) -> Headers:
    """Return the headers of a record of the log; others (time, policy, retraction …) get a random id."""
    if isinstance(record, RejectedRecord | ExpiredRecord):
        return event_headers(LOG_TYPE, topic, _event_id(record.source))
    return event_headers(LOG_TYPE, topic, uuid.uuid4().hex)


def batch_headers(records: Sequence[PageRecord | RejectedRecord], topic: str) -> Headers:
    """Return the headers of a message of the log with many records; its id is the place of the first, and the number.

    A batch that is appended again may be cut elsewhere, and then is another event.
    """
    event_id = f"{_event_id(records[0].source)}+{len(records)}"
    return event_headers(BATCH_TYPE, topic, event_id, b"application/msgpack")


def verdict_headers(source: Source, topic: str) -> Headers:
    """Return the headers of the verdict on the record at `source`."""
    return event_headers(VERDICT_TYPE, topic, _event_id(source))


def stats_headers(sequence: int, topic: str) -> Headers:
    """Return the headers of the stats up to `sequence`."""
    return event_headers(STATS_TYPE, topic, str(sequence))


def offset_headers(event_id: str, topic: str) -> Headers:
    """Return the headers of an offset of a step; see `state.step_offsets`."""
    return event_headers(OFFSET_TYPE, topic, event_id)


def passed_on(
    headers: Iterable[Header],
    source: Source,
    sequence: int,
    *,
    verdict: str | None = None,
    original_url: str | None = None,
    error: str | None = None,
    cut_from_bytes: int | None = None,
    cut_key_from_bytes: int | None = None,
    cut_headers_from_bytes: int | None = None,
) -> Headers:
    """Return the `headers` of the record at `source`, followed by ours, each of which occurs once.

    sequence: of its record in the log. verdict, original_url: of a page. error: why a record was rejected.
    cut_from_bytes, cut_key_from_bytes, cut_headers_from_bytes: size of its value, its key or its headers, if only
    a part of them is passed on.
    A null header becomes an empty one: kafka-python reads nulls and cannot write them.
    """
    ours = {
        "twinsieve.verdict": verdict,
        "twinsieve.error": error,
        "twinsieve.duplicate_of_url": original_url,
        "twinsieve.cut_from_bytes": _digits(cut_from_bytes),
        "twinsieve.cut_key_from_bytes": _digits(cut_key_from_bytes),
        "twinsieve.cut_headers_from_bytes": _digits(cut_headers_from_bytes),
        UNREADABLE_HEADER: None,
        "twinsieve.sequence": str(sequence),
        "twinsieve.topic": source.topic,
        "twinsieve.partition": str(source.partition),
        "twinsieve.offset": str(source.offset),
    }
    theirs = [(name, value or b"") for name, value in headers if name not in ours]
    added = [(name, text.encode("utf-8", "replace")) for name, text in ours.items() if text is not None]
    return (*theirs, *added)


def _digits(size: int | None) -> str | None:
    return None if size is None else str(size)


def _event_id(source: Source) -> str:
    return f"{source.topic}/{source.partition}/{source.offset}"
