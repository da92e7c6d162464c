"""The token that opens a dashboard to other machines, and whether one is needed.

What every request passes before a route sees it, and what every answer carries.

In this order: rate; on loopback the Host header, since a web page elsewhere can have its own name lead to 127.0.0.1 and
then ask in a browser's name (DNS rebinding); the token, where there is one; for everything but GET and HEAD that the
request comes from our own page and is JSON, and not long (cross-site request forgery).
Invariant: a route behind the guard has none of this to do, and cannot forget it.
Source: OWASP cheat sheets on CSRF and HTTP headers; W3C Fetch Metadata.
"""

import hashlib
import hmac
import ipaddress
import math
import os
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.http.page_routes import token_page
from dedup_service.interfaces.http.rate_limit import RateLimiter
from dedup_service.interfaces.http.server import Address

__all__ = ["COOKIE", "HOW_TO", "POLICY", "VARIABLE", "AccessGuard", "Token", "is_loopback", "token_for"]

VARIABLE = "TWINSIEVE_DASHBOARD_TOKEN"
MIN = 16
HOW_TO = 'python -c "import secrets; print(secrets.token_urlsafe())"'


class Token:
    """A secret, compared in constant time. cookie: what a browser that has shown it carries instead."""

    def __init__(self, text: str) -> None:
        self._digest = _digest(text)
        self.cookie = hmac.new(text.encode(), b"twinsieve dashboard cookie", hashlib.sha256).hexdigest()

    def is_given(self, text: str) -> bool:
        """Whether `text` is the secret."""
        return hmac.compare_digest(_digest(text), self._digest)

    def is_cookie(self, text: str) -> bool:
        """Whether `text` is the cookie."""
        return hmac.compare_digest(_digest(text), _digest(self.cookie))


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to `host`.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_for(address: Address, given: str | None, *, name: str = "--dashboard-token") -> Token | None:
    """Return the token for a dashboard at `address`: `given`, or the environment's; None on loopback without one.

    name: of the setting, for messages. ConfigurationError where one is needed, or this one is too short to be a secret.
    """
    text = given or os.environ.get(VARIABLE) or None
    if text is None:
        if is_loopback(address.host):
            return None
        raise ConfigurationError(
            f"a dashboard at {address} can be reached from other machines, so it needs a token: make one with {HOW_TO} "
            f"and give it as {VARIABLE} (or {name}); or leave the host out, then only this machine can connect"
        )
    if len(text) < MIN or not text.isascii() or not text.isprintable():
        raise ConfigurationError(
            f"the dashboard's token has {len(text)} characters, at least {MIN} of ASCII make one: {HOW_TO}"
        )
    return Token(text)


def _digest(text: str) -> bytes:
    """Of equal length whatever was given, so that a comparison tells nothing of the secret's length either."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


COOKIE = "twinsieve_dashboard"
MAX_BODY = 64 << 10
SAFE = frozenset({"GET", "HEAD"})
PROBES = frozenset({"/livez", "/readyz"})

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class AccessGuard:
    """Wraps an application.

    token: that opens it, None for none. local: it is bound to loopback, so Host must name this machine.
    unguarded: paths that anybody may ask. requests, failures: of one address; a wrong token costs one of the latter.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: Token | None,
        local: bool,
        unguarded: frozenset[str] = PROBES,
        requests: RateLimiter | None = None,
        failures: RateLimiter | None = None,
    ) -> None:
        self._app = app
        self._token = token
        self._local = local
        self._unguarded = unguarded
        self._requests = RateLimiter(300, 50) if requests is None else requests
        self._failures = RateLimiter(10, 0.1) if failures is None else failures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let pass."""
        if scope["type"] != "http" or scope["path"] in self._unguarded:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._answer(request)
        if answer is not None:
            await answer(scope, receive, _with_headers(send))
            return
        await self._app(scope, receive, _with_headers(send))

    def _answer(self, request: Request) -> Response | None:
        """Return what keeps `request` out, None where it may pass."""
        address = request.client.host if request.client else "?"
        if wait_s := self._requests.wait_s(address):
            return _refused(429, "too many requests", {"retry-after": str(math.ceil(wait_s))})
        if self._local and _host_name(request.headers.get("host", "")) not in LOCAL_NAMES:
            return _refused(403, "the Host header does not name this machine: ask localhost, or bind to an address")
        if self._token is not None and (answer := self._unless_known(request, address, self._token)) is not None:
            return answer
        return None if request.method in SAFE else _unless_ours(request.headers)

    def _unless_known(self, request: Request, address: str, token: Token) -> Response | None:
        """Return None for whoever shows the token or its cookie, a cookie for a browser that shows the token."""
        bearer, cookie, asked = _bearer(request.headers), _cookie(request.headers), _asked(request)
        if cookie is not None and token.is_cookie(cookie) and asked is None:
            return None
        if bearer is None and asked is None:
            return _unauthorised(request)
        if wait_s := self._failures.wait_s(address, take=False):
            return _refused(429, "too many wrong tokens", {"retry-after": str(math.ceil(wait_s))})
        if bearer is not None and token.is_given(bearer):
            return None
        if asked is not None and token.is_given(asked):
            return _welcome(request, token)
        self._failures.wait_s(address)
        return _unauthorised(request)


def _bearer(headers: Headers) -> str | None:
    kind, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else None


def _cookie(headers: Headers) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _asked(request: Request) -> str | None:
    """Return the token in the address of the page, where it is there."""
    if request.url.path != "/" or request.method != "GET":
        return None
    return next(iter(parse_qs(request.url.query).get("token", [])), None)


def _welcome(request: Request, token: Token) -> Response:
    """Give the cookie, and have the browser ask again without the token in the address.

    By a Refresh and not by a redirect: a browser that came from another site sends no strict cookie after a redirect.
    """
    answer = Response("Welcome.\n", media_type="text/plain", headers={"refresh": "0; url=/"})
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token.cookie, path="/", httponly=True, samesite="strict", secure=secure)
    return answer


def _unless_ours(headers: Headers) -> Response | None:
    """Return None where a request that changes something comes from our own page, or from no browser, and is JSON."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        return _refused(403, "the request comes from a page of another site")
    if site not in {None, "same-origin", "none"}:
        return _refused(403, "the request comes from a page of another site")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _refused(415, "send application/json")
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdecimal()) or "transfer-encoding" in headers:  # the server reads no more then
        return _refused(411, "say how long the body is")
    return _refused(413, f"the body is longer than {MAX_BODY} bytes") if int(length[:12]) > MAX_BODY else None


def _host_name(host: str) -> str:
    """Return a Host header's name without its port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _refused(status: int, error: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": error}, status_code=status, headers=headers)


def _unauthorised(request: Request) -> Response:
    """Say how to show the token: to a person who opens a page with a form, to programs in one line."""
    challenge = {"www-authenticate": "Bearer"}
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(token_page(), status_code=401, headers=challenge)
    how = "send the header Authorization: Bearer TOKEN, or open /?token=TOKEN once in a browser"
    return _refused(401, f"this dashboard needs its token: {how}", challenge)


def _with_headers(send: Send) -> Send:
    """Return `send` that adds our headers; a route may say itself how long its answer may be kept."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return guarded
