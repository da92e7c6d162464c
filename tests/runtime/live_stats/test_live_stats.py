"""What facts add up to, and what is told live."""

import tracemalloc
from collections import Counter

import msgspec
import pytest

from dedup_service.core.index import IndexStatistics
from dedup_service.core.verdict import Distance, Guard, VerdictKind, guard_reason
from dedup_service.runtime.events import BatchEvent, IndexEvent, ProblemEvent, RemovalEvent
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.figures import stats, summary
from dedup_service.runtime.live_stats.recheck import RecheckResult, Sampler
from dedup_service.runtime.workers.pool import PoolState
from tests.runtime.live_stats.decided import Clock, copy_of, feed_at, undecided, unique


@pytest.fixture
def clock() -> Clock:
    """The test's time."""
    return Clock()


@pytest.fixture
def feed(clock: Clock) -> LiveStats:
    """A feed of it."""
    return feed_at(clock)


def events_of(feed: LiveStats) -> list[tuple[str, dict]]:
    """Name and data of what a tick tells."""
    found = []
    for event in feed.tick(summary):
        _, name, data = event.frame.decode().strip().split("\n")
        found.append((name.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))))
    return found


def test_pages_are_counted_by_verdict_and_by_second(feed: LiveStats, clock: Clock) -> None:
    """In the history, in the rates, since the start."""
    feed.decided([unique(1), copy_of(2)])
    clock.now += 1
    feed.decided([copy_of(3, kind=VerdictKind.UPDATED)])
    clock.now += 1
    found = stats(feed)
    assert found["summary"]["verdicts"] == {
        "unique": 1, "duplicate": 1, "unchanged": 0, "updated": 1, "undecided": 0,
    }  # fmt: skip
    assert found["summary"]["rates"] == {
        "window_s": 2, "pages": 1.5, "duplicates": 0.5, "errors": 0.0, "duplicate_share": 0.3333,
    }  # fmt: skip
    hour = found["history"]["hour"]
    assert (hour["pages"][-3:], hour["duplicates"][-3:]) == ([2, 1, 0], [1, 0, 0])
    assert hour["start"] == int(clock.now) - 3599
    assert sum(found["history"]["day"]["pages"]) == 3


def test_pages_that_a_guard_held_are_told_from_those_with_too_little_text(feed: LiveStats) -> None:
    """Both are undecided, and only the former are a reason to look at a site."""
    held = guard_reason(Guard.TITLES, "120 titles, 100 are believed")
    feed.decided([undecided(1, "no text"), undecided(2, held), undecided(3, held), copy_of(4)])
    told = stats(feed)["summary"]
    assert told["verdicts"]["undecided"] == 3
    assert told["guarded"] == {"pages": 0, "hosts": 0, "titles": 2, "surge": 0}


def test_duplicates_are_looked_at(feed: LiveStats) -> None:
    """Distances, scores, hosts, groups: those of the verdict `duplicate` alone."""
    feed.decided(
        [
            copy_of(1, url="https://b.example/1", distance=Distance(words=2, body=None), score=1.0),
            copy_of(2, url="https://b.example/2", distance=Distance(words=64, body=0), score=0.3, title="Newest"),
            copy_of(3, url="https://c.example/2", distance=Distance(), score=None, title="Newest"),
            copy_of(4, kind=VerdictKind.UNCHANGED),
        ]
    )
    found = stats(feed)
    words, body = Counter(words=found["distances"]["words"][2]), found["distances"]["body"]
    assert (words["words"], found["distances"]["words"][64], body[0]) == (1, 1, 1)
    assert found["distances"]["without"] == {"words": 1, "body": 2}
    assert found["scores"]["counts"][19] == 1
    assert found["scores"]["counts"][6] == 1
    assert found["scores"]["without"] == 1
    assert found["hosts"]["pairs"] == [
        {"source": "a.example", "copy": "b.example", "pages": 2, "at_most_over": 0},
        {"source": "a.example", "copy": "c.example", "pages": 1, "at_most_over": 0},
    ]
    assert found["groups"]["largest"] == [
        {"url": "https://a.example/1", "title": "Newest", "pages": 3, "at_most_over": 0}
    ]


def test_steps_are_timed(feed: LiveStats) -> None:
    """By part of the work, and for a page."""
    for seconds in (0.01, 0.02, 0.5):
        feed.batch(BatchEvent(step="decide", records=10, seconds={"commit": seconds}, lag={"pages-0": 7}, entries=9))
    found = stats(feed)
    row = found["latency"][0]
    assert (row["step"], row["part"], row["batches"]) == ("decide", "commit", 3)
    assert row["p50_s"] == pytest.approx(0.02, rel=0.06)
    assert row["p99_s"] == pytest.approx(0.5, rel=0.06)
    assert row["page_s"] == pytest.approx(0.53 / 30)
    assert found["summary"]["lag"] == {"decide": {"records": 7, "partitions": {"pages-0": 7}}}
    assert found["summary"]["entries"] == 9


