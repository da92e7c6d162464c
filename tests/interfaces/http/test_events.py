"""`/events` with a real server and real sockets."""

import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import msgspec
import pytest

from dedup_service.interfaces.http.dashboard import serve_dashboard
from dedup_service.interfaces.http.event_stream import EventHub
from dedup_service.interfaces.http.explain_backends import DashboardSources
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.runtime.live_stats import LiveStats
from tests.interfaces.http.streams import Watcher, until
from tests.runtime.live_stats.decided import copy_of, undecided, unique

Serve = Callable[..., AbstractContextManager[HttpServer]]


@pytest.fixture
def live_stats() -> LiveStats:
    """The live stats that are streamed."""
    return LiveStats("filter")


@pytest.fixture
def serve(live_stats: LiveStats) -> Serve:
    """Return a function that serves them on a free port, with a tick of 50 ms."""

    @contextmanager
    def serving(**options: float) -> Iterator[HttpServer]:
        hub = EventHub(live_stats, **{"tick_s": 0.05, **options})  # type: ignore[arg-type]
        with serve_dashboard(
            DashboardSources(live_stats=live_stats),
            Metrics(live_stats=live_stats).registry,
            Address("127.0.0.1", 0),
            None,
            hub=hub,
        ) as server:
            yield server

    return serving


def connected(live_stats: LiveStats) -> int:
    """Return the number of open streams."""
    return live_stats.watchers()[0]


def test_a_watcher_receives_ticks_and_duplicates(live_stats: LiveStats, serve: Serve) -> None:
    """They come as an event stream that is not cached and names a time for reconnecting."""
    with serve() as server, Watcher(server.address) as watcher:
        head = watcher.head()
        assert head.startswith("http/1.1 200")
        assert "content-type: text/event-stream" in head
        assert "cache-control: no-store" in head
        assert watcher.message() == {"retry": "2000"}
        live_stats.decided([unique(1), copy_of(2)])
        tick, rows = watcher.message(), watcher.message()
        assert (tick["event"], rows["event"]) == ("tick", "duplicates")
        assert msgspec.json.decode(tick["data"])["summary"]["pages"] == 2
        assert msgspec.json.decode(rows["data"])["rows"][0]["sequence"] == 2
        stream, _, last = live_stats.events.last_id.rpartition("-")  # a further tick may have come
        assert rows["id"] in {f"{stream}-{number}" for number in range(1, int(last) + 1)}


def test_the_newest_pages_are_searched_and_chosen_by_verdict(live_stats: LiveStats, serve: Serve) -> None:
    """A part of an address, title, host or id of either page, in any case; a verdict that there is not is refused."""
    pages = [copy_of(3, title="The FERRY", url="https://b.example/x", of_url="https://c.example/y"), copy_of(4)]
    live_stats.decided([unique(1), undecided(2, "no text"), *pages])
    with serve() as server:

        def found(query: str) -> list[int]:
            with urllib.request.urlopen(f"http://{server.address}/api/duplicates?{query}") as answer:
                return [row["sequence"] for row in msgspec.json.decode(answer.read())["rows"]]

        assert [found(query) for query in ("", "verdict=unique", "verdict=undecided", "verdict=updated")] == [
            [4, 3], [1], [2], [],
        ]  # fmt: skip
        for text in ("ferry", "B.example/x", "c.example"):
            assert found(f"search={text}") == [3]
        assert found("search=nowhere") == []
        with pytest.raises(urllib.error.HTTPError, match="400"):
            found("verdict=good")


def test_a_watcher_that_reconnects_receives_what_it_missed(live_stats: LiveStats, serve: Serve) -> None:
    """The id of its last message decides: no message comes twice, none is left out."""
    with serve() as server:
        with Watcher(server.address) as watcher:
            watcher.head()
            live_stats.publish("note", {"number": 0})
            last = watcher.messages("note", 1)[0]["id"]
        until(lambda: connected(live_stats) == 0)
        for number in range(1, 6):
            live_stats.publish("note", {"number": number})
        until(lambda: live_stats.events.number >= int(last.partition("-")[2]) + 6)
        with Watcher(server.address, last_id=last) as watcher:
            watcher.head()
            missed = watcher.messages("note", 5)
        assert [msgspec.json.decode(message["data"])["number"] for message in missed] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("last", ["otherrun-3", "nonsense"])
def test_an_id_of_another_run_resets_the_page(live_stats: LiveStats, serve: Serve, last: str) -> None:
    """The page then requests all figures again."""
    live_stats.events.add("note", {})
    with serve() as server, Watcher(server.address, last_id=last) as watcher:
        watcher.head()
        assert watcher.message() == {"retry": "2000"}
        assert watcher.message() == {"id": live_stats.events.last_id, "event": "reset", "data": "{}"}


def test_a_silent_stream_is_kept_alive(serve: Serve) -> None:
    """A comment is sent from time to time."""
    with serve(ping_s=0.2) as server, Watcher(server.address) as watcher:
        watcher.head()
        watcher.message()
        assert [watcher.message() for _ in range(2)] == [{"": "ping"}] * 2


def test_a_watcher_that_does_not_read_is_cut_off(live_stats: LiveStats, serve: Serve) -> None:
    """Once its queue is full, it is cut off; others still receive messages, and publishing never blocks."""
    with (
        serve(max_queued=4) as server,
        Watcher(server.address, small=True) as idler,
        Watcher(server.address) as reader,
    ):
        reader.head()
        idler.head()
        sent = 0
        while live_stats.watchers()[1] == 0:
            live_stats.publish("note", {"text": "x" * 200_000})
            sent += 1
            reader.messages("note", 1)
            assert sent < 200, "it was never cut off"
        assert connected(live_stats) == 1
        with pytest.raises((EOFError, OSError)):
            idler.to_the_end()
        live_stats.publish("note", {"text": "on"})
        assert len(reader.messages("note", 1)) == 1


def test_the_number_of_streams_is_limited(live_stats: LiveStats, serve: Serve) -> None:
    """A stream beyond the limit is refused with a time for the next attempt."""
    with serve(max_watchers=2) as server, Watcher(server.address), Watcher(server.address):
        until(lambda: connected(live_stats) == 2)
        with Watcher(server.address) as third:
            head = third.head()
        assert head.startswith("http/1.1 503")
        assert "retry-after: 30" in head


def test_streams_end_with_the_server(live_stats: LiveStats, serve: Serve) -> None:
    """The server does not wait for watchers to disconnect."""
    with serve() as server:
        watcher = Watcher(server.address)
        watcher.head()
        until(lambda: connected(live_stats) == 1)
    with watcher, pytest.raises(EOFError):
        watcher.to_the_end()
    assert connected(live_stats) == 0


def test_the_stream_needs_the_token_too(live_stats: LiveStats) -> None:
    """All routes but the probes are behind the access guard."""
    from dedup_service.interfaces.http.access_guard import Token

    registry, token = Metrics(live_stats=live_stats).registry, Token("correct-horse-battery")
    with serve_dashboard(DashboardSources(live_stats=live_stats), registry, Address("127.0.0.1", 0), token) as server:
        for path in ("/events", "/api/stats", "/api/duplicates", "/metrics"):
            with socket.create_connection((server.address.host, server.address.port)) as line:
                line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                assert line.recv(100).startswith(b"HTTP/1.1 401")
