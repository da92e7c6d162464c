"""Records of the log are read as they were written, by this version and, where that is safe, by others."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.extraction import Extraction
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
    UnreadableRecord,
    UnwrittenRecord,
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import parse_profile, rule_for
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.log_record import (
    MAX_EXPIRED,
    MAX_PROBLEM_CHARS,
    MAX_TITLE_CHARS,
    decode,
    encode,
)
from dedup_service.runtime.kafka.messages.page import PageMessage
from tests.page_names import NamesInMemory
from tests.runtime.embedded.prepared import SPACE_ID
from tests.runtime.embedded.prepared import prepared as prepared_page

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
policies = st.builds(Policy, rules, st.sampled_from(Action), texts, layouts)
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
PAGE_VALUE = (
    '{"kind":"page","v":2,"topic":"pages","partition":3,"offset":42,"space":"space-1","url":"https://a.example/1",'
    '"title":"台风","words":"0000000000000005","body":"ffffffffffffffff","body_hash":"0000000000000000",'
    '"evidence":"UzEyMzQ1Njc4","text_hash":"0000000000000001","keys":"MTI="}'
).encode()


@given(records)
def test_a_record_is_read_as_it_was_written(record: LogRecord) -> None:
    """It is, for any strings and numbers."""
    assert decode(encode(record)) == record


def test_a_claim_goes_through_the_log() -> None:
    """The canonical link of a published page is in its record, and decides as it would in one process."""
    lines: list[dict[str, object]] = [
        {"url": "https://a.example/1"},
        {"url": "https://a.example/1/print", "canonical_url": "/1"},
        {"url": "https://a.example/2", "canonical_url": "/1"},
        {"url": "https://b.example/1"},
    ]
    replica = Replica(NamesInMemory())
    replica.apply(0, PolicyRecord(Policy(rule_for("body"), Action.FLAG, SPACE_ID), initial=True, log="l"))
    outcomes = []
    for offset, (line, story) in enumerate(zip(lines, (1, 1, 2, 1), strict=True)):
        message = PageMessage("pages", 0, offset, json.dumps(line | {"text": "t"}).encode())
        page = message.page(lambda _html, _declared: Extraction())
        record = PageRecord(Source("pages", 0, offset), replace(prepared_page(page.url, story), page=page), SPACE_ID)
        outcomes.append(replica.apply(offset + 1, decode(encode(record))))
    verdicts = [outcome.verdict for outcome in outcomes if outcome is not None and outcome.verdict is not None]
    assert [verdict.kind.value for verdict in verdicts] == ["unique", "unchanged", "unique", "duplicate"]
    assert [verdict.duplicate_of for verdict in verdicts[1::2]] == ["https://a.example/1"] * 2
    assert replica.counts["claim_refused"] == 1


@given(records)
def test_fields_of_a_later_writer_are_ignored(record: LogRecord) -> None:
    """A field may be added to version 2 if no verdict depends on it."""
    fields = json.loads(encode(record)) | {"added_later": {"a": [1, None]}}
    assert decode(json.dumps(fields).encode()) == record


def test_the_format_of_version_2_is_fixed() -> None:
    """A log is kept indefinitely, so old records stay readable; every process writes the same bytes."""
    assert encode(PAGE) == PAGE_VALUE
    assert decode(PAGE_VALUE) == PAGE
    policy = b"""{"kind":"policy","v":2,"rule":{"conditions":[{"words":null,"body":7},{"words":6,"body":16}],
        "combined_mu_thousandths":null},"action":"drop","space":"space-1","layout":{"slots":8,"window":4096},"initial":true,"log":"5f0e"}"""
    assert decode(policy) == PolicyRecord(
        Policy(MatchRule((DistanceBound(body=7), DistanceBound(words=6, body=16))), Action.DROP, "space-1"),
        initial=True,
        log="5f0e",
    )
    rejected = b'{"kind":"rejected","v":2,"topic":"pages","partition":0,"offset":7,"problem":"not JSON"}'
    assert decode(rejected) == RejectedRecord(Source("pages", 0, 7), "not JSON")
    retraction = b'{"kind":"retraction","v":2,"url":"https://a.example/1","reason":"taken down"}'
    assert decode(retraction) == RetractionRecord("https://a.example/1", "taken down")
    correction = b'{"kind":"correction","v":2,"url":"u:1","of":"u:2","duplicate":false,"reason":"two reports"}'
    assert decode(correction) == CorrectionRecord("u:1", "u:2", duplicate=False, reason="two reports")


def test_a_large_page_does_not_make_its_record_large() -> None:
    """The text stays in `pages`, and only the beginning of a title is kept."""
    page = replace(PAGE.prepared.page, title="x" * 10**6, text="y" * 10**6)
    value = encode(replace(PAGE, prepared=replace(PAGE.prepared, page=page)))
    assert len(value) < 1000
    assert len(encode(RejectedRecord(PAGE.source, "z" * 10**6))) < 2000


def test_a_lone_surrogate_does_not_stop_the_stream() -> None:
    """UTF-8 cannot encode one; a page with one in its title is written with a question mark."""
    page = replace(PAGE.prepared.page, title="a\ud800b")
    read = decode(encode(replace(PAGE, prepared=replace(PAGE.prepared, page=page))))
    assert isinstance(read, PageRecord)
    assert read.prepared.page.title == "a?b"
    assert read.prepared.evidence == PAGE.prepared.evidence


def policy_value(
    rule: str = '{"conditions":[{"body":3}]}', action: str = "drop", layout: str = '{"slots":8,"window":9}'
) -> bytes:
    """A policy record."""
    return f'{{"kind":"policy","v":2,"rule":{rule},"action":"{action}","space":"s","layout":{layout}}}'.encode()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b'{"kind":"page","v":3,"topic":{"name":"pages"}}', "version 3, this twinsieve reads 2: update"),
        (b'{"kind":"page","v":1,"topic":"pages"}', "version 1, this twinsieve reads 2: start a new log"),
        (b'{"kind":"merge","v":2}', "of kind 'merge', this twinsieve knows page, rejected"),
        (b'{"kind":"merge","v":9}', "version 9"),
        (policy_value(rule='{"conditions":[]}'), "cannot be read"),
        (policy_value(rule='{"conditions":[{"body":3,"x":1}]}'), "update"),
        (policy_value(action="burn"), "cannot be read"),
        (policy_value(layout='{"slots":3,"window":9}'), "1, 2, 4, 8, 16, 32, 64 slots"),
        (policy_value(layout='{"slots":8,"window":0}'), "a window of 1 page or more"),
        (policy_value(layout='{"slots":8,"window":9,"levels":4}'), "update"),
        (policy_value().replace(b"layout", b"other"), "`layout`"),
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
        PAGE_VALUE.replace(b'"0000000000000005"', b'"xyz"'),
        PAGE_VALUE.replace(b'"offset":42', b'"offset":"42"'),
        PAGE_VALUE.replace(b'"offset":42', b'"offset":-1'),
        b'{"kind":"expired","v":2,"topic":"pages","partition":0,"offset":5,"end":5}',
        b'{"kind":"expired","v":2,"topic":"pages","partition":0,"offset":5,"end":9000000000000000000}',
        b'{"kind":"unwritten","v":2,"sequences":[3,-1]}',
        b'{"kind":"unwritten","v":2,"sequences":[1e400]}',
        b"hello",
        b"\xff\xfe",
        b"[" * 10**6,
        b"",
    ],
)
def test_a_message_that_is_no_record_is_read_as_one_without_effect(value: bytes) -> None:
    """Whoever wrote it stops no reader, and all readers agree that it changes nothing."""
    assert isinstance(decode(value), UnreadableRecord)


def test_every_bound_of_a_profile_can_be_logged() -> None:
    """The profile of docs/profiles.md, which has them all but one, and that one, come back as they were."""
    text = (Path(__file__).parents[4] / "docs" / "profiles.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(\[candidates\].*?)```", text, re.DOTALL)
    assert block is not None
    rule = parse_profile(block[1].replace("words_distance = 7", "words_distance = 7\nbody_distance = 9"))
    record = PolicyRecord(Policy(rule, Action.FLAG, "space-1"), False, None)
    assert rule.verified[0].body_distance == 9
    assert decode(encode(record)) == record
