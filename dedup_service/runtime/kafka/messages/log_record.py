"""Records of the log `fingerprints` as message values, and back: JSON, version 2.

    decode(encode(record)) == record

except for what the log does not keep of a page: its text, its metadata in clear, and the end of a long
title. A message is well below a kilobyte for an ordinary page, and below 400 KB for any.

The `…Line` structs are the JSON objects, one for each kind of record. Their fields have the names that are
on the wire (`least_letters`, `most_pages`, `of`), which differ from those of the values in `core`; renaming
one changes the wire format. They are short, because a restore reads all of them: a name that equals `url` is
null, and a field with its default is left out.

Unknown fields are ignored, except in a rule. Another version, an unknown kind or a policy that cannot be read
is refused with StateError, because ignoring it could change every later verdict. Any other message that is no
record is an `UnreadableRecord`: it has no effect, and every process agrees on that, so it stops nobody.
Cost of a page: see docs/topics.md, "fingerprints".
"""

from typing import Any

import msgspec

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.evidence.keys import MAX_LEVELS, PARTS
from dedup_service.core.log_records import (
    CorrectionRecord,
    ExpiredRecord,
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
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.text.encoding import without_surrogates
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.headers import Headers, log_headers, page_key

__all__ = [
    "MAX_EXPIRED",
    "MAX_PROBLEM_CHARS",
    "MAX_TITLE_CHARS",
    "VERSION",
    "AnyLine",
    "CorrectionLine",
    "LogLine",
    "PageLine",
    "PolicyLine",
    "RejectedLine",
    "RetractionLine",
    "TimeLine",
    "decode",
    "encode",
    "log_message",
]

VERSION = 2

MAX_TITLE_CHARS = 300
"""Length of the title in the log, for people who read it; no verdict depends on it."""

MAX_PROBLEM_CHARS = 1000
_MAX_KEYS_BYTES = 4 * PARTS * MAX_LEVELS
_END = 1 << 63

MAX_EXPIRED = 1 << 32
"""Offsets in one record about deleted ones: a replica marks each as seen, in runs."""


class LogLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="kind"):
    """Common fields of every record: its kind (the tag) and the version of its schema."""

    v: int


class PageLine(LogLine, frozen=True, tag="page"):
    """A page.

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


class KeepLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bounds of expiry; see `core.rules.keep`."""

    max_pages: int | None = None
    max_age_minutes: int | None = None


class PolicyLine(LogLine, frozen=True, tag="policy"):
    """A policy, in force from this record on. layout: that of the first policy, in every record. keep: null: all."""

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


AnyLine = (
    PageLine | RejectedLine | ExpiredLine | UnwrittenLine | TimeLine | RetractionLine | CorrectionLine | PolicyLine
)


class _Head(msgspec.Struct):
    """What can be read of a record of any version."""

    v: int | None = None
    kind: str | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyLine)


def encode(record: LogRecord) -> bytes:
    """Return the message value of `record`. Never raises for a page: lone surrogates become `?`."""
    line = _line(record)
    try:
        return _encoder.encode(line)
    except UnicodeEncodeError:  # lone surrogates: not in JSON from a topic, but possible in a caller's string
        return _encoder.encode(_replace_surrogates(msgspec.to_builtins(line)))


def decode(value: bytes) -> LogRecord:
    """Return the record in a message value, an UnreadableRecord for anything that is not a record.

    StateError for a record of another version or of an unknown kind, and for an unreadable policy: update
    twinsieve, or begin a new log.
    """
    try:
        line = _decoder.decode(value)
        if line.v == VERSION:
            return _record(line)
        problem = f"version {line.v}"
    except (ValueError, RecursionError, ConfigurationError) as error:  # ValueError: from msgspec, UTF-8, int(…, 16)
        problem = str(error)
    return _unreadable(value, problem)


def log_message(topic: str, record: LogRecord, headers: Headers = ()) -> Message:
    """Return the message that appends `record` to the log `topic`; a page is keyed by its canonical URL.

    headers: added after those of every log record.
    """
    key = page_key(record.prepared.page.canonical_url) if isinstance(record, PageRecord) else None
    return Message(topic, encode(record), key, (*log_headers(record, topic), *headers), partition=0)


def _line(record: LogRecord) -> AnyLine:  # noqa: PLR0911 - one return for each kind
    match record:
        case PageRecord():
            return _page_line(record)
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
        case UnreadableRecord():
            raise ValueError("an unreadable record is never written")


def _policy_line(record: PolicyRecord, policy: Policy) -> PolicyLine:
    return PolicyLine(
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
        msgspec.convert(policy.keep.to_dict(), KeepLine) if policy.keep else None,
    )


def _page_line(record: PageRecord) -> PageLine:
    source, prepared = record.source, record.prepared
    page, fingerprint = prepared.page, prepared.fingerprint
    return PageLine(
        VERSION,
        source.topic,
        source.partition,
        source.offset,
        record.space_id,
        page.url,
        None if page.id == page.url else page.id,
        None if page.canonical_url == page.url else page.canonical_url,
        page.title[:MAX_TITLE_CHARS],
        _digits(fingerprint.words),
        _digits(fingerprint.body),
        _digits(prepared.body_hash),
        prepared.evidence,
        prepared.reason,
        _digits(prepared.text_hash),
        prepared.keys,
        page.claimed_url,
    )


def _record(line: AnyLine) -> LogRecord:  # noqa: C901, PLR0911 - one return for each kind
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


def _policy_record(line: PolicyLine) -> PolicyRecord:
    if not all(0 <= offset < _END for offset in line.begins or ()):
        raise ValueError("its beginnings are out of range")
    rule = MatchRule.from_dict(msgspec.to_builtins(line.rule))
    layout = IndexLayout.from_dict(msgspec.to_builtins(line.layout))
    keep = Keep.from_dict({} if line.keep is None else msgspec.to_builtins(line.keep))
    policy = Policy(rule, Action(line.action), line.space, layout, keep)
    return PolicyRecord(
        policy, line.initial, line.log, line.group, line.pages, line.offsets, line.begins, line.replaces
    )


def _source(line: PageLine | RejectedLine | ExpiredLine) -> Source:
    if not (0 <= line.offset < _END and 0 <= line.partition < 1 << 31):
        raise ValueError("its offset or partition is out of range")
    return Source(line.topic, line.partition, line.offset)


def _page_record(line: PageLine) -> PageRecord:
    source = _source(line)
    if len(line.keys) > _MAX_KEYS_BYTES:
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


def _digits(value: int | None) -> str | None:
    return None if value is None else f"{value:016x}"


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


def _unreadable(value: bytes, problem: str) -> UnreadableRecord:
    """Return what a message is that cannot be read; StateError if another version of twinsieve wrote it."""
    try:
        head = msgspec.json.decode(value, type=_Head)
    except (ValueError, RecursionError):
        head = _Head()
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
    kinds = [line.__struct_config__.tag for line in AnyLine.__args__]
    if head.v == VERSION and head.kind not in kinds:
        raise StateError(
            f"a record of the log is of kind {head.kind!r}, this twinsieve knows {', '.join(map(str, kinds))}: "
            "update twinsieve and start again"
        )
    if head.kind == PolicyLine.__struct_config__.tag:
        raise StateError(f"a policy of the log cannot be read: {problem}; update twinsieve and start again")
    return UnreadableRecord(f"{problem}; it begins with {value[:60]!r}")
