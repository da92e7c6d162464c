"""Records of the log are read as they were written, by this version and, where that is safe, by others."""

import re
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dedup_service.core.decision.bases import BasedState
from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.log_records import (
    CorrectionRecord,
    ExpiredRecord,
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
    first_offset,
    sequence_at,
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import parse_profile, rule_for
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.log_record import (
    MAX_EXPIRED,
    decode,
    encode,
    log_messages,
    numbered,
)
from dedup_service.runtime.kafka.messages.page_batch import (
    MAX_PROBLEM_CHARS,
    MAX_TITLE_CHARS,
    encode_batch,
)
from tests.page_names import NamesInMemory

texts = st.text(max_size=50)  # hypothesis leaves lone surrogates out, as UTF-8 does
values = st.none() | st.integers(0, 2**64 - 1)
sources = st.builds(
    Source, st.sampled_from(["pages", "de.pages"]), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
)
pages = st.builds(
    Page,
    url=texts,
    canonical_url=texts,
    id=texts,
    title=st.text(max_size=MAX_TITLE_CHARS),
    claimed_url=st.none() | texts,
    date=st.none() | st.dates(date(1600, 1, 1), date(2199, 12, 31)).map(date.isoformat),
    text_percent=st.none() | st.integers(0, 100),
)
prepared = st.builds(
    PreparedPage,
    pages,
    st.builds(Fingerprint, values, values),
    values,
    st.binary(max_size=200),
    st.none() | texts,
    values,
    st.binary(max_size=256),
)
bounds = st.none() | st.integers(0, 64)
rules = st.builds(
    MatchRule,
    st.lists(st.builds(DistanceBound, st.integers(0, 7), bounds), min_size=1, max_size=3).map(tuple),
    st.none() | st.builds(Combined, st.integers(1, 1000)),
)
layouts = st.builds(IndexLayout, slots=st.sampled_from([1, 2, 8, 64]), window=st.integers(1, 1 << 20))
pages_or_minutes = st.none() | st.integers(1, 1 << 40)
keeps = st.builds(Keep, max_pages=pages_or_minutes, max_age_minutes=pages_or_minutes)


def following(bases: list[LogBase]) -> tuple[LogBase, ...]:
    """Return bases that follow one another."""
    starts = accumulate((base.records for base in bases), initial=0)
    return tuple(replace(base, after=after) for base, after in zip(bases, starts, strict=False))


base_lists = st.lists(
    st.builds(LogBase, texts, texts, texts, st.just(0), st.integers(0, 1 << 60), st.integers(0, 1 << 40)), max_size=2
).map(following)
policies = st.builds(Policy, rules, st.sampled_from(Action), texts, layouts, keeps, keeps, base_lists, texts)
records: st.SearchStrategy[LogRecord] = st.one_of(
    st.builds(PageRecord, sources, prepared, texts),
    st.builds(RejectedRecord, sources, st.text(max_size=MAX_PROBLEM_CHARS)),
    st.builds(RetractionRecord, texts, texts),
    st.builds(CorrectionRecord, texts, texts, st.booleans(), texts),
    st.builds(
        PolicyRecord,
        policies,
        st.booleans(),
        st.none() | texts,
        st.none() | texts,
        st.none() | texts,
        st.none() | texts,
        st.none() | st.lists(st.integers(0, 2**63 - 1), max_size=8).map(tuple),
        st.none() | st.integers(0, 2**63 - 1),
    ),
    st.builds(lambda source, count: ExpiredRecord(source, source.offset + count), sources, st.integers(1, MAX_EXPIRED)),
    st.builds(UnwrittenRecord, st.lists(st.integers(0, 2**63 - 1)).map(tuple), texts),
)


@dataclass(frozen=True)
class Stored:
    """A message as a reader of the log returns it."""

    offset: int
    value: bytes | None


PAGE = PageRecord(
    Source("pages", 3, 42),
    PreparedPage(
        Page(url="https://a.example/1", canonical_url="https://a.example/1", id="https://a.example/1", title="台风"),
        Fingerprint(words=5, body=2**64 - 1),
        body_hash=0,
        evidence=b"S12345678",
        text_hash=1,
        keys=b"12",
    ),
    "space-1",
)


@given(records)
def test_a_record_is_read_as_it_was_written(record: LogRecord) -> None:
    """It is, for any strings and numbers."""
    assert decode(encode(record)) == [record]


@given(records)
def test_fields_of_a_later_writer_are_ignored(record: LogRecord) -> None:
    """A field may be added to version 3 if no verdict depends on it."""
    codec = msgspec.msgpack if isinstance(record, PageRecord) else msgspec.json
    fields = codec.decode(encode(record)) | {"added_later": {"a": [1, None]}}
    assert decode(codec.encode(fields)) == [record]


def test_the_format_of_version_3_is_fixed() -> None:
    """A log is kept indefinitely, so old records stay readable; every process writes the same bytes."""
    rejected = RejectedRecord(Source("pages", 3, 43), "not JSON")
    columns = {
        "kind": "pages",
        "v": 3,
        "topic": "pages",
        "space": "space-1",
        "partitions": b"\3\0\0\0\3\0\0\0",
        "offsets": b"*\0\0\0\0\0\0\0+\0\0\0\0\0\0\0",
        "present": b"\x0f\x10",
        "words": b"\5" + bytes(15),
        "bodies": b"\xff" * 8 + bytes(8),
        "body_hashes": bytes(16),
        "text_hashes": b"\1" + bytes(15),
        "urls": ["https://a.example/1", ""],
        "ids": [None, None],
        "canonical_urls": [None, None],
        "claimed_urls": [None, None],
        "titles": ["台风", ""],
        "reasons": [None, "not JSON"],
        "evidence": b"S12345678",
        "evidence_ends": b"\x09\0\0\0\x09\0\0\0",
        "keys": b"12",
        "keys_ends": b"\2\0\0\0\2\0\0\0",
    }
    assert encode_batch([PAGE, rejected]) == msgspec.msgpack.encode(columns)
    assert decode(msgspec.msgpack.encode(columns)) == [PAGE, rejected]


@pytest.mark.parametrize("change", [(b'"records":70', b'"records":-1'), (b'"after":70', b'"after":71')])
def test_bases_that_do_not_follow_one_another_are_refused(change: tuple[bytes, bytes]) -> None:
    """Every sequence of the log would be another."""
    bases = LogBase("corpus", "j-1", "5f", 0, 70, 60), LogBase("more", "j-2", "", 70, 0, 0)
    policy = Policy(rule_for("body"), Action.FLAG, "space-1", bases=bases)
    value = encode(PolicyRecord(policy, initial=True, log="5f0e"))
    assert (policy.based_on, first_offset(policy.based_on)) == (70, 1)
    with pytest.raises(StateError, match="a policy of the log cannot be read: a number is out of range"):
        decode(value.replace(*change))


def test_a_policy_with_other_bases_is_void() -> None:
    """Every sequence, ordinal and cell behind the first policy depends on its bases."""
    one, other = LogBase("corpus", "j-1", "5f", 0, 70, 60), LogBase("corpus", "j-1", "77", 0, 71, 61)
    policy = Policy(rule_for("body"), Action.FLAG, "space-1", bases=(one,))
    replica = Replica(NamesInMemory(), bases=lambda _log, _policy: BasedState())
    replica.apply(sequence_at(1), PolicyRecord(policy, initial=True, log="l"))
    for bases in ((other,), ()):
        replica.apply(sequence_at(2), PolicyRecord(replace(policy, bases=bases, action=Action.DROP)))
    assert (replica.policy, replica.counts["policy_void"]) == (policy, 2)
    replica.apply(sequence_at(3), PolicyRecord(replace(policy, action=Action.DROP)))
    assert replica.policy == replace(policy, action=Action.DROP)


def test_a_replica_without_the_bases_of_its_log_decides_nothing() -> None:
    """It would call pages unique that a base has."""
    policy = Policy(rule_for("body"), Action.FLAG, "space-1", bases=(LogBase("corpus", "j-1", "5f", 0, 70, 60),))
    replica = Replica(NamesInMemory())
    with pytest.raises(StateError, match="begun with the bases corpus"):
        replica.apply(0, PolicyRecord(policy, initial=True, log="l"))
    assert replica.policy is None


@given(st.lists(records, max_size=30), st.integers(0, 2**40))
@example(
    [RejectedRecord(Source("pages", 3, 43), "not JSON"), replace(PAGE, space_id=""), replace(PAGE, space_id="0")], 0
)
def test_records_come_back_from_their_messages_in_order(some: list[LogRecord], offset: int) -> None:
    """However many share a message; sequences rise, and name the message and the place in it."""
    messages = log_messages("fingerprints", some)
    stored = [Stored(offset + 2 * number, message.value) for number, (message, _) in enumerate(messages)]
    read = numbered(stored)
    assert [record for _, record in read] == some
    assert [sequence for sequence, _ in read] == [
        sequence_at(offset + 2 * number, place) for number, (_, count) in enumerate(messages) for place in range(count)
    ]


def test_pages_and_rejected_records_share_a_message() -> None:
    """Up to 4,096 of one topic and space, and 448 KiB; another record stands alone, at its place between them."""
    rejected = RejectedRecord(Source("pages", 3, 43), "not JSON")
    other_space, other_topic = replace(PAGE, space_id="2"), replace(PAGE, source=Source("de.pages", 0, 1))
    large = replace(PAGE, prepared=replace(PAGE.prepared, evidence=bytes(100 << 10)))
    some: list[LogRecord] = [rejected, PAGE, rejected, TimeRecord(5), PAGE, rejected, other_space, other_topic]
    assert [count for _, count in log_messages("fingerprints", [])] == []
    assert [count for _, count in log_messages("fingerprints", some)] == [3, 1, 2, 1, 1]
    assert [count for _, count in log_messages("fingerprints", [rejected] * 5000)] == [4096, 904]
    messages = log_messages("fingerprints", [large] * 9)
    assert [count for _, count in messages] == [4, 4, 1]
    assert all(len(message.value or b"") <= 448 << 10 for message, _ in messages)
    with pytest.raises(ValueError, match="1 to 4,096 records, not 4,097"):
        encode_batch([rejected] * 4097)


def published(date: str | None, text_percent: int | None = None) -> PageRecord:
    """A page with a date and a share of main text."""
    page = replace(PAGE.prepared.page, date=date, text_percent=text_percent)
    return replace(PAGE, prepared=replace(PAGE.prepared, page=page))


DATED = published("2024-03-05", 62)
BATCH: dict[str, Any] = msgspec.msgpack.decode(encode_batch([DATED, PAGE]))
"""The columns of a batch."""


@pytest.mark.parametrize(
    "change",
    [
        {"urls": ["u"]},
        {"offsets": b"\0" * 8},
        {"offsets": b"\xff" * 16},
        {"partitions": b"\xff" * 8},
        {"offsets": b"\0" * 15},
        {"present": b""},
        {"present": b"\0" * 4097},
        {"evidence": b"S"},
        {"evidence_ends": b"\x12\0\0\0\x09\0\0\0"},
        {"evidence_ends": b"\x20\0\0\0\x12\0\0\0"},
        {"days": b"\0" * 4},
        {"days": b"\0" * 7},
        {"days": 5},
        {"text_percents": b"\0"},
        {"text_percents": [1, 2]},
        {"keys": b"1" * 4000, "keys_ends": b"\2\0\0\0\xa0\x0f\0\0"},
        {"titles": ["a", 5]},
        {"topic": None},
    ],
    ids=str,
)
def test_a_batch_that_does_not_fit_together_has_no_effect(change: dict[str, Any]) -> None:
    """All of it is one unreadable record: half of a batch would leave its pages without a verdict, unseen."""
    value = msgspec.msgpack.encode(BATCH | change)
    assert list(map(type, decode(value))) == [UnreadableRecord]


@given(st.binary(max_size=300), st.integers(0, 600))
def test_no_bytes_raise_another_error_than_they_should(noise: bytes, at: int) -> None:
    """Whatever is written into a batch, it is a batch, no record, or of another version."""
    value = bytearray(encode_batch([PAGE, PAGE]))
    value[at : at + len(noise)] = noise
    try:
        read = decode(bytes(value))
    except StateError:
        return
    assert all(isinstance(record, PageRecord | RejectedRecord | UnreadableRecord) for record in read)


def test_a_lone_surrogate_does_not_stop_the_stream() -> None:
    """UTF-8 cannot encode one; a page with one in its title is written with a question mark."""
    page = replace(PAGE.prepared.page, title="a\ud800b")
    (read,) = decode(encode(replace(PAGE, prepared=replace(PAGE.prepared, page=page))))
    assert isinstance(read, PageRecord)
    assert read.prepared.page.title == "a?b"
    assert read.prepared.evidence == PAGE.prepared.evidence


def policy_value(
    rule: str = '{"conditions":[{"body":3}]}', action: str = "drop", layout: str = '{"slots":8,"window":9}'
) -> bytes:
    """A policy record."""
    policy = f'{{"rule":{rule},"action":"{action}","space_id":"s","layout":{layout}}}'
    return f'{{"kind":"policy","v":3,"policy":{policy}}}'.encode()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b'{"kind":"page","v":4,"topic":{"name":"pages"}}', "version 4, this twinsieve reads 3: update"),
        (b'{"kind":"page","v":2,"topic":"pages"}', "version 2, this twinsieve reads 3: start a new log"),
        (b'{"kind":"merge","v":3}', "of kind 'merge', this twinsieve knows pages, rejected"),
        (b'{"kind":"merge","v":9}', "version 9"),
        (msgspec.msgpack.encode({"kind": "pages", "v": 4}), "version 4, this twinsieve reads 3: update"),
        (msgspec.msgpack.encode({"kind": "merge", "v": 3}), "of kind 'merge'"),
        (policy_value(rule='{"conditions":[]}'), "cannot be read"),
        (policy_value(rule='{"conditions":[{"body":3,"x":1}]}'), "update"),
        (policy_value(action="burn"), "cannot be read"),
        (policy_value(layout='{"slots":3,"window":9}'), "1, 2, 4, 8, 16, 32, 64 slots"),
        (policy_value(layout='{"slots":8,"window":0}'), "a window of 1 page or more"),
        (policy_value(layout='{"slots":8,"window":9,"levels":4}'), "update"),
        (policy_value(layout='{"slots":8.5}'), "int"),
        (policy_value().replace(b"rule", b"other"), "`rule`"),
    ],
)
def test_a_record_of_another_version_and_an_unreadable_policy_are_refused(value: bytes, says: str) -> None:
    """Ignoring such a record could change every later verdict, so a reader stops and says what to do."""
    with pytest.raises(StateError, match=says):
        decode(value)


