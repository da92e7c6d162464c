"""Records of the log `fingerprints` as message values, and back, version 3.

    decode(encode(record)) == [record]

except for what the log does not keep of a page: its text, its metadata in clear, and the end of a long title. What
became of input records, pages or not, is written in columns, up to 4,096 together (`page_batch`): `log_messages`
packs them, and `log_parts` reads them without making a value of each. Every other record is a message of its own, in
JSON.

The `…Line` structs are the JSON objects, one for each kind of record. Their fields have the names that are
on the wire (`least_letters`, `most_pages`, `of`), which differ from those of the values in `core`; renaming
one changes the wire format. A field with its default is left out.

Unknown fields are ignored, except in a rule. Another version, an unknown kind or a policy that cannot be read
is refused with StateError, because ignoring it could change every later verdict. Any other message that is no
record is an `UnreadableRecord`: it has no effect, and every process agrees on that, so it stops nobody.
Logs of version 2, which had a message for each page, are read only to be replayed into others (`earlier`).
Cost of a page: see docs/topics.md, "fingerprints".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, groupby
from typing import Any

import msgspec

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import (
    MAX_PLACES,
    BackfillRecord,
    CorrectionRecord,
    ExpiredRecord,
    LayoutRecord,
    LogBase,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    TimeRecord,
    UnreadableRecord,
    UnwrittenRecord,
    sequence_at,
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.record_columns import LogPart, RecordColumns
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.text.encoding import without_surrogates
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.headers import Headers, batch_headers, log_headers
from dedup_service.runtime.kafka.messages.page_batch import (
    MAX_KEYS_BYTES,
    MAX_PROBLEM_CHARS,
    VERSION,
    BatchColumns,
    InputRecord,
    decode_columns,
    encode_batch,
    is_batch,
    size_of,
)

_EARLIER = 2
"""The version whose logs can still be replayed."""

_MAX_BATCH_BYTES = 448 << 10
"""Of a message with many pages: a topic takes twice as much (`EVENT_MESSAGE_BYTES`), and a reader unpacks some of them
at once. Above it a message has one page."""

_END = 1 << 63

MESSAGES_AT_ONCE = 16
"""Messages of the log that are read together: each may have thousands of records, or 448 KiB of them."""

MAX_EXPIRED = 1 << 32
"""Offsets in one record about deleted ones: a replica marks each as seen, in runs."""


class LogLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="kind"):
    """Common fields of every record: its kind (the tag) and the version of its schema."""

    v: int


class PageLine(LogLine, frozen=True, tag="page"):
    """A page, as version 2 wrote it.

    words, body, body_hash, text_hash: 16 hexadecimal digits. evidence, keys: base64. id, canonical_url: null if
    equal to `url`. claimed_url: null if the page names no other address.
    """

    topic: str
    partition: int
    offset: int
    space: str
    url: str
    id: str | None = None
    canonical_url: str | None = None
    title: str = ""
    words: str | None = None
    body: str | None = None
    body_hash: str | None = None
    evidence: bytes = b""
    reason: str | None = None
    text_hash: str | None = None
    keys: bytes = b""
    claimed_url: str | None = None


class RejectedLine(LogLine, frozen=True, tag="rejected"):
    """An input record that is not a page."""

    topic: str
    partition: int
    offset: int
    problem: str


class ExpiredLine(LogLine, frozen=True, tag="expired"):
    """Input records, from `offset` to before `end`, were deleted before they were read."""

    topic: str
    partition: int
    offset: int
    end: int


class UnwrittenLine(LogLine, frozen=True, tag="unwritten"):
    """Pages of the log, by the sequences of their records, were never passed on."""

    sequences: tuple[int, ...]
    reason: str = ""


class TimeLine(LogLine, frozen=True, tag="time"):
    """The time, in minutes since 1970."""

    minute: int


class RetractionLine(LogLine, frozen=True, tag="retraction"):
    """A kept page is removed. url: canonical."""

    url: str
    reason: str = ""


class CorrectionLine(LogLine, frozen=True, tag="correction"):
    """A person's statement that `url` is a duplicate of `of`, or is not. url, of: canonical."""

    url: str
    of: str
    duplicate: bool
    reason: str = ""


class DistanceBoundLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A distance condition of a rule: at most so many differing bits in each channel."""

    words: int | None = None
    body: int | None = None


class MatchRowLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A row of a rule's table; see `core.rules.match_row`."""

    name: str
    jaccard: float
    least_letters: int = 0
    containment: float | None = None
    title: float | None = None
    title_on_host: float | None = None
    sentences: float | None = None
    numbers: float | None = None
    missing_numbers: float | None = None
    swapped_numbers: float | None = None
    figures: float | None = None
    alphabetic: float | None = None
    unspaced: float | None = None
    length_ratio: float | None = None
    metadata: float | None = None
    combined: float | None = None
    words_distance: int | None = None
    body_distance: int | None = None


class GuardsLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bounds beyond which a match is not accepted; see `core.rules.guards`."""

    most_pages: int = 0
    most_hosts: int = 0
    most_titles: int = 0
    jump_percent: int = 0


class RuleLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A match rule, as `MatchRule.to_dict` writes it; strict, since half a rule gives other verdicts."""

    conditions: list[DistanceBoundLine] = []
    combined_mu_thousandths: int | None = None
    keys: bool = False
    verified: list[MatchRowLine] = []
    guards: GuardsLine | None = None


class LayoutLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layout of the index; see `core.rules.layout`."""

    slots: int
    window: int


class FirstLayoutLine(LogLine, frozen=True, tag="layout"):
    """The layout of a log that begins with it; see `LayoutLine`."""

    slots: int
    window: int


class KeepLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bounds of expiry; see `core.rules.keep`."""

    max_pages: int | None = None
    max_age_minutes: int | None = None


class PolicyLine(LogLine, frozen=True, tag="policy"):
    """A policy, in force from this record on. layout: that of the first policy, in every record. keep: null: all.

    lowered: the bounds that a limit on memory has lowered to `keep`; null: it has not. canonical: which page stands for
    a group.
    """

    rule: RuleLine
    action: str
    space: str
    layout: LayoutLine
    initial: bool = False
    log: str | None = None
    group: str | None = None
    pages: str | None = None
    offsets: str | None = None
    begins: tuple[int, ...] | None = None
    replaces: int | None = None
    keep: KeepLine | None = None
    lowered: KeepLine | None = None
    canonical: str = "earliest"


class BaseLine(msgspec.Struct, frozen=True):
    """A base of a log; see `core.log_records.LogBase`."""

    name: str
    log: str
    commit: str
    records: int
    entries: int


class BasedPolicyLine(PolicyLine, frozen=True, kw_only=True, tag="policy with bases"):
    """A policy of a log with bases. An earlier twinsieve does not know the kind, and refuses the log."""

    bases: tuple[BaseLine, ...]


class BackfillLine(LogLine, frozen=True, tag="backfill"):
    """The pages of `topic` and `partition`, which are no topic and partition of Kafka, are those of a file."""

    topic: str
    partition: int
    file: str
    offset: int = 0


AnyLine = (
    PageLine
    | RejectedLine
    | ExpiredLine
    | UnwrittenLine
    | TimeLine
    | RetractionLine
    | CorrectionLine
    | PolicyLine
    | BasedPolicyLine
    | FirstLayoutLine
    | BackfillLine
)


class _Head(msgspec.Struct):
    """What can be read of a record of any version."""

    v: int | None = None
    kind: str | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyLine)


def encode(record: LogRecord) -> bytes:
    """Return the message value of `record` alone. Never raises for a page: lone surrogates become `?`."""
    if isinstance(record, PageRecord):
        return encode_batch([record])
    line = _line(record)
    try:
        return _encoder.encode(line)
    except UnicodeEncodeError:  # lone surrogates: not in JSON from a topic, but possible in a caller's string
        return _encoder.encode(_replace_surrogates(msgspec.to_builtins(line)))


def decode(value: bytes, *, earlier: bool = False) -> Sequence[LogRecord]:
    """Return the records in a message value, one UnreadableRecord for anything that is none.

    earlier: read version 2, too. StateError for a record of another version or of an unknown kind, and for an
    unreadable policy: update twinsieve, or begin a new log.
    """
    read = _read(value, earlier=earlier)
    return read.records() if isinstance(read, RecordColumns) else [read]


def _read(value: bytes, sequence: int = 0, *, earlier: bool = False) -> RecordColumns | LogRecord:
    """Return what a message value has, as `decode`. sequence: of its first record."""
    try:
        if is_batch(value):
            return decode_columns(value, sequence)
        line = _decoder.decode(value)
        if earlier and line.v == _EARLIER:
            return _renumbered(_record(line))
        if line.v == VERSION and not isinstance(line, PageLine):
            return _record(line)
        problem = f"a {line.__struct_config__.tag} of version {line.v}"
    except (ValueError, RecursionError, ConfigurationError) as error:  # ValueError: from msgspec, UTF-8, int(…, 16)
        problem = str(error)
    return _unreadable(value, problem, earlier=earlier)


