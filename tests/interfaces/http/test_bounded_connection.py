"""Clients that send too slowly, too much, or do not read: each costs one connection, for a bounded time."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dedup_service.interfaces.http.bounded_connection import ConnectionLimits
from dedup_service.interfaces.http.dashboard import serve_dashboard
from dedup_service.interfaces.http.event_stream import EventHub
from dedup_service.interfaces.http.explain_backends import DashboardSources
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.live_stats import LiveStats
from tests.interfaces.http.raw import Line, request
from tests.interfaces.http.streams import Watcher, until

SOON = ConnectionLimits(receive_s=0.5, send_s=0.5)
LONG = b"x" * (8 << 20)
Serving = Callable[..., AbstractContextManager[HttpServer]]


async def live(asked: Request) -> Response:
    """A route that answers at once."""
    return PlainTextResponse("live\n")


async def long(asked: Request) -> Response:
    """A route with more to say than the system buffers."""
    return PlainTextResponse(LONG)


@pytest.fixture
def live_stats() -> LiveStats:
    """The live stats that are streamed."""
    return LiveStats("filter")


@pytest.fixture
def serving(tmp_path: Path, live_stats: LiveStats) -> Serving:
    """Return a function that serves the dashboard of a filter, with two more routes."""

    @contextmanager
    def serve(limits: ConnectionLimits | None) -> Iterator[HttpServer]:
        with (
            NearDuplicateFilter.open(tmp_path / "state") as dedup,
            serve_dashboard(
                DashboardSources(live_stats=live_stats, dedup=dedup),
                Metrics(live_stats=live_stats).registry,
                Address("127.0.0.1", 0),
                None,
                more=[Route("/livez", live), Route("/long", long)],
                hub=EventHub(live_stats, tick_s=0.05, max_watchers=3),
                limits=limits,
            ) as server,
        ):
            yield server

    return serve


BEGUN = {
    "nothing": b"",
    "half a head": b"GET /livez HTTP/1.1\r\nHost: loc",
    "a head without an end": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n",
    "half a body": request("POST", "/api/corrections", b"{", Content_Length="1000"),
    "a body after its answer": request("GET", "/livez", b"x", Content_Length="1000000000"),
    "half a second request": request() + b"GET /livez HTTP/1.1\r\nHost",
}


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN.keys())
def test_a_request_that_does_not_arrive_ends_the_connection(serving: Serving, begun: bytes) -> None:
    """Wherever it stops; others are answered meanwhile, and nothing is logged as an error of ours."""
    with serving(SOON) as server, Line(server.address) as slow, Line(server.address) as other:
        slow.send(begun)
        other.send(request(Connection="close"))
        assert other.answer().startswith(b"HTTP/1.1 200")
        assert slow.is_ended()


def test_a_head_that_comes_line_by_line_ends_the_connection(serving: Serving) -> None:
    """The time is for the whole request: a further line does not extend it."""
    with serving(SOON) as server, Line(server.address) as slow:
        slow.send(b"GET /livez HTTP/1.1\r\n")
        slow.socket.settimeout(0.1)  # time between two lines, in which the server may end the connection
        assert sends(slow, b"x: y\r\n", limit=200) < 200


def test_a_head_is_bounded(serving: Serving) -> None:
    """One that never ends is refused at 16 KiB, whatever the time."""
    with serving(None) as server, Line(server.address) as line:
        line.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nx: ")
        line.socket.settimeout(0.01)
        assert sends(line, b"x" * 4096, limit=1000) < 1000


def sends(line: Line, data: bytes, *, limit: int) -> int:
    """Return how often `data` can be sent before the server ends the connection, at most `limit` times."""
    for number in range(limit):
        try:
            line.send(data)
            while line.answer():
                pass
        except TimeoutError:
            continue
        except ConnectionError:
            return number
        return number
    return limit


@pytest.mark.parametrize("headers", [{"Transfer_Encoding": "chunked"}, {"Content_Length": str(1 << 40)}])
def test_a_body_without_end_is_refused_unread(serving: Serving, headers: dict[str, str]) -> None:
    """`/api/corrections` reads 64 KiB, and only of a body whose length is known."""
    with serving(SOON) as server, Line(server.address) as line:
        line.send(request("POST", "/api/corrections", Content_Type="application/json", **headers))
        assert line.answer().split()[1] in {b"411", b"413"}
        assert line.is_ended()


def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    """A stranger cannot fill the log with tracebacks."""
    with serving(SOON) as server:
        for _ in range(3):
            with Line(server.address) as line:
                line.send(request("POST", "/api/corrections", b"{", Content_Length="1000"))
        with Line(server.address) as line:
            line.send(request("POST", "/api/corrections", b"{", Content_Length="1000"))
            assert line.is_ended()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_client_that_does_not_read_is_cut_off(serving: Serving) -> None:
    """The rest of its answer is discarded: it gets less than the whole."""
    with serving(SOON) as server, Line(server.address, small=True) as idler, Line(server.address) as reader:
        idler.send(request(path="/long"))
        reader.send(request(path="/long", Connection="close"))
        assert received(reader) > len(LONG)
        until(lambda: server.connections == 0)
        assert received(idler) < len(LONG)


def received(line: Line) -> int:
    """Return the number of bytes until the connection ends."""
    total = 0
    while part := line.answer():
        total += len(part)
    return total


def test_idle_connections_shut_nobody_out(serving: Serving, live_stats: LiveStats) -> None:
    """Beyond the limit, the oldest one that asks nothing is cut off; streams and answers go on."""
    limits = ConnectionLimits(connections=8)
    with serving(limits) as server, ExitStack() as stack:
        watchers = [stack.enter_context(Watcher(server.address)) for _ in range(3)]
        assert all(watcher.head().startswith("http/1.1 200") for watcher in watchers)
        for _ in range(30):
            stack.enter_context(Line(server.address))
            with Line(server.address) as asking:
                asking.send(request(Connection="close"))
                assert asking.answer().startswith(b"HTTP/1.1 200")
        until(lambda: server.connections <= limits.connections)
        live_stats.publish("note", {})
        assert [len(watcher.messages("note", 1)) for watcher in watchers] == [1, 1, 1]


def test_clients_that_do_not_read_shut_nobody_out(serving: Serving, live_stats: LiveStats) -> None:
    """If every connection has an answer in progress, the oldest is cut off that is no stream."""
    limits = ConnectionLimits(connections=8)
    with serving(limits) as server, ExitStack() as stack:
        watcher = stack.enter_context(Watcher(server.address))
        watcher.head()
        for _ in range(20):
            stack.enter_context(Line(server.address, small=True)).send(request(path="/long"))
        with Line(server.address) as asking:
            asking.send(request(Connection="close"))
            assert asking.answer().startswith(b"HTTP/1.1 200")
        until(lambda: server.connections <= limits.connections)
        live_stats.publish("note", {})
        assert len(watcher.messages("note", 1)) == 1


def test_a_correction_in_time_is_recorded(serving: Serving) -> None:
    """A body in two parts is one body."""
    body = json.dumps({"url": "https://a.example/1", "of": "https://a.example/2", "duplicate": True}).encode()
    head = request("POST", "/api/corrections", b"", Content_Type="application/json", Content_Length=str(len(body)))
    with serving(ConnectionLimits()) as server, Line(server.address) as line:
        line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.send(head + body[:10])
        line.send(body[10:])
        assert line.answer().split()[1] in {b"201", b"404"}
