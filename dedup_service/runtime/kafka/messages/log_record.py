"""The JSON objects of the log `fingerprints`, version 1, as typed structs: one for each kind of record.

Short, because a restore reads all of them: a name that equals `url` is null, and what has its default is left out.

A record of the log `fingerprints` as the value of its message, and back.

    decode(encode(record)) == record

but for what the log does not keep of a page: its text, its metadata in clear, and of a long title all but the
beginning. A message is well below a kilobyte for an ordinary page, and below 400 KB for any.

Unknown fields are ignored, but for those of a rule; a newer version or an unknown kind is refused with StateError,
since going on without understanding a record could change every later verdict.
Cost of a page: see docs/topics.md, "fingerprints".
"""

from typing import Any

import msgspec

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.headers import Headers, log_headers, page_key

__all__ = [
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
    "decode",
    "encode",
    "log_message",
]

VERSION = 1


class LogLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="kind"):
    """What every record has: its kind and the version of its schema."""

    v: int


class PageLine(LogLine, frozen=True, tag="page"):
    """A page. words, body, body_hash: 16 hexadecimal digits. evidence: base64. id, canonical_url: null where `url`."""

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


class RejectedLine(LogLine, frozen=True, tag="rejected"):
    """An input record that describes no page."""

    topic: str
    partition: int
    offset: int
    problem: str


class RetractionLine(LogLine, frozen=True, tag="retraction"):
    """A kept page leaves. url: canonical."""

    url: str
    reason: str = ""


class CorrectionLine(LogLine, frozen=True, tag="correction"):
    """A person's judgement. url, of: canonical."""

    url: str
    of: str
    duplicate: bool
    reason: str = ""


class DistanceBoundLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A condition of a rule: bits in each channel."""

    words: int | None = None
    body: int | None = None


class MatchRowLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A row of a rule's table: see `core.rules.match_row`."""

    name: str
    jaccard: float
    least_letters: int = 0
    containment: float | None = None
    title: float | None = None
    sentences: float | None = None
    numbers: float | None = None
    missing_numbers: float | None = None
    length_ratio: float | None = None


class GuardsLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What matches a rule does not believe: see `core.rules.guards`."""

    most_pages: int = 0
    most_hosts: int = 0
    most_titles: int = 0
    jump_percent: int = 0


class RuleLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A match rule, as `MatchRule.to_dict` writes it. Strict: half a rule would give other verdicts."""

    conditions: list[DistanceBoundLine] = []
    combined_mu_thousandths: int | None = None
    keys: bool = False
    verified: list[MatchRowLine] = []
    guards: GuardsLine | None = None


class PolicyLine(LogLine, frozen=True, tag="policy"):
    """A policy that holds from here on."""

    rule: RuleLine
    action: str
    space: str
    initial: bool = False
    log: str | None = None


AnyLine = PageLine | RejectedLine | RetractionLine | CorrectionLine | PolicyLine


MAX_TITLE_CHARS = 300
"""What the log keeps of a title: for people who look at it; no verdict reads it."""

MAX_PROBLEM_CHARS = 1000

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyLine)


class _Head(msgspec.Struct):
    """What can be read of a record whatever its version."""

    v: int | None = None
    kind: str | None = None


def encode(record: LogRecord) -> bytes:
    """Return the value of the message that holds `record`. Raises nothing for any page: lone surrogates become `?`."""
    line = _line(record)
    try:
        return _encoder.encode(line)
    except UnicodeEncodeError:  # lone surrogates, which no JSON from a topic can hold, but a caller's string can
        return _encoder.encode(_without_surrogates(msgspec.to_builtins(line)))


def decode(value: bytes) -> LogRecord:
    """Return the record in the value of a message.

    StateError where it is of a newer version or of an unknown kind (update twinsieve), or no record at all.
    """
    try:
        line = _decoder.decode(value)
        if line.v == VERSION:
            return _record(line)
    except (ValueError, RecursionError, ConfigurationError) as error:  # ValueError: msgspec's, of UTF-8, of int(…, 16)
        raise _unreadable(value, error) from None
    raise _unreadable(value, None)


def log_message(topic: str, record: LogRecord, headers: Headers = ()) -> Message:
    """Return the message that appends `record` to the log `topic`; a page is keyed by its canonical URL.

    headers: added after those of every log record.
    """
    key = page_key(record.prepared.page.canonical_url) if isinstance(record, PageRecord) else None
    return Message(topic, encode(record), key, (*log_headers(record, topic), *headers), partition=0)


def _line(record: LogRecord) -> AnyLine:
    match record:
        case PageRecord():
            return _page_line(record)
        case RejectedRecord(source, problem):
            problem = problem[:MAX_PROBLEM_CHARS]
            return RejectedLine(VERSION, source.topic, source.partition, source.offset, problem)
        case RetractionRecord(url, reason):
            return RetractionLine(VERSION, url, reason)
        case CorrectionRecord(url, of, duplicate, reason):
            return CorrectionLine(VERSION, url, of, duplicate, reason)
        case PolicyRecord(policy, initial, log):
            rule = msgspec.convert(policy.rule.to_dict(), RuleLine)
            return PolicyLine(VERSION, rule, policy.action.value, policy.space_id, initial, log)


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
    )


def _record(line: AnyLine) -> LogRecord:
    match line:
        case PageLine():
            return _page_record(line)
        case RejectedLine():
            return RejectedRecord(Source(line.topic, line.partition, line.offset), line.problem)
        case RetractionLine():
            return RetractionRecord(line.url, line.reason)
        case CorrectionLine():
            return CorrectionRecord(line.url, line.of, line.duplicate, line.reason)
        case PolicyLine():
            rule = MatchRule.from_dict(msgspec.to_builtins(line.rule))
            return PolicyRecord(Policy(rule, Action(line.action), line.space), line.initial, line.log)


def _page_record(line: PageLine) -> PageRecord:
    url = line.url
    page = Page(
        url=url,
        canonical_url=url if line.canonical_url is None else line.canonical_url,
        id=url if line.id is None else line.id,
        title=line.title,
    )
    fingerprint = Fingerprint(_value(line.words), _value(line.body))
    prepared = PreparedPage(page, fingerprint, _value(line.body_hash), line.evidence, line.reason)
    return PageRecord(Source(line.topic, line.partition, line.offset), prepared, line.space)


def _digits(value: int | None) -> str | None:
    return None if value is None else f"{value:016x}"


def _value(digits: str | None) -> int | None:
    return None if digits is None else int(digits, 16)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_surrogates(field) for name, field in value.items()}
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _unreadable(value: bytes, error: Exception | None) -> StateError:
    """Say why a record cannot be read: it is newer than this program, or it is none."""
    try:
        head = msgspec.json.decode(value, type=_Head)
    except ValueError:
        head = _Head()
    if head.v is not None and head.v > VERSION:
        return StateError(
            f"a record of the log has version {head.v}, this one reads {VERSION}: update twinsieve and start again"
        )
    kinds = [line.__struct_config__.tag for line in AnyLine.__args__]
    if head.v == VERSION and head.kind not in kinds:
        return StateError(
            f"a record of the log is of kind {head.kind!r}, this one knows {', '.join(map(str, kinds))}: "
            "update twinsieve and start again"
        )
    return StateError(
        f"a record of the log cannot be read ({error or 'it has no version'}), it begins with {value[:60]!r}: "
        "either a newer twinsieve wrote it, then update this one, or something else wrote to this topic, then keep it "
        "out and begin a new log with another --prefix"
    )