def numbered(messages: Iterable[ConsumerRecord], *, earlier: bool = False) -> list[tuple[int, LogRecord]]:
    """Return the records of messages of the log in order, each with its sequence; raises as `decode`."""
    return [
        pair
        for message in messages
        for pair in enumerate(decode(message.value or b"", earlier=earlier), sequence_at(message.offset))
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


def _line(record: LogRecord) -> AnyLine:  # noqa: C901, PLR0911 - one return for each kind
    match record:
        case RejectedRecord(source, problem):
            problem = problem[:MAX_PROBLEM_CHARS]
            return RejectedLine(VERSION, source.topic, source.partition, source.offset, problem)
        case ExpiredRecord(source, end):
            return ExpiredLine(VERSION, source.topic, source.partition, source.offset, end)
        case UnwrittenRecord(sequences, reason):
            return UnwrittenLine(VERSION, sequences, reason[:MAX_PROBLEM_CHARS])
        case TimeRecord(minute):
            return TimeLine(VERSION, minute)
        case RetractionRecord(url, reason):
            return RetractionLine(VERSION, url, reason)
        case CorrectionRecord(url, of, duplicate, reason):
            return CorrectionLine(VERSION, url, of, duplicate, reason)
        case PolicyRecord(policy):
            return _policy_line(record, policy)
        case LayoutRecord(layout):
            return FirstLayoutLine(VERSION, layout.slots, layout.window)
        case BackfillRecord(source, name):
            return BackfillLine(VERSION, source.topic, source.partition, name, source.offset)
        case PageRecord() | UnreadableRecord():
            raise ValueError(f"a {type(record).__name__} is never written in JSON")


def _policy_line(record: PolicyRecord, policy: Policy) -> PolicyLine:
    bases = tuple(BaseLine(base.name, base.log, base.commit, base.records, base.entries) for base in policy.bases)
    line = partial(BasedPolicyLine, bases=bases) if bases else PolicyLine
    return line(
        VERSION,
        msgspec.convert(policy.rule.to_dict(), RuleLine),
        policy.action.value,
        policy.space_id,
        msgspec.convert(policy.layout.to_dict(), LayoutLine),
        record.initial,
        record.log,
        record.group,
        record.pages,
        record.offsets,
        record.begins,
        record.replaces,
        _keep_line(policy.keep),
        _keep_line(policy.lowered),
        policy.canonical,
    )


def _keep_line(keep: Keep) -> KeepLine | None:
    return msgspec.convert(keep.to_dict(), KeepLine) if keep else None


def _record(line: AnyLine) -> LogRecord:  # noqa: C901, PLR0911, PLR0912 - one return for each kind
    match line:
        case PageLine():
            return _page_record(line)
        case RejectedLine():
            return RejectedRecord(_source(line), line.problem)
        case ExpiredLine():
            source = _source(line)
            if not source.offset < line.end <= source.offset + MAX_EXPIRED:
                raise ValueError("its end is out of range")
            return ExpiredRecord(source, line.end)
        case UnwrittenLine():
            if not all(0 <= sequence < _END for sequence in line.sequences):
                raise ValueError("its sequences are out of range")
            return UnwrittenRecord(line.sequences, line.reason)
        case TimeLine():
            if not 0 <= line.minute < _END:
                raise ValueError("its minute is out of range")
            return TimeRecord(line.minute)
        case RetractionLine():
            return RetractionRecord(line.url, line.reason)
        case CorrectionLine():
            return CorrectionRecord(line.url, line.of, line.duplicate, line.reason)
        case PolicyLine():
            return _policy_record(line)
        case FirstLayoutLine():
            return LayoutRecord(IndexLayout(slots=line.slots, window=line.window))
        case BackfillLine():
            return BackfillRecord(_source(line), line.file)


def _renumbered(record: LogRecord) -> LogRecord:
    """Return a record of version 2, whose sequences were offsets, as version 3 would name them."""
    if isinstance(record, UnwrittenRecord):
        return replace(record, sequences=tuple(map(sequence_at, record.sequences)))
    if isinstance(record, PolicyRecord) and record.replaces is not None:
        return replace(record, replaces=sequence_at(record.replaces))
    return record


def _policy_record(line: PolicyLine) -> PolicyRecord:
    if not all(0 <= offset < _END for offset in line.begins or ()):
        raise ValueError("its beginnings are out of range")
    rule = MatchRule.from_dict(msgspec.to_builtins(line.rule))
    layout = IndexLayout.from_dict(msgspec.to_builtins(line.layout))
    keep, lowered = (
        Keep.from_dict({} if bounds is None else msgspec.to_builtins(bounds)) for bounds in (line.keep, line.lowered)
    )
    bases = _bases(line.bases) if isinstance(line, BasedPolicyLine) else ()
    policy = Policy(rule, Action(line.action), line.space, layout, keep, lowered, bases, line.canonical)
    return PolicyRecord(
        policy, line.initial, line.log, line.group, line.pages, line.offsets, line.begins, line.replaces
    )


def _bases(lines: Sequence[BaseLine]) -> tuple[LogBase, ...]:
    """Return the bases of a log, which follow one another."""
    if not lines or any(not 0 <= line.records < _END >> 1 for line in lines):
        raise ValueError("its bases are out of range")
    after = [0, *accumulate(line.records for line in lines)]
    return tuple(
        LogBase(line.name, line.log, line.commit, before, line.records, line.entries)
        for line, before in zip(lines, after, strict=False)
    )


def _source(line: PageLine | RejectedLine | ExpiredLine | BackfillLine) -> Source:
    if not (0 <= line.offset < _END and 0 <= line.partition < 1 << 31):
        raise ValueError("its offset or partition is out of range")
    return Source(line.topic, line.partition, line.offset)


def _page_record(line: PageLine) -> PageRecord:
    source = _source(line)
    if len(line.keys) > MAX_KEYS_BYTES:
        raise ValueError("its keys are out of range")
    url = line.url
    page = Page(
        url=url,
        canonical_url=url if line.canonical_url is None else line.canonical_url,
        id=url if line.id is None else line.id,
        title=line.title,
        claimed_url=line.claimed_url,
    )
    fingerprint = Fingerprint(_value(line.words), _value(line.body))
    prepared = PreparedPage(
        page,
        fingerprint,
        _value(line.body_hash),
        line.evidence,
        line.reason,
        _value(line.text_hash),
        line.keys,
    )
    return PageRecord(source, prepared, line.space)


def _value(digits: str | None) -> int | None:
    if digits is None:
        return None
    value = int(digits, 16)
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{digits!r} is no unsigned 64-bit value")
    return value


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replace_surrogates(field) for name, field in value.items()}
    return without_surrogates(value) if isinstance(value, str) else value


