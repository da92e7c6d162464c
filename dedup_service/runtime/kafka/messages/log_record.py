"""Records of the log `fingerprints` as message values, and back, version 3.

    decode(encode(record)) == [record]

except for what the log does not keep of a page: its text, its metadata in clear, and the end of a long title. What
became of input records, pages or not, is written in columns, up to 4,096 together (`page_batch`): `log_messages`
packs them, and `log_parts` reads them without making a value of each. Every other record is a message of its own, in
JSON.

Such a message has the fields of the value in `core.log_records`, with `kind` and `v`; renaming a field changes the wire
format. Unknown fields are ignored, except in a policy, since half a rule gives other verdicts. Another version, an
unknown kind or a policy that cannot be read is refused with StateError, because ignoring it could change every later
verdict. Any other message that is no record is an `UnreadableRecord`: it has no effect, and every process agrees on
that, so it stops nobody.
Cost of a page: see docs/topics.md, "fingerprints".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import msgspec

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import (
    MAX_PLACES,
    BackfillRecord,
    CorrectionRecord,
    ExpiredRecord,
    LayoutRecord,
    LogRecord,
    PageRecord,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    TimeRecord,
    UnreadableRecord,
    UnwrittenRecord,
    sequence_at,
)
from dedup_service.core.record_columns import LogPart, RecordColumns
from dedup_service.core.text.encoding import without_surrogates
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.headers import Headers, batch_headers, log_headers
from dedup_service.runtime.kafka.messages.page_batch import (
    MAX_PROBLEM_CHARS,
    VERSION,
    InputRecord,
    decode_columns,
    encode_batch,
    is_batch,
    size_of,
)

_MAX_BATCH_BYTES = 448 << 10
"""Of a message with many pages: a topic takes twice as much (`EVENT_MESSAGE_BYTES`), and a reader unpacks some of them
at once. Above it a message has one page."""

_END = 1 << 63

MESSAGES_AT_ONCE = 16
"""Messages of the log that are read together: each may have thousands of records, or 448 KiB of them."""

MAX_EXPIRED = 1 << 32
"""Offsets in one record about deleted ones: a replica marks each as seen, in runs."""


_KINDS: dict[str, type[LogRecord]] = {
    "rejected": RejectedRecord,
    "expired": ExpiredRecord,
    "unwritten": UnwrittenRecord,
    "time": TimeRecord,
    "retraction": RetractionRecord,
    "correction": CorrectionRecord,
    "policy": PolicyRecord,
    "layout": LayoutRecord,
    "backfill": BackfillRecord,
}
_KIND_OF = {record: kind for kind, record in _KINDS.items()}
_STRICT = ("policy", "layout")
"""Kinds without which no verdict can be given; their field of the same name is read whole or not at all."""


class _Head(msgspec.Struct):
    """What can be read of a record of any version."""

    v: int | None = None
    kind: str | None = None


def encode(record: LogRecord) -> bytes:
    """Return the message value of `record` alone. Never raises for a page: lone surrogates become `?`."""
    if isinstance(record, PageRecord):
        return encode_batch([record])
    if isinstance(record, RejectedRecord):
        record = replace(record, problem=record.problem[:MAX_PROBLEM_CHARS])
    elif isinstance(record, UnwrittenRecord):
        record = replace(record, reason=record.reason[:MAX_PROBLEM_CHARS])
    fields = {"kind": _KIND_OF[type(record)], "v": VERSION, **msgspec.to_builtins(record)}
    try:
        return msgspec.json.encode(fields)
    except UnicodeEncodeError:  # lone surrogates: not in JSON from a topic, but possible in a caller's string
        return msgspec.json.encode(_replace_surrogates(fields))


def decode(value: bytes) -> Sequence[LogRecord]:
    """Return the records in a message value, one UnreadableRecord for anything that is none.

    StateError for a record of another version or of an unknown kind, and for an unreadable policy: update twinsieve, or
    begin a new log.
    """
    read = _read(value)
    return read.records() if isinstance(read, RecordColumns) else [read]


def _read(value: bytes, sequence: int = 0) -> RecordColumns | LogRecord:
    """Return what a message value has, as `decode`. sequence: of its first record."""
    try:
        if is_batch(value):
            return decode_columns(value, sequence)
        fields = msgspec.json.decode(value, type=dict[str, Any])
        if fields.get("v") == VERSION:
            return _record(fields)
        problem = f"its version is {fields.get('v')}"
    except (ValueError, RecursionError, ConfigurationError) as error:  # ValueError: from msgspec and UTF-8
        problem = str(error)
    return _unreadable(value, problem)


def numbered(messages: Iterable[ConsumerRecord]) -> list[tuple[int, LogRecord]]:
    """Return the records of messages of the log in order, each with its sequence; raises as `decode`."""
    return [
        pair for message in messages for pair in enumerate(decode(message.value or b""), sequence_at(message.offset))
    ]


def log_parts(messages: Iterable[ConsumerRecord]) -> list[LogPart]:
    """Return the records of messages of the log in order, those of batches in columns; raises as `decode`."""
    parts: list[LogPart] = []
    for kind, run in groupby(map(_part, messages), key=_columns_of):
        if kind is None:
            parts += run
        else:
            parts.append(RecordColumns.joined([part for part in run if isinstance(part, RecordColumns)]))
    return parts


def _part(message: ConsumerRecord) -> LogPart:
    sequence = sequence_at(message.offset)
    read = _read(message.value or b"", sequence)
    return read if isinstance(read, RecordColumns) else (sequence, read)


def _columns_of(part: LogPart) -> tuple[str, str] | None:
    """Return what columns that can be joined share, topic and space; None for a single record."""
    return (part.topic, part.space_id) if isinstance(part, RecordColumns) else None


def records_in(parts: Iterable[LogPart]) -> int:
    """Return how many records parts of the log have."""
    return sum(len(part) if isinstance(part, RecordColumns) else 1 for part in parts)


def log_message(topic: str, record: LogRecord, headers: Headers = ()) -> Message:
    """Return the message that appends `record` alone to the log `topic`.

    headers: added after those of every log record.
    """
    if isinstance(record, PageRecord):
        return _batch_message(topic, [record], headers)
    return Message(topic, encode(record), None, (*log_headers(record, topic), *headers), partition=0)


def log_messages(topic: str, records: Iterable[LogRecord]) -> list[tuple[Message, int]]:
    """Return the messages that append `records` to the log `topic` in their order, each with how many it has."""
    messages: list[tuple[Message, int]] = []
    for kind, run in groupby(records, key=_batch_of):
        if kind is None:
            messages += [(log_message(topic, record), 1) for record in run]
        else:
            messages += [(_batch_message(topic, part), len(part)) for part in _parts(run)]
    return messages


def _batch_of(record: LogRecord) -> str | None:
    """Return what the records of a batch share, their topic; None for one that is a message of its own."""
    return record.source.topic if isinstance(record, PageRecord | RejectedRecord) else None


def _parts(run: Iterable[LogRecord]) -> Iterator[list[InputRecord]]:
    """Yield the records of batches: of one space, and not too large."""
    part: list[InputRecord] = []
    size = 0
    space: str | None = None
    for record in run:
        assert isinstance(record, PageRecord | RejectedRecord)
        own, own_space = size_of(record), record.space_id if isinstance(record, PageRecord) else space
        other_space = space is not None and own_space != space
        if part and (len(part) == MAX_PLACES or size + own > _MAX_BATCH_BYTES or other_space):
            yield part
            part, size = [], 0
        part.append(record)
        size, space = size + own, own_space
    yield part


def _batch_message(topic: str, records: Sequence[InputRecord], headers: Headers = ()) -> Message:
    return Message(topic, encode_batch(records), None, (*batch_headers(records, topic), *headers), partition=0)


def _record(fields: dict[str, Any]) -> LogRecord:
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"its kind is {kind!r}")
    record: LogRecord = msgspec.convert(fields, _KINDS[kind])
    if kind in _STRICT and (unknown := [*_unknown(fields[kind], msgspec.to_builtins(record)[kind])]):
        raise ValueError(f"it has {', '.join(unknown)}, which this twinsieve does not know")
    if not all(number in allowed for number, allowed in _numbers(record)):
        raise ValueError("a number is out of range")
    return record


def _unknown(value: Any, known: Any) -> Iterator[str]:
    """Yield the keys inside a value that are not in the same value as it was understood."""
    if isinstance(value, dict):
        yield from value.keys() - known.keys()
        pairs = [(value[name], known[name]) for name in value.keys() & known.keys()]
    else:
        pairs = [*zip(value, known, strict=True)] if isinstance(value, list) else []
    for pair in pairs:
        yield from _unknown(*pair)


def _numbers(record: LogRecord) -> Iterator[tuple[int, range]]:
    """Yield the numbers of a record, each with those that it may be."""
    offsets = range(_END)
    match record:
        case RejectedRecord(source) | ExpiredRecord(source) | BackfillRecord(source):
            yield source.offset, offsets
            yield source.partition, range(1 << 31)
    match record:
        case ExpiredRecord(source, end):
            yield end, range(source.offset + 1, source.offset + MAX_EXPIRED + 1)
        case UnwrittenRecord(sequences):
            yield from ((sequence, offsets) for sequence in sequences)
        case TimeRecord(minute):
            yield minute, offsets
        case PolicyRecord(policy, begins=begins):
            yield from ((offset, offsets) for offset in begins or ())
            after = 0
            for base in policy.bases:  # they follow one another
                yield base.after, range(after, after + 1)
                yield base.records, range(_END >> 1)
                after += base.records


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replace_surrogates(field) for name, field in value.items()}
    return without_surrogates(value) if isinstance(value, str) else value


def _unreadable(value: bytes, problem: str) -> UnreadableRecord:
    """Return what a message is that cannot be read; StateError if another version of twinsieve wrote it."""
    head = _head(value)
    if head.v is not None and head.v > VERSION:
        raise StateError(
            f"a record of the log has version {head.v}, this twinsieve reads {VERSION}: "
            "update twinsieve and start again"
        )
    if head.v is not None and head.v < VERSION:
        raise StateError(
            f"a record of the log has version {head.v}, this twinsieve reads {VERSION}: start a new log with another "
            "--prefix and publish the pages again"
        )
    kinds = ["pages", *_KINDS]
    if head.v is not None and head.kind not in kinds:
        raise StateError(
            f"a record of the log is of kind {head.kind!r}, this twinsieve knows {', '.join(kinds)}: "
            "update twinsieve and start again"
        )
    if head.kind in _STRICT:
        raise StateError(f"a {head.kind} of the log cannot be read: {problem}; update twinsieve and start again")
    return UnreadableRecord(f"{problem}; it begins with {value[:60]!r}")


def _head(value: bytes) -> _Head:
    try:
        if is_batch(value):
            return msgspec.msgpack.decode(value, type=_Head)
        return msgspec.json.decode(value, type=_Head)
    except (ValueError, RecursionError):
        return _Head()
