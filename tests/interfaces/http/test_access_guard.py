"""The access guard without a server: the application is called with the scopes that a server would pass."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.http.access_guard import COOKIE, ENV_VARIABLE, MAX_BODY, AccessGuard, Token, token_for
from dedup_service.interfaces.http.server import Address

SECRET = "correct-horse-battery"
Ask = Callable[..., tuple[int, dict[str, str], str]]


async def answer(request: Request) -> Response:
    """A route behind the guard that returns the length of the body."""
    return PlainTextResponse(f"{len(await request.body())}")


def guarded(*, token: str | None = None, local: bool = True) -> Ask:
    """Return a function that sends a request to a guarded application: status, headers and body."""
    routes = [Route(path, answer, methods=["GET", "POST"]) for path in ("/", "/api/stats", "/livez")]
    app = AccessGuard(Starlette(routes=routes), token=None if token is None else Token(token), local=local)

    def ask(
        path: str = "/api/stats",
        *,
        method: str = "GET",
        host: str = "localhost:8090",
        body: bytes = b"",
        **headers: str,
    ) -> tuple[int, dict[str, str], str]:
        path, _, query = path.partition("?")
        pairs = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in pairs.items()],
            "client": ("127.0.0.1", 5000),
            "server": ("127.0.0.1", 8090),
        }
        received = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []

        async def receive() -> Any:
            return received.pop() if received else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(app(scope, receive, send))
        answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], answered, b"".join(message.get("body", b"") for message in sent[1:]).decode()

    return ask


@pytest.mark.parametrize("host", ["localhost", "localhost:8090", "127.0.0.1:1", "[::1]:8090", "LOCALHOST"])
def test_on_loopback_the_names_of_this_machine_are_accepted(host: str) -> None:
    """No token is needed there."""
    assert guarded()(host=host)[0] == 200


@pytest.mark.parametrize("host", ["", "evil.example", "localhost.evil.example:8090", "127.0.0.1.evil.example", "[::2]"])
def test_on_loopback_other_names_are_refused(host: str) -> None:
    """The name of another site's page may resolve to this machine (DNS rebinding)."""
    assert guarded()(host=host)[0] == 403


def test_elsewhere_only_the_token_is_accepted() -> None:
    """It comes as a bearer token; the name in Host does not matter there."""
    ask = guarded(token=SECRET, local=False)
    assert ask(host="crawl.example")[0] == 401
    assert ask(authorization=f"Bearer {SECRET}", host="crawl.example")[0] == 200
    assert ask(authorization=f"bearer  {SECRET} ")[0] == 200
    for wrong in (f"Basic {SECRET}", "Bearer", f"Bearer {SECRET}x", "Bearer \u00e9"):
        assert ask(authorization=wrong)[0] == 401
    assert ask(f"/api/stats?token={SECRET}")[0] == 401


def test_a_browser_sends_the_token_once() -> None:
    """It gets a cookie that scripts cannot read, that other sites cannot send, and that is not the token."""
    ask = guarded(token=SECRET, local=False)
    status, headers, body = ask(f"/?token={SECRET}")
    assert (status, headers["refresh"]) == (200, "0; url=/")
    cookie = headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert SECRET not in cookie + body
    pair = cookie.partition(";")[0]
    assert ask("/", cookie=pair)[0] == 200
    assert ask("/", cookie=f"a=b; {pair}")[0] == 200
    assert ask("/", cookie=f"{COOKIE}={SECRET}")[0] == 401
    assert ask("/?token=wrong-wrong-wrong-wrong", cookie=pair)[0] == 401


def test_the_right_token_passes_after_any_number_of_wrong_ones() -> None:
    """Also from the address that sent them: guesses lock nobody out."""
    ask = guarded(token=SECRET, local=False)
    assert {ask(authorization=f"Bearer guess-number-{at:09}")[0] for at in range(1000)} == {401}
    assert ask(authorization=f"Bearer {SECRET}")[0] == 200
    assert ask("/?token=wrong-wrong-wrong-wrong", authorization=f"Bearer {SECRET}")[0] == 200