@pytest.mark.parametrize(
    "value",
    [
        b'{"kind":"retraction","url":"https://a.example/"}',
        b'{"kind":"expired","v":3,"source":{"topic":"pages","partition":0,"offset":5},"end":5}',
        b'{"kind":"expired","v":3,"source":{"topic":"pages","partition":0,"offset":-1},"end":5}',
        b'{"kind":"expired","v":3,"source":{"topic":"pages","partition":0,"offset":5},"end":9000000000000000000}',
        b'{"kind":"unwritten","v":3,"sequences":[3,-1]}',
        b'{"kind":"unwritten","v":3,"sequences":[1e400]}',
        b"hello",
        b"\xff\xfe",
        b"\x81",
        b"\x91" * 10**6,
        b"[" * 10**6,
        b"",
    ],
)
def test_a_message_that_is_no_record_is_read_as_one_without_effect(value: bytes) -> None:
    """Whoever wrote it stops no reader, and all readers agree that it changes nothing."""
    assert list(map(type, decode(value))) == [UnreadableRecord]


def test_every_bound_of_a_profile_can_be_logged() -> None:
    """The profile of docs/profiles.md, which has them all but one, and that one, come back as they were."""
    text = (Path(__file__).parents[4] / "docs" / "profiles.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(\[candidates\].*?)```", text, re.DOTALL)
    assert block is not None
    rule = parse_profile(block[1].replace("words_distance = 7", "words_distance = 7\nbody_distance = 9"))
    record = PolicyRecord(Policy(rule, Action.FLAG, "space-1"), False, None)
    assert rule.verified[0].body_distance == 9
    assert decode(encode(record)) == [record]