def _unreadable(value: bytes, problem: str, *, earlier: bool) -> UnreadableRecord:
    """Return what a message is that cannot be read; StateError if another version of twinsieve wrote it."""
    head = _head(value)
    if head.v == _EARLIER and not earlier:
        raise StateError(
            f"a record of the log has version {head.v}, this twinsieve reads {VERSION}: make a new set of topics and "
            "fill it from this one with `twinsieve topics create --prefix NEW` and `twinsieve replay --to-prefix NEW`"
        )
    if head.v is not None and head.v > VERSION:
        raise StateError(
            f"a record of the log has version {head.v}, this twinsieve reads {VERSION}: "
            "update twinsieve and start again"
        )
    if head.v is not None and head.v < _EARLIER:
        raise StateError(
            f"a record of the log has version {head.v}, this twinsieve reads {VERSION}: start a new log with another "
            "--prefix and publish the pages again"
        )
    kinds = [line.__struct_config__.tag for line in (BatchColumns, *AnyLine.__args__)]
    if head.v is not None and head.kind not in kinds:
        raise StateError(
            f"a record of the log is of kind {head.kind!r}, this twinsieve knows {', '.join(map(str, kinds))}: "
            "update twinsieve and start again"
        )
    if head.kind in {line.__struct_config__.tag for line in (PolicyLine, BasedPolicyLine, FirstLayoutLine)}:
        raise StateError(f"a {head.kind} of the log cannot be read: {problem}; update twinsieve and start again")
    return UnreadableRecord(f"{problem}; it begins with {value[:60]!r}")


def _head(value: bytes) -> _Head:
    try:
        if is_batch(value):
            return msgspec.msgpack.decode(value, type=_Head)
        return msgspec.json.decode(value, type=_Head)
    except (ValueError, RecursionError):
        return _Head()
