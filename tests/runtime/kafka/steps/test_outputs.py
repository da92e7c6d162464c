"""Outputs of any record fit the topics that they are written to, and say what is missing of it."""

import json
import os
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.log_records import Source
from dedup_service.core.size_limits import (
    EVENT_MESSAGE_BYTES,
    MAX_HEADERS,
    MAX_HEADERS_BYTES,
    MAX_KEY_BYTES,
    MAX_NAME_CHARS,
    MAX_VALUE_BYTES,
    PAGE_MESSAGE_BYTES,
    Header,
)
from dedup_service.runtime.kafka.messages.page import CUT_BYTES, CUT_KEY_BYTES, size_problem
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome
from dedup_service.runtime.kafka.steps.outputs import Form, lost_output, outputs_of, verdict_output
from dedup_service.runtime.kafka.topics import Topics
from tests.runtime.kafka.messages.batches import CODECS, batch_bytes
from tests.runtime.kafka.messages.sources import source_in

TOPICS = Topics()


@dataclass(frozen=True)
class Consumed:
    """A record as a consumer returns it."""

    key: bytes | None = b"k"
    value: bytes | None = b"{}"
    headers: tuple[Header, ...] = ()
    topic: str = "p" * 249
    partition: int = 2**31 - 1
    offset: int = 2**63 - 1


PAGE = PendingOutcome(2**53, "unique", b'{"verdict": "unique"}', b"http://a.example/", "\U0001f600" * MAX_NAME_CHARS)
REJECTED = PendingOutcome(2**53, None, "\U0001f600".encode() * 10_000)
DROPPED = PendingOutcome(2**53, "duplicate", b"{}", b"k", "u:1", drop=True)


def sizes(limit: int) -> st.SearchStrategy[int]:
    """Sizes around a limit."""
    return st.sampled_from([0, 1, limit - 1, limit, limit + 1, 3 * limit])


def blobs(limit: int) -> st.SearchStrategy[bytes | None]:
    """A null, or zeros around a limit; they cost nothing to make."""
    return st.none() | sizes(limit).map(bytes)


names = st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from(
    ["a", "twinsieve.error", "\\xff"]
)
headers = st.lists(st.tuples(names, st.none() | st.binary(max_size=9)), max_size=6).map(tuple)
many = st.builds(lambda count, name: ((name, b""),) * count, sizes(MAX_HEADERS), names)
large = st.builds(
    lambda name, value: ((name, value),), names | st.just("n" * (MAX_HEADERS_BYTES + 1)), blobs(MAX_HEADERS_BYTES)
)
records = st.builds(
    Consumed,
    blobs(MAX_KEY_BYTES),
    blobs(MAX_VALUE_BYTES),
    st.builds(lambda *parts: sum(parts, ()), headers, many | headers, large | headers, headers),
)


@given(records, st.sampled_from([PAGE, REJECTED, DROPPED]), st.sampled_from(Form))
def test_outputs_of_any_record_fit_their_topics(record: Consumed, outcome: PendingOutcome, form: Form) -> None:
    """Uncompressed; and each has a key or a value: the client refuses a message with neither."""
    messages = list(outputs_of(TOPICS, record, outcome, form, "refused " * 10_000))
    limit = {TOPICS.verdicts: EVENT_MESSAGE_BYTES}
    bounds = {Form.CUT: CUT_BYTES + (64 << 10), Form.BARE: 16 << 10}
    for message in messages:
        assert batch_bytes(message) <= min(
            limit.get(message.topic, PAGE_MESSAGE_BYTES), bounds.get(form, PAGE_MESSAGE_BYTES)
        )
        assert message.key is not None or message.value is not None
        if message.topic != TOPICS.verdicts:
            assert source_in(message.headers).offset == record.offset
    written = [message.topic for message in messages]
    fits = form is Form.PAGE and size_problem(record) is None
    if outcome is REJECTED or form is Form.BARE:
        assert written == [TOPICS.dlq]
    elif outcome is DROPPED:
        assert written == [TOPICS.verdicts]
    else:
        assert written == [TOPICS.verdicts, TOPICS.unique if fits else TOPICS.dlq]


@given(records)
def test_a_dead_letter_keeps_what_is_within_the_limits_and_says_what_is_not(record: Consumed) -> None:
    """Each part for itself: an oversized header costs neither the value nor the headers around it."""
    (letter,) = outputs_of(TOPICS, record, REJECTED)
    added = dict(letter.headers)
    value, key = record.value or b"", record.key or b""
    if len(value) > MAX_VALUE_BYTES:
        assert (letter.value, added["twinsieve.cut_from_bytes"]) == (value[:CUT_BYTES], b"%d" % len(value))
    else:
        assert (letter.value or b"") == value
        assert "twinsieve.cut_from_bytes" not in added
    if len(key) > MAX_KEY_BYTES:
        assert (letter.key, added["twinsieve.cut_key_from_bytes"]) == (key[:CUT_KEY_BYTES], b"%d" % len(key))
    else:
        assert letter.key == record.key
        assert "twinsieve.cut_key_from_bytes" not in added
    size = sum(len(name.encode()) + len(content or b"") for name, content in record.headers)
    theirs = [(name, content or b"") for name, content in record.headers if not name.startswith("twinsieve.")]
    if len(record.headers) <= MAX_HEADERS and size <= MAX_HEADERS_BYTES:
        assert list(letter.headers[: len(theirs)]) == theirs
        assert "twinsieve.cut_headers_from_bytes" not in added
    else:
        assert added["twinsieve.cut_headers_from_bytes"] == b"%d" % size
        assert len(letter.headers) <= MAX_HEADERS + 8


