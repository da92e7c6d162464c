"""Headers describe the event or the verdict, and keep what a producer wrote."""

import pytest

from dedup_service.core.log_records import RejectedRecord, RetractionRecord, Source
from dedup_service.runtime.kafka.messages.headers import (
    log_headers,
    passed_on,
    stats_headers,
    verdict_headers,
)
from tests.runtime.kafka.messages.sources import source_in

SOURCE = Source("pages", 3, 42)


def test_a_verdict_is_a_cloud_event() -> None:
    """It is of version 1.0 in binary mode, with an id that every writer would give it."""
    assert verdict_headers(SOURCE, "verdicts") == (
        ("ce_specversion", b"1.0"),
        ("ce_id", b"pages/3/42"),
        ("ce_source", b"/twinsieve/verdicts"),
        ("ce_type", b"twinsieve.verdict.v1"),
        ("content-type", b"application/json"),
    )
    assert dict(stats_headers(7, "dedup.stats"))["ce_id"] == b"7"


def test_each_record_of_the_log_has_an_id() -> None:
    """A record about an input record is identified by it; an operator record is a new event every time."""
    rejected = log_headers(RejectedRecord(SOURCE, "no page"), "fingerprints")
    assert dict(rejected)["ce_id"] == b"pages/3/42"
    retraction = RetractionRecord("https://a.example/", "gone")
    assert log_headers(retraction, "fingerprints") != log_headers(retraction, "fingerprints")


def test_a_passed_on_record_keeps_its_headers() -> None:
    """Repeated and empty headers are kept, too; a null becomes empty, since the client cannot write nulls."""
    theirs = [("trace", b"1"), ("ce_type", b"example.page"), ("trace", b"2"), ("nothing", None)]
    headers = passed_on(theirs, SOURCE, 17, verdict="duplicate", original_url="https://a.example/台")
    assert headers[:4] == (("trace", b"1"), ("ce_type", b"example.page"), ("trace", b"2"), ("nothing", b""))
    assert headers[4:] == (
        ("twinsieve.verdict", b"duplicate"),
        ("twinsieve.duplicate_of_url", "https://a.example/台".encode()),
        ("twinsieve.sequence", b"17"),
        ("twinsieve.topic", b"pages"),
        ("twinsieve.partition", b"3"),
        ("twinsieve.offset", b"42"),
    )
    assert source_in(headers) == SOURCE


def test_headers_from_an_earlier_pass_are_replaced() -> None:
    """A corrected dead letter does not keep its old error, and no header occurs twice."""
    first = passed_on([("a", b"1")], SOURCE, 5, error="no page")
    assert dict(first)["twinsieve.error"] == b"no page"
    second = passed_on(first, Source("pages", 0, 99), 6, verdict="unique")
    assert second == (("a", b"1"), *passed_on([], Source("pages", 0, 99), 6, verdict="unique"))
    with pytest.raises(KeyError):
        source_in([("a", b"1")])