def test_on_loopback_a_token_takes_the_place_of_the_name() -> None:
    """A proxy on the same machine passes on the name that its clients used; another site's page has no token."""
    ask = guarded(token=SECRET)
    assert ask(host="crawl.example", authorization=f"Bearer {SECRET}")[0] == 200
    assert ask(host="crawl.example")[0] == 401


def test_probes_need_no_token() -> None:
    """An orchestrator knows neither the token nor the name."""
    assert guarded(token=SECRET, local=False)("/livez", host="10.0.0.7")[0] == 200


def test_every_answer_carries_the_headers() -> None:
    """Answers of routes and of the guard permit no inline scripts, no frames and no guessing of types."""
    ask = guarded(token=SECRET, local=False)
    for _, headers, _ in (
        ask(),
        ask(authorization=f"Bearer {SECRET}"),
        ask("/nowhere", authorization=f"Bearer {SECRET}"),
    ):
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert (policy["default-src"], policy["script-src"], policy["frame-ancestors"]) == (
            "'none'",
            "'self'",
            "'none'",
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


JSON = {"content_type": "application/json; charset=utf-8", "content_length": "2"}


def test_a_request_to_change_something_has_to_come_from_our_page() -> None:
    """It may also come from no browser, and it has to be JSON, which a form cannot send."""
    ask = guarded()
    assert ask(method="POST", body=b"{}", **JSON)[0] == 200
    assert (
        ask(method="POST", body=b"{}", origin="http://localhost:8090", sec_fetch_site="same-origin", **JSON)[0] == 200
    )
    assert ask(method="POST", body=b"{}", origin="http://evil.example", **JSON)[0] == 403
    assert ask(method="POST", body=b"{}", origin="null", **JSON)[0] == 403
    assert ask(method="POST", body=b"{}", origin="http://localhost:9", **JSON)[0] == 403
    assert ask(method="POST", body=b"{}", sec_fetch_site="cross-site", **JSON)[0] == 403
    assert (
        ask(method="POST", body=b"a=b", content_type="application/x-www-form-urlencoded", content_length="3")[0] == 415
    )
    assert ask(method="POST", body=b"{}")[0] == 415


def test_a_body_is_short_and_has_a_length() -> None:
    """The server reads no further than the announced length."""
    ask = guarded()
    assert ask(method="POST", body=b"{}", content_type="application/json")[0] == 411
    assert ask(method="POST", content_type="application/json", content_length=str(MAX_BODY + 1))[0] == 413
    assert ask(method="POST", content_type="application/json", content_length="9" * 30)[0] == 413
    assert ask(method="POST", content_type="application/json", content_length="0" * 12 + "50000000")[0] == 413
    assert ask(method="POST", transfer_encoding="chunked", **JSON)[0] == 411


def test_loopback_needs_no_token_and_any_other_address_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from the option or the environment; the message says how to make one."""
    monkeypatch.delenv(ENV_VARIABLE, raising=False)
    assert token_for(Address("127.0.0.1", 1), None) is None
    assert token_for(Address("::1", 1), None) is None
    with pytest.raises(ConfigurationError, match=r"0\.0\.0\.0:9100 .*token_urlsafe.*TWINSIEVE_DASHBOARD_TOKEN"):
        token_for(Address("0.0.0.0", 9100), None)
    monkeypatch.setenv(ENV_VARIABLE, SECRET)
    for token in (token_for(Address("0.0.0.0", 1), None), token_for(Address("crawl.example", 1), SECRET)):
        assert token is not None
        assert token.is_token(SECRET)
        assert not token.is_token("")


@pytest.mark.parametrize("text", ["short", "schlüssel-mit-umlaut", "with\x00control-characters"])
def test_a_token_that_is_no_secret_is_refused(text: str) -> None:
    """It is too short, or a header cannot carry it."""
    with pytest.raises(ConfigurationError, match="at least 16"):
        token_for(Address("127.0.0.1", 1), text)
