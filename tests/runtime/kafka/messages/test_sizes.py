"""The largest page that is accepted makes messages that fit their topics, whatever it contains."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.log_records import PageRecord, RejectedRecord, Source
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.size_limits import EVENT_MESSAGE_BYTES, MAX_KEY_BYTES, MAX_NAME_CHARS
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.kafka.messages.headers import STATS_KEY, page_key, stats_headers, verdict_headers
from dedup_service.runtime.kafka.messages.log_record import decode, log_message
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.messages.verdict import verdict_value
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.kafka.topics.plan import least_message_bytes
from dedup_service.runtime.resources import build_fingerprinter
from tests.runtime.kafka.messages.batches import batch_bytes, sent_bytes

SOURCE = Source("p" * 249, 2**31 - 1, 2**63 - 1)
CONTROL, EMOJI = "\x01", "\U0001f600"


def name(character: str) -> str:
    """Return the longest name of these characters; none is removed as white space at its ends."""
    return character * MAX_NAME_CHARS


def web(character: str) -> str:
    """Return the longest Web address with a path of these characters."""
    return ("http://a.de/" + character * MAX_NAME_CHARS)[:MAX_NAME_CHARS]


def read(**fields: object) -> Page:
    """Return the page of a message with these fields."""
    return PageMessage("pages", 0, 0, json.dumps(fields).encode()).page(lambda _html, _declared: Extraction())


def largest(url: str, other: str) -> PreparedPage:
    """Return a prepared page with `url`, `other` as id and claim, and as much evidence as a page can have."""
    words = [f"第{number}句话说的是数字{number}万。" for number in range(3000)]
    keywords = [f"keyword {number}" for number in range(30_000)]
    page = read(url=url, id=other, canonical_url=other, title=CONTROL * 100_000, text="".join(words), keywords=keywords)
    return build_fingerprinter().prepare(page)


URLS = [name(CONTROL), name('"'), name(EMOJI), web(EMOJI), web("台"), web('"'), web(CONTROL), web("%")]


@pytest.mark.parametrize("url", URLS, ids=lambda url: f"{url[0]!r}-{url[-1]!r}")
def test_the_largest_page_fits_the_log_and_the_verdicts(url: str) -> None:
    """A control character has 6 bytes in JSON, and a character of 4 bytes has 12 in a canonical URL."""
    other = url[:-1] + "x"
    prepared = largest(url, other)
    record = PageRecord(SOURCE, prepared, "twinsieve-934408f2f662")
    message = log_message(SOURCE.topic, record)
    assert batch_bytes(message) <= EVENT_MESSAGE_BYTES
    (read_again,) = decode(message.value or b"")
    assert isinstance(read_again, PageRecord)
    assert read_again.prepared.page.url == url
    verdict = Verdict(
        sequence=2**53,
        id=other,
        url=url,
        kind=VerdictKind.UNDECIDED,
        space="twinsieve-934408f2f662",
        duplicate_of=other,
        duplicate_of_url=url,
        distance=Distance(64, 64),
        score=1 / 3,
        reason=CONTROL * 1000,
    )
    key, headers = page_key(prepared.page.canonical_url), verdict_headers(SOURCE, SOURCE.topic)
    assert len(key) <= MAX_KEY_BYTES
    assert sent_bytes(verdict_value(verdict, SOURCE), key, headers) <= EVENT_MESSAGE_BYTES


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=1), st.booleans())
def test_the_key_of_any_accepted_page_is_within_the_limit_of_keys(text: str, web_address: bool) -> None:
    """So a producer that uses the canonical URL as the key, as it is asked to, is never refused for it."""
    url = (text * MAX_NAME_CHARS)[:MAX_NAME_CHARS]
    try:
        page = read(url=web(text) if web_address else url, text="t")
    except RecordError:  # nothing but white space
        return
    assert len(page_key(page.canonical_url)) <= MAX_KEY_BYTES


def test_the_longest_rejection_fits_the_log() -> None:
    """The reason is cut, whatever it quotes."""
    assert batch_bytes(log_message(SOURCE.topic, RejectedRecord(SOURCE, CONTROL * 10**6))) < 20_000


@pytest.mark.parametrize("partitions", [1, 10_000])
def test_stats_fit_their_topic_with_any_number_of_partitions(partitions: int) -> None:
    """They have the lag of each partition; with thousands, the topic is made for it."""
    topics = Topics("t" * 200)
    lag = {f"{topics.pages}-{partition}": 2**63 - 1 for partition in range(partitions)}
    counts = {f"counter {number}" * 5: 2**53 for number in range(30)}
    stats = {
        "sequence": 2**53,
        "log": "f" * 32,
        "space": "s" * 40,
        "counts": counts,
        "entries": 2**53,
        "lag": lag,
        "instance": "i" * 249,
    }
    size = sent_bytes(msgspec.json.encode(stats), STATS_KEY, stats_headers(2**53, topics.stats))
    assert size <= least_message_bytes(topics, partitions)[topics.stats]