def test_a_rejected_record_counts_once_though_both_steps_meet_it(feed: LiveStats) -> None:
    """The service's two steps; and its errors are in the history once."""
    feed.batch(BatchEvent(step="fingerprint", records=5, rejected=2))
    feed.batch(BatchEvent(step="decide", records=5, rejected=2))
    feed.problem(ProblemEvent("decide", "transaction_lost", "again"))
    found = stats(feed)
    assert found["summary"]["rejected"] == 2
    assert sum(found["history"]["hour"]["errors"]) == 3
    assert found["summary"]["problems"] == {"transaction_lost": 1}


def test_the_state_of_index_and_pool(feed: LiveStats) -> None:
    """As it was told, or as it is asked for."""
    sizes = IndexStatistics(entries=9, fingerprints=1 << 17, bytes=1000, largest_bucket=12, split_buckets=1)
    feed.index(IndexEvent(entries=9, channels={"words": sizes}, keys=(8, 500)))
    feed.pool = lambda: PoolState(4, 3, 2, 100, 1)
    feed.removed(RemovalEvent("retraction", "https://a.example/1"))
    found = stats(feed)
    assert found["index"]["bytes"] == 1500
    assert found["index"]["channels"]["words"]["skew"] == 6.0
    assert found["index"]["removals"] == {"updated": 0, "retraction": 1, "correction": 0}
    assert found["summary"]["pool"] == {"processes": 4, "ready": 3, "busy": 2, "waiting": 100, "deaths": 1}


def test_a_share_is_known_once_something_was_checked(clock: Clock) -> None:
    """With Wilson's interval; before there is none."""
    feed = feed_at(clock, sampler=Sampler(1.0, between_s=0.0))
    assert stats(feed)["false_drops"]["share"] is None
    feed.decided([copy_of(7)])
    row = feed.newest.rows()[0]
    for checked in (RecheckResult(row, 0.9, 0.9), RecheckResult(row, 0.1, 0.2), None):
        feed.told_checked(checked)
    found = stats(feed)["false_drops"]
    assert (found["sampled"], found["checked"], found["wrong"], found["unchecked"]) == (1, 2, 1, 1)
    assert (found["share"], found["low"], found["high"]) == (0.5, 0.0945, 0.9055)
    assert [at["sequence"] for at in found["newest_wrong"]] == [7]


def test_a_tick_tells_what_is_new(feed: LiveStats, clock: Clock) -> None:
    """Figures, whole seconds, the newest rows, problems and removals; and nothing twice."""
    assert feed.tick(summary) == []
    feed.decided([copy_of(at) for at in range(1, 26)])
    feed.problem(ProblemEvent("decide", "expired", "too late"))
    clock.now += 1
    told = events_of(feed)
    assert [name for name, _ in told] == ["tick", "duplicates", "problem"]
    assert told[0][1]["seconds"] == [[1_000_000, 25, 25, 1]]
    assert ([row["number"] for row in told[1][1]["rows"]], told[1][1]["missed"]) == (list(range(25, 5, -1)), 5)
    assert told[2][1] == {"at": 1_000_000.0, "step": "decide", "kind": "expired", "text": "too late", "count": 1}
    clock.now += 1
    assert feed.tick(summary) == []


def test_the_second_in_progress_is_told_when_it_is_over(feed: LiveStats, clock: Clock) -> None:
    """A tick in the middle of a second leaves it for the next."""
    clock.now += 0.5
    feed.decided([unique(1)])
    assert events_of(feed)[0][1]["seconds"] == []
    clock.now += 1
    assert events_of(feed)[0][1]["seconds"] == [[1_000_000, 1, 0, 0]]
    clock.now += 1
    assert feed.tick(summary) == []


def test_a_hostile_page_is_inert(feed: LiveStats, clock: Clock) -> None:
    """Script, bidi controls, a title of a megabyte: cut, cleaned, and valid JSON."""
    feed.decided(
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
    told = dict(events_of(feed))["duplicates"]["rows"][0]
    assert told["title"].startswith("<script>alert(1)</script> [2Jxxx")
    assert (len(told["title"]) <= 300, len(told["url"]) <= 500, len(told["of_url"]) <= 500) == (True, True, True)
    assert not set(msgspec.json.encode(stats(feed)).decode()) & {"\u202e", "\x1b", "\ud800", "\n", "\r"}


def test_memory_is_bounded(clock: Clock) -> None:
    """However many hosts, groups, titles and rows come."""
    feed = feed_at(clock)

    def told(start: int, pages: int) -> None:
        for at in range(start, start + pages):
            title, url, of_url = f"{at} " * 500, f"https://h{at}.example/", f"https://s{at}.example/{at}"
            feed.decided([copy_of(at, title=title, url=url, of_url=of_url)])
            clock.now += 0.05
            if at % 20 == 0:
                feed.tick(summary)

    told(0, 6000)
    tracemalloc.start()
    told(6000, 6000)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(feed.newest.rows()) == len(feed.hosts) == len(feed.groups) == 1000
    assert len(feed._titles) <= 2001
    # All that is remembered was replaced, and so traced: rows (1.5 KB), titles and keys (0.5 KB), 600 messages (10 KB).
    assert grown < 16 << 20
