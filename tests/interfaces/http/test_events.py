"""`/events` as a browser meets it: a real server, real sockets."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec
import pytest

from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.http.dashboard import dashboard
from dedup_service.interfaces.http.event_stream import EventHub
from dedup_service.interfaces.http.explain_backends import Watched
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import Observer
from dedup_service.runtime.live_stats import LiveStats
from tests.interfaces.http.streams import Crowd, Watcher, until
from tests.runtime.embedded.prepared import prepared
from tests.runtime.live_stats.decided import copy_of, unique

Serve = Callable[..., AbstractContextManager[HttpServer]]


@pytest.fixture
def feed() -> LiveStats:
    """What is watched."""
    return LiveStats("filter")


@pytest.fixture
def serve(feed: LiveStats) -> Serve:
    """Serve it on a free port, told every 50 ms."""

    @contextmanager
    def serving(**options: float) -> Iterator[HttpServer]:
        hub = EventHub(feed, **{"tick_s": 0.05, **options})  # type: ignore[arg-type]
        with dashboard(
            Watched(feed=feed), Metrics(feed=feed).registry, Address("127.0.0.1", 0), None, hub=hub
        ) as server:
            yield server

    return serving


def connected(feed: LiveStats) -> int:
    """How many watch."""
    return feed.watchers()[0]


def test_a_watcher_is_told_what_happens(feed: LiveStats, serve: Serve) -> None:
    """As an event stream that nobody keeps, with a word on when to come back."""
    with serve() as server, Watcher(server.address) as watcher:
        head = watcher.head()
        assert head.startswith("http/1.1 200")
        assert "content-type: text/event-stream" in head
        assert "cache-control: no-store" in head
        assert watcher.message() == {"retry": "2000"}
        feed.decided([unique(1), copy_of(2)])
        tick, rows = watcher.message(), watcher.message()
        assert (tick["event"], rows["event"]) == ("tick", "duplicates")
        assert msgspec.json.decode(tick["data"])["summary"]["pages"] == 2
        assert msgspec.json.decode(rows["data"])["rows"][0]["sequence"] == 2
        assert rows["id"] == feed.events.last_id


def test_who_comes_back_is_told_what_it_missed(feed: LiveStats, serve: Serve) -> None:
    """By the id of its last message: nothing twice, nothing left out."""
    with serve() as server:
        with Watcher(server.address) as watcher:
            watcher.head()
            feed.publish("note", {"number": 0})
            last = watcher.messages("note", 1)[0]["id"]
        until(lambda: connected(feed) == 0)
        for number in range(1, 6):
            feed.publish("note", {"number": number})
        until(lambda: feed.events.number >= int(last.partition("-")[2]) + 6)
        with Watcher(server.address, last_id=last) as watcher:
            watcher.head()
            missed = watcher.messages("note", 5)
        assert [msgspec.json.decode(message["data"])["number"] for message in missed] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("last", ["otherrun-3", "nonsense"])
def test_an_id_of_another_run_begins_anew(feed: LiveStats, serve: Serve, last: str) -> None:
    """The page asks for all figures then."""
    feed.events.add("note", {})
    with serve() as server, Watcher(server.address, last_id=last) as watcher:
        watcher.head()
        assert watcher.message() == {"retry": "2000"}
        assert watcher.message() == {"id": feed.events.last_id, "event": "reset", "data": "{}"}


def test_a_silent_line_lives(serve: Serve) -> None:
    """A comment, now and then."""
    with serve(ping_s=0.2) as server, Watcher(server.address) as watcher:
        watcher.head()
        watcher.message()
        assert [watcher.message() for _ in range(2)] == [{"": "ping"}] * 2


def test_who_does_not_read_is_cut_off(feed: LiveStats, serve: Serve) -> None:
    """Once what may wait for it waits; whoever reads is told on, and the feed never waited."""
    with (
        serve(waiting=4) as server,
        Watcher(server.address, small=True) as idler,
        Watcher(server.address) as reader,
    ):
        reader.head()
        idler.head()
        sent = 0
        while feed.watchers()[1] == 0:
            feed.publish("note", {"text": "x" * 200_000})
            sent += 1
            reader.messages("note", 1)
            assert sent < 200, "it was never cut off"
        assert connected(feed) == 1
        with pytest.raises((EOFError, OSError)):
            idler.to_the_end()
        feed.publish("note", {"text": "on"})
        assert len(reader.messages("note", 1)) == 1


def test_no_more_watch_than_may(feed: LiveStats, serve: Serve) -> None:
    """One too many is asked to come back; a place that is left is taken."""
    with serve(maximum=2) as server, Watcher(server.address), Watcher(server.address):
        until(lambda: connected(feed) == 2)
        with Watcher(server.address) as third:
            head = third.head()
        assert head.startswith("http/1.1 503")
        assert "retry-after: 30" in head


def test_streams_end_with_the_server(feed: LiveStats, serve: Serve) -> None:
    """It does not wait for watchers to leave."""
    with serve() as server:
        watcher = Watcher(server.address)
        watcher.head()
        until(lambda: connected(feed) == 1)
    with watcher, pytest.raises(EOFError):
        watcher.to_the_end()
    assert connected(feed) == 0


@pytest.mark.slow
def test_a_crowd_changes_no_verdict_and_has_bounded_memory(serve: Serve, feed: LiveStats, tmp_path: Path) -> None:
    """200 watch, 20 of them do not read; the filter's answers are those that it gives alone."""
    pages = [prepared(f"https://h{at % 97}.example/{at}", at % 900, version=at // 900) for at in range(4000)]

    def decided(folder: Path, observers: tuple[Observer, ...]) -> list[Verdict]:
        with NearDuplicateFilter.open(folder, observers=observers) as dedup:
            space = dedup.space_id
            verdicts = []
            for start in range(0, len(pages), 100):
                verdicts += dedup.decide_many(pages[start : start + 100])
                feed.publish("note", {"text": "x" * 20_000})
                if observers:
                    told.wait(0.02)
        assert all(verdict.space == space for verdict in verdicts)
        return verdicts

    def told_more() -> int:
        feed.publish("note", {"text": "x" * 20_000})
        return feed.watchers()[1]

    told = threading.Event()
    alone = decided(tmp_path / "alone", ())
    with serve() as server, Crowd(server.address, 180, 20) as crowd:
        until(lambda: connected(feed) == 200)
        before = resident_bytes()
        watched = decided(tmp_path / "watched", (feed,))
        until(lambda: told_more() == 20 and min(crowd.got.values()) > 1 << 20)
        grown = resident_bytes() - before
        assert connected(feed) == 180
    assert watched == alone
    assert grown < 128 << 20, grown
    assert feed.newest.number == sum(verdict.duplicate_of is not None for verdict in alone)


def resident_bytes() -> int:
    """Of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_token_guards_the_stream_too(feed: LiveStats) -> None:
    """As every other route."""
    from dedup_service.interfaces.http.access_guard import Token

    registry, token = Metrics(feed=feed).registry, Token("correct-horse-battery")
    with dashboard(Watched(feed=feed), registry, Address("127.0.0.1", 0), token) as server:
        for path in ("/events", "/api/stats", "/api/duplicates", "/metrics"):
            with socket.create_connection((server.address.host, server.address.port)) as line:
                line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                assert line.recv(100).startswith(b"HTTP/1.1 401")
