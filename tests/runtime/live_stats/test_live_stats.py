"""Figures that events add up to, and the messages of a tick."""

import tracemalloc
from collections import Counter

import msgspec
import pytest

from dedup_service.core.index import CellStatistics, IndexStatistics
from dedup_service.core.verdict import Distance, Guard, VerdictKind, guard_reason, visit_by_claim_reason
from dedup_service.runtime.events import BatchEvent, IndexEvent, ProblemEvent, RemovalEvent
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.figures import stats, summary
from dedup_service.runtime.live_stats.recheck import RecheckResult, Sampler
from dedup_service.runtime.workers.pool import PoolState
from tests.runtime.live_stats.decided import Clock, copy_of, live_stats_at, refused, undecided, unique


@pytest.fixture
def clock() -> Clock:
    """The clock of the test."""
    return Clock()


@pytest.fixture
def live_stats(clock: Clock) -> LiveStats:
    """Live statistics with that clock."""
    return live_stats_at(clock)


def events_of(live_stats: LiveStats) -> list[tuple[str, dict]]:
    """Return name and data of the messages of a tick."""
    messages = []
    for event in live_stats.tick(summary):
        _, name, data = event.frame.decode().strip().split("\n")
        messages.append((name.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))))
    return messages


def test_pages_are_counted_by_verdict_and_by_second(live_stats: LiveStats, clock: Clock) -> None:
    """They are counted in the history, in the rates, and since the start."""
    live_stats.decided([unique(1), copy_of(2)])
    clock.now += 1
    live_stats.decided([copy_of(3, kind=VerdictKind.UPDATED)])
    clock.now += 1
    figures = stats(live_stats)
    assert figures["summary"]["verdicts"] == {
        "unique": 1, "duplicate": 1, "unchanged": 0, "updated": 1, "undecided": 0,
    }  # fmt: skip
    assert figures["summary"]["rates"] == {
        "window_s": 2, "pages": 1.5, "duplicates": 0.5, "errors": 0.0, "duplicate_share": 0.3333,
    }  # fmt: skip
    hour = figures["history"]["hour"]
    assert (hour["pages"][-3:], hour["duplicates"][-3:]) == ([2, 1, 0], [1, 0, 0])
    assert hour["start"] == int(clock.now) - 3599
    assert sum(figures["history"]["day"]["pages"]) == 3


def test_guarded_pages_are_counted_apart_from_pages_with_too_little_text(live_stats: LiveStats) -> None:
    """Both are undecided; only guarded pages are a reason to look at a site."""
    held = guard_reason(Guard.TITLES, "120 titles, 100 are believed")
    live_stats.decided([undecided(1, "no text"), undecided(2, held), undecided(3, held), copy_of(4)])
    figures = stats(live_stats)["summary"]
    assert figures["verdicts"]["undecided"] == 3
    assert figures["guarded"] == {"pages": 0, "hosts": 0, "titles": 2, "surge": 0}


def test_refused_claims_are_counted(live_stats: LiveStats) -> None:
    """They say that a site's canonical links are wrong; the verdicts are counted as ever."""
    live_stats.decided([unique(1), refused(2), refused(3)])
    figures = stats(live_stats)["summary"]
    assert (figures["claim_refused"], figures["verdicts"]["unique"]) == (2, 3)


def test_an_update_by_claim_removes_no_entry(live_stats: LiveStats) -> None:
    """Only an update at the page's own address replaces its entry."""
    by_claim = visit_by_claim_reason("other body")
    live_stats.decided([copy_of(n, kind=VerdictKind.UPDATED, reason=by_claim) for n in (1, 2)])
    live_stats.decided([copy_of(3, kind=VerdictKind.UPDATED)])
    assert (live_stats.verdicts[VerdictKind.UPDATED], live_stats.updated) == (3, 1)


def test_duplicates_are_counted_by_distance_score_hosts_and_group(live_stats: LiveStats) -> None:
    """Only pages with the verdict `duplicate` count."""
    live_stats.decided(
        [
            copy_of(1, url="https://b.example/1", distance=Distance(words=2, body=None), score=1.0),
            copy_of(2, url="https://b.example/2", distance=Distance(words=64, body=0), score=0.3, title="Newest"),
            copy_of(3, url="https://c.example/2", distance=Distance(), score=None, title="Newest"),
            copy_of(4, kind=VerdictKind.UNCHANGED),
        ]
    )
    figures = stats(live_stats)
    words, body = Counter(words=figures["distances"]["words"][2]), figures["distances"]["body"]
    assert (words["words"], figures["distances"]["words"][64], body[0]) == (1, 1, 1)
    assert figures["distances"]["without"] == {"words": 1, "body": 2}
    assert figures["scores"]["counts"][19] == 1
    assert figures["scores"]["counts"][6] == 1
    assert figures["scores"]["without"] == 1
    assert figures["hosts"]["pairs"] == [
        {"source": "a.example", "copy": "b.example", "pages": 2, "at_most_over": 0},
        {"source": "a.example", "copy": "c.example", "pages": 1, "at_most_over": 0},
    ]
    assert figures["groups"]["largest"] == [
        {"url": "https://a.example/1", "title": "Newest", "pages": 3, "at_most_over": 0}
    ]


