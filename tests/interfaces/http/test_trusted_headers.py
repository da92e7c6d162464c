"""Headers by which a client says who it is: none is believed, unless a named proxy says it."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page
from dedup_service.interfaces.http.access_guard import ENV_VARIABLE, Token, token_for
from dedup_service.interfaces.http.dashboard import serve_dashboard
from dedup_service.interfaces.http.event_stream import EventHub
from dedup_service.interfaces.http.explain_backends import DashboardSources
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.server import Address, HttpServer, checked_proxies
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.live_stats import LiveStats
from tests.interfaces.cli.running import article
from tests.interfaces.http.raw import Line, request
from tests.interfaces.http.streams import Watcher

STRANGER = "203.0.113.9"
SECRET = "correct-horse-battery"
CLAIMS = {
    "X_Forwarded_For": STRANGER,
    "X_Forwarded_Proto": "https",
    "X_Forwarded_Host": "localhost",
    "X_Forwarded_Prefix": "/livez",
    "X_Real_IP": STRANGER,
    "X_Original_URL": "/livez",
    "X_HTTP_Method_Override": "POST",
    "Forwarded": f"for={STRANGER};proto=https;host=localhost",
}
Serving = Callable[..., AbstractContextManager[HttpServer]]


async def who(asked: Request) -> Response:
    """A route that says what the application sees of a request."""
    client = asked.client.host if asked.client else None
    seen = {"client": client, "scheme": asked.url.scheme, "path": asked.scope["path"], "method": asked.method}
    return JSONResponse(seen)


@pytest.fixture
def dedup(tmp_path: Path) -> Iterator[NearDuplicateFilter]:
    """A filter that has seen two pages."""
    with NearDuplicateFilter.open(tmp_path / "state") as opened:
        for number in (1, 2):
            url = f"https://a.example/{number}"
            page = Page(url=url, canonical_url=url, id=f"p{number}", title="t", text=article(number))
            opened.check(page)
        yield opened


@pytest.fixture
def serving(dedup: NearDuplicateFilter) -> Serving:
    """Return a function that serves the dashboard of the filter."""
    live_stats = LiveStats("filter")

    @contextmanager
    def serve(token: str | None = None, **options: Any) -> Iterator[HttpServer]:
        with serve_dashboard(
            DashboardSources(live_stats=live_stats, dedup=dedup),
            Metrics(live_stats=live_stats).registry,
            Address("127.0.0.1", 0),
            None if token is None else Token(token),
            more=[Route("/who", who)],
            **options,
        ) as server:
            yield server

    return serve


def ask(server: HttpServer, *arguments: Any, **headers: str) -> tuple[int, bytes, Any]:
    """Return status, head and the JSON of an answer, None if it is none."""
    with Line(server.address) as line:
        line.send(request(*arguments, Connection="close", **headers))
        answer = b""
        while part := line.answer():
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.lower(), json.loads(body) if b"application/json" in head else None


def test_x_forwarded_for_does_not_name_anyone_in_the_audit_trail(serving: Serving) -> None:
    """A correction is recorded with the address of the connection, whatever its headers say."""
    body = json.dumps({"url": "https://a.example/1", "of": "https://a.example/2", "duplicate": True}).encode()
    with serving() as server:
        status, _, answer = ask(server, "POST", "/api/corrections", body, **CLAIMS)
        assert (status, answer["correction"]["by"]) == (201, "127.0.0.1")
        [row] = ask(server, "GET", "/api/corrections")[2]["rows"]
    assert row["by"] == "127.0.0.1"


def test_no_header_changes_what_the_application_sees(serving: Serving) -> None:
    """Neither who asks, nor by which scheme, path or method."""
    with serving() as server:
        seen = ask(server, "GET", "/who", **CLAIMS)[2]
    assert seen == {"client": "127.0.0.1", "scheme": "http", "path": "/who", "method": "GET"}


def test_wrong_tokens_count_for_the_connection(serving: Serving) -> None:
    """A client that invents an address for each attempt is limited all the same."""
    with serving(SECRET) as server:
        attempts = [
            ask(server, "GET", "/who", Authorization="Bearer wrong-wrong-wrong", X_Forwarded_For=f"10.0.0.{at}")[0]
            for at in range(12)
        ]
    assert attempts == [401] * 10 + [429] * 2


def test_the_host_header_does_not_name_the_page(serving: Serving) -> None:
    """A path or a query in it opens nothing."""
    with serving(SECRET) as server:
        for host in (f"localhost/?token={SECRET}&a=", "localhost/livez?", "localhost#", "localhost@evil.example"):
            assert ask(server, "GET", "/who", Host=host)[0] in {400, 401, 403}


def test_a_named_proxy_says_who_asks(serving: Serving) -> None:
    """The nearest address that is no proxy counts; a cookie behind HTTPS is sent over HTTPS alone."""
    told = {"X_Forwarded_Proto": "https", "X_Forwarded_For": f"198.51.100.1, {STRANGER}", "Host": "crawl.example"}
    with serving(SECRET, trusted_proxies=["127.0.0.0/8"]) as server:
        seen = ask(server, "GET", "/who", Authorization=f"Bearer {SECRET}", **told)[2]
        head = ask(server, "GET", f"/?token={SECRET}", **told)[1]
    assert (seen["client"], seen["scheme"]) == (STRANGER, "https")
    assert b"; secure" in head
    with serving(SECRET, trusted_proxies=["192.0.2.1"]) as server:
        seen = ask(server, "GET", "/who", Authorization=f"Bearer {SECRET}", **told)[2]
        head = ask(server, "GET", f"/?token={SECRET}", **told)[1]
    assert (seen["client"], seen["scheme"]) == ("127.0.0.1", "http")
    assert b"; secure" not in head


def test_a_watcher_behind_a_proxy_that_does_not_read_is_cut_off() -> None:
    """Its connection is that of the proxy, not the address that the proxy names."""
    live_stats = LiveStats("filter")
    hub = EventHub(live_stats, tick_s=0.05, max_queued=4)
    with (
        serve_dashboard(
            DashboardSources(live_stats=live_stats),
            Metrics(live_stats=live_stats).registry,
            Address("127.0.0.1", 0),
            None,
            hub=hub,
            trusted_proxies=["127.0.0.1"],
        ) as server,
        Watcher(server.address, small=True, headers=f"X-Forwarded-For: {STRANGER}\r\n") as idler,
        Watcher(server.address) as reader,
    ):
        idler.head()
        reader.head()
        cut_off: list[tuple[str, int]] = []
        hub.cut_off = cut_off.append
        for _ in range(200):
            live_stats.publish("note", {"text": "x" * 200_000})
            reader.messages("note", 1)
            if cut_off:
                break
        assert cut_off == [idler.socket.getsockname()]


def test_a_dashboard_behind_a_proxy_needs_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """On loopback as well: the proxy leads other machines there."""
    monkeypatch.delenv(ENV_VARIABLE, raising=False)
    with pytest.raises(ConfigurationError, match="behind a proxy"):
        token_for(Address("127.0.0.1", 9100), None, proxied=True)
    assert token_for(Address("127.0.0.1", 9100), SECRET, proxied=True) is not None


@pytest.mark.parametrize("text", ["*", "proxy.example", "10.0.0.1/8", "10.0.0.7;10.0.0.8", "::1/200"])
def test_what_is_no_address_of_a_proxy_is_refused(text: str) -> None:
    """There is no way to trust everybody."""
    with pytest.raises(ConfigurationError, match="not the address of a proxy"):
        checked_proxies(text)
