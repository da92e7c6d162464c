"""Clients that claim to be somebody else, send bodies without an end, or leave in the middle of one."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dedup_service.core.page import Page
from dedup_service.interfaces.http.access_guard import Token
from dedup_service.interfaces.http.dashboard import serve_dashboard
from dedup_service.interfaces.http.explain_backends import DashboardSources
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.live_stats import LiveStats
from tests.interfaces.cli.running import article
from tests.interfaces.http.raw import Line, request

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
    def serve(token: str | None = None) -> Iterator[HttpServer]:
        with serve_dashboard(
            DashboardSources(live_stats=live_stats, dedup=dedup),
            Metrics(live_stats=live_stats).registry,
            Address("127.0.0.1", 0),
            None if token is None else Token(token),
            more=[Route("/who", who)],
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


def test_the_host_header_does_not_name_the_page(serving: Serving) -> None:
    """A path or a query in it opens nothing."""
    with serving(SECRET) as server:
        for host in (f"localhost/?token={SECRET}&a=", "localhost/livez?", "localhost#", "localhost@evil.example"):
            assert ask(server, "GET", "/who", Host=host)[0] in {400, 401, 403}


@pytest.mark.parametrize("headers", [{"Transfer_Encoding": "chunked"}, {"Content_Length": str(1 << 40)}])
def test_a_body_without_end_is_refused_unread(serving: Serving, headers: dict[str, str]) -> None:
    """`/api/corrections` reads 64 KiB, and only of a body whose length is known."""
    with serving() as server, Line(server.address) as line:
        line.send(request("POST", "/api/corrections", Content_Type="application/json", **headers))
        assert line.answer().split()[1] in {b"411", b"413"}


def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    """A stranger cannot fill the log with tracebacks."""
    with serving() as server:
        for _ in range(3):
            with Line(server.address) as line:
                line.send(request("POST", "/api/corrections", b"{", Content_Length="1000"))
        assert ask(server, "GET", "/who")[0] == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