def test_steps_are_timed(live_stats: LiveStats) -> None:
    """Time is given by part of the work, and per page."""
    for seconds in (0.01, 0.02, 0.5):
        live_stats.batch(BatchEvent(step="decide", records=10, seconds={"commit": seconds}, entries=9))
    figures = stats(live_stats)
    row = figures["latency"][0]
    assert (row["step"], row["part"], row["batches"]) == ("decide", "commit", 3)
    assert row["p50_s"] == pytest.approx(0.02, rel=0.06)
    assert row["p99_s"] == pytest.approx(0.5, rel=0.06)
    assert row["page_s"] == pytest.approx(0.53 / 30)
    assert figures["summary"]["entries"] == 9


def test_lag_is_asked_for_when_it_is_shown(live_stats: LiveStats) -> None:
    """No batch brings it: it is true while nothing is done. Steps without partitions are left out."""
    assert stats(live_stats)["summary"]["lag"] == {}
    live_stats.lag = lambda: {"fingerprint": {}, "decide": {"pages-0": 7, "pages-1": 2}}
    assert stats(live_stats)["summary"]["lag"] == {"decide": {"records": 9, "partitions": {"pages-0": 7, "pages-1": 2}}}


def test_the_newest_problems_are_kept_with_their_reasons(live_stats: LiveStats) -> None:
    """Also of rejected records, which count as rejected alone; whoever looks later sees them."""
    live_stats.problem(ProblemEvent("decide", "transaction_lost", "again"))
    place = "pages, partition 3, offset 41: not a page in JSON"
    live_stats.batch(BatchEvent(step="fingerprint", records=5, rejected=1, rejections=[place]))
    figures = stats(live_stats)
    newest = [(problem["step"], problem["kind"], problem["text"]) for problem in figures["newest_problems"]]
    assert newest == [("fingerprint", "rejected", place), ("decide", "transaction_lost", "again")]
    assert (figures["summary"]["problems"], figures["summary"]["rejected"]) == ({"transaction_lost": 1}, 1)


def test_a_rejected_record_counts_once_though_both_steps_report_it(live_stats: LiveStats) -> None:
    """The steps are those of the service; the history has the error once, too."""
    live_stats.batch(BatchEvent(step="fingerprint", records=5, rejected=2))
    live_stats.batch(BatchEvent(step="decide", records=5, rejected=2))
    live_stats.problem(ProblemEvent("decide", "transaction_lost", "again"))
    figures = stats(live_stats)
    assert figures["summary"]["rejected"] == 2
    assert sum(figures["history"]["hour"]["errors"]) == 3
    assert figures["summary"]["problems"] == {"transaction_lost": 1}


def test_the_state_of_index_and_pool(live_stats: LiveStats) -> None:
    """The index as it was reported, the pool as it is now."""
    sizes = IndexStatistics(entries=9, fingerprints=1 << 17, bytes=1000, largest_bucket=12, split_buckets=1)
    memory = {"blocks_words": 1000, "cells": 500, "urls": 200}
    live_stats.index(
        IndexEvent(entries=9, channels={"words": sizes}, cells=CellStatistics(8, 60, 3, 500), memory=memory)
    )
    live_stats.pool = lambda: PoolState(4, 3, 2, 100, 1)
    live_stats.removed(RemovalEvent("retraction", "https://a.example/1"))
    figures = stats(live_stats)
    assert figures["index"]["bytes"] == 1700
    assert figures["index"]["channels"]["words"]["skew"] == 6.0
    assert figures["index"]["cells"] == {"entries": 8, "cells": 60, "overflowed": 3, "bytes": 500, "sieve_bytes": 0}
    assert figures["index"]["removals"] == {
        "updated": 0,
        "retraction": 1,
        "correction": 0,
        "unwritten": 0,
        "expired by count": 0,
        "expired by age": 0,
    }
    assert figures["summary"]["pool"] == {"processes": 4, "ready": 3, "busy": 2, "waiting": 100, "deaths": 1}