@pytest.mark.parametrize("codec", CODECS)
def test_the_largest_page_fits_its_topic_even_if_its_bytes_do_not_compress(codec: str) -> None:
    """Random bytes grow when they are compressed; the longest headers of ours are added."""
    each = MAX_HEADERS_BYTES // MAX_HEADERS
    theirs = tuple((f"{number:04}", os.urandom(each - 4)) for number in range(MAX_HEADERS))
    record = Consumed(os.urandom(MAX_KEY_BYTES), os.urandom(MAX_VALUE_BYTES), theirs)
    assert size_problem(record) is None
    _, page = outputs_of(TOPICS, record, PAGE)
    assert (page.topic, page.value) == (TOPICS.unique, record.value)
    assert batch_bytes(page, codec) <= PAGE_MESSAGE_BYTES
    (letter,) = outputs_of(TOPICS, record, REJECTED)
    assert (letter.key, letter.value, letter.headers[:MAX_HEADERS]) == (record.key, record.value, theirs)
    assert batch_bytes(letter, codec) <= PAGE_MESSAGE_BYTES


def test_each_form_is_smaller_than_the_one_before() -> None:
    """A topic whose limit was lowered gets less of the record, until nothing but its place is left."""
    record = Consumed(bytes(MAX_KEY_BYTES), bytes(MAX_VALUE_BYTES), (("a", bytes(MAX_HEADERS_BYTES - 1)),))
    for outcome in (PAGE, REJECTED):
        form: Form | None = Form.PAGE
        written = []
        while form is not None:
            messages = list(outputs_of(TOPICS, record, outcome, form, "refused"))
            written.append(messages[-1].size_bytes)
            form = form.smaller(outcome)
        assert written == sorted(written, reverse=True)
        assert written[-1] < 10_000
    assert Form.PAGE.smaller(REJECTED) is Form.CUT


def test_a_dead_letter_is_the_record_unchanged() -> None:
    """Nulls are unchanged too, except a null value without a key: the client cannot write it."""
    plain = replace(Consumed(), value=json.dumps({"no": "page"}).encode(), headers=(("a", b"1"), ("a", b"2")))
    (letter,) = outputs_of(TOPICS, plain, REJECTED)
    assert (letter.key, letter.value, letter.headers[:2]) == (plain.key, plain.value, plain.headers)
    (letter,) = outputs_of(TOPICS, replace(plain, value=None), REJECTED)
    assert (letter.key, letter.value) == (b"k", None)
    (letter,) = outputs_of(TOPICS, replace(plain, key=None, value=None), REJECTED)
    assert (letter.key, letter.value) == (None, b"")


def test_a_page_that_stays_in_pages_has_its_verdict_alone() -> None:
    """The same message as where the page is passed on; a dead letter with its place if the topic refuses it."""
    record = Consumed()
    source = Source(record.topic, record.partition, record.offset)
    assert verdict_output(TOPICS, source, PAGE) == next(outputs_of(TOPICS, record, PAGE))
    letter = verdict_output(TOPICS, source, PAGE, Form.DEAD_LETTER, "too large")
    assert (letter.topic, letter.value, source_in(letter.headers)) == (TOPICS.dlq, None, source)
    assert dict(letter.headers)["twinsieve.error"] == b"the verdict was not written: too large"


@pytest.mark.parametrize("outcome", [PAGE, replace(REJECTED, value=b"not a page in JSON")])
def test_the_dead_letter_of_a_deleted_record_says_so(outcome: PendingOutcome) -> None:
    """It has no content, so a person must read why; of a rejected record, what was wrong with it, too."""
    message = lost_output(TOPICS, Source("p", 0, 7), outcome)
    error = dict(message.headers)["twinsieve.error"].decode()
    assert (message.topic, message.value) == (TOPICS.dlq, None)
    assert "deleted before it could be" in error
    assert outcome.kind is not None or error.endswith("not a page in JSON")


def test_the_dead_letter_of_records_that_nobody_read_says_it_once() -> None:
    """Its reason is that they were deleted; a person does not read it twice."""
    reason = b"300 records up to offset 349 were deleted before they were read"
    message = lost_output(TOPICS, Source("p", 0, 50), replace(REJECTED, value=reason, key=b"", end=350))
    assert dict(message.headers)["twinsieve.error"] == reason