def test_the_share_of_false_drops_needs_a_recheck(clock: Clock) -> None:
    """The share has Wilson's interval; before the first recheck there is none."""
    live_stats = live_stats_at(clock, sampler=Sampler(1.0, between_s=0.0))
    assert stats(live_stats)["false_drops"]["share"] is None
    live_stats.decided([copy_of(7)])
    row = live_stats.newest.rows()[0]
    for result in (RecheckResult(row, 0.9, 0.9), RecheckResult(row, 0.1, 0.2), None):
        live_stats.rechecked(result)
    figures = stats(live_stats)["false_drops"]
    assert (figures["sampled"], figures["checked"], figures["wrong"], figures["unchecked"]) == (1, 2, 1, 1)
    assert (figures["share"], figures["low"], figures["high"]) == (0.5, 0.0945, 0.9055)
    assert [at["sequence"] for at in figures["newest_wrong"]] == [7]


def test_a_tick_sends_what_is_new(live_stats: LiveStats, clock: Clock) -> None:
    """It sends figures, complete seconds, the newest rows, problems and removals; nothing is sent twice."""
    assert live_stats.tick(summary) == []
    live_stats.decided([copy_of(at) for at in range(1, 26)])
    live_stats.problem(ProblemEvent("decide", "expired", "too late"))
    clock.now += 1
    messages = events_of(live_stats)
    assert [name for name, _ in messages] == ["tick", "duplicates", "problem"]
    assert messages[0][1]["seconds"] == [[1_000_000, 25, 25, 1]]
    assert ([row["number"] for row in messages[1][1]["rows"]], messages[1][1]["missed"]) == (list(range(25, 5, -1)), 5)
    assert messages[2][1] == {"at": 1_000_000.0, "step": "decide", "kind": "expired", "text": "too late", "count": 1}
    clock.now += 1
    assert live_stats.tick(summary) == []


def test_the_second_in_progress_is_sent_when_it_is_over(live_stats: LiveStats, clock: Clock) -> None:
    """A tick in the middle of a second leaves it for the next."""
    clock.now += 0.5
    live_stats.decided([unique(1)])
    assert events_of(live_stats)[0][1]["seconds"] == []
    clock.now += 1
    assert events_of(live_stats)[0][1]["seconds"] == [[1_000_000, 1, 0, 0]]
    clock.now += 1
    assert live_stats.tick(summary) == []


def test_a_hostile_page_is_made_safe(live_stats: LiveStats, clock: Clock) -> None:
    """Script, bidirectional controls and a title of a megabyte are truncated and cleaned, and the JSON is valid."""
    live_stats.decided(
        [
            copy_of(
                1,
                title="<script>alert(1)</script>\u202e\x1b[2J\ud800" + "x" * (1 << 20),
                url="https://evil.example/\r\nid: 7\u202e" + "y" * 100_000,
                of_url="javascript:alert(1)//" + "z" * 100_000,
            )
        ]
    )
    clock.now += 1
    row = dict(events_of(live_stats))["duplicates"]["rows"][0]
    assert row["title"].startswith("<script>alert(1)</script> [2Jxxx")
    assert (len(row["title"]) <= 300, len(row["url"]) <= 500, len(row["of_url"]) <= 500) == (True, True, True)
    assert not set(msgspec.json.encode(stats(live_stats)).decode()) & {"\u202e", "\x1b", "\ud800", "\n", "\r"}


def test_memory_is_bounded(clock: Clock) -> None:
    """The bound holds whatever the number of hosts, groups, titles and rows."""
    live_stats = live_stats_at(clock)

    def add_pages(start: int, pages: int) -> None:
        for at in range(start, start + pages):
            title, url, of_url = f"{at} " * 500, f"https://h{at}.example/", f"https://s{at}.example/{at}"
            live_stats.decided([copy_of(at, title=title, url=url, of_url=of_url), unique(at)._replace(title=title)])
            clock.now += 0.05
            if at % 20 == 0:
                live_stats.tick(summary)

    add_pages(0, 6000)
    tracemalloc.start()
    add_pages(6000, 6000)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(live_stats.newest.rows()) == len(live_stats.hosts) == len(live_stats.groups) == 1000
    assert len(live_stats._titles) <= 2001
    # Everything kept was replaced, and so traced: rows (1.5 KB), titles and keys (0.5 KB), 600 messages (10 KB).
    assert grown < 16 << 20
