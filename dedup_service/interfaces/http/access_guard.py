"""The access guard: what every request passes before a route sees it, and the headers of every answer.

Checks, in this order:

1. On loopback and without a token, the Host header: the host name of another site may resolve to 127.0.0.1, and its
   page can then send requests through the user's browser (DNS rebinding). It has no token.
2. The token, if there is one. Without a token, a dashboard may only listen on loopback (`token_for`).
3. For all methods but GET and HEAD: the request comes from our own page, is JSON, and is short (cross-site
   request forgery).

Invariant: a route behind the guard does none of this itself, and cannot forget it.
Source: OWASP cheat sheets on CSRF and HTTP headers; W3C Fetch Metadata.
"""

import hashlib
import hmac
import ipaddress
import os
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.http.page_routes import token_page
from dedup_service.interfaces.http.server import Address

ENV_VARIABLE = "TWINSIEVE_DASHBOARD_TOKEN"
MIN_TOKEN_LENGTH = 16
GENERATE_COMMAND = 'python -c "import secrets; print(secrets.token_urlsafe())"'
COOKIE = "twinsieve_dashboard"
MAX_BODY = 64 << 10
SAFE = frozenset({"GET", "HEAD"})
PROBES = frozenset({"/startupz", "/livez", "/readyz"})

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


class Token:
    """A secret, compared in constant time. cookie: what a browser sends instead, once it sent the secret."""

    def __init__(self, text: str) -> None:
        self._digest = _digest(text)
        self.cookie = hmac.new(text.encode(), b"twinsieve dashboard cookie", hashlib.sha256).hexdigest()

    def is_token(self, text: str) -> bool:
        """Whether `text` is the secret itself."""
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


def token_for(address: Address, configured: str | None = None) -> Token | None:
    """Return the token of a dashboard at `address`, or None: only loopback needs no token.

    configured: the token of a setting; without one, the environment variable counts. ConfigurationError if a token is
    needed, or if this one is no secret.
    """
    text = configured or os.environ.get(ENV_VARIABLE) or None
    if text is None:
        if is_loopback(address.host):
            return None
        raise ConfigurationError(
            f"a dashboard at {address} can be reached from other machines, so it needs a token: "
            f"make one with {GENERATE_COMMAND} and set {ENV_VARIABLE}; or give a port without a host, then "
            " only this machine can connect"
        )
    if len(text) < MIN_TOKEN_LENGTH or not text.isascii() or not text.isprintable():
        raise ConfigurationError(
            f"the dashboard's token has {len(text)} characters, but it needs at least {MIN_TOKEN_LENGTH}, all of them "
            f"printable ASCII: make one with {GENERATE_COMMAND}"
        )
    return Token(text)


def _digest(text: str) -> bytes:
    """Return a hash, so that a comparison does not reveal the length of the secret either."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class AccessGuard:
    """ASGI middleware that guards an application.

    token: opens the application; None if it needs none. local: it is bound to loopback, so without a token Host
    must name this machine. unguarded: paths that are open to everyone.
    """

    def __init__(self, app: ASGIApp, *, token: Token | None, local: bool, unguarded: frozenset[str] = PROBES) -> None:
        self._app = app
        self._token = token
        self._only_local_names = local and token is None
        self._unguarded = unguarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it on to the application."""
        if scope["type"] != "http" or scope["path"] in self._unguarded:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
            return
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that does not pass, None if it does."""
        if self._only_local_names and _host_name(request.headers.get("host", "")) not in LOCAL_NAMES:
            return _refused(403, "the Host header does not name this machine: use localhost, or bind to an address")
        if self._token is not None and (answer := _check_token(request, self._token)) is not None:
            return answer
        return None if request.method in SAFE else _check_origin(request.headers)


def _check_token(request: Request, token: Token) -> Response | None:
    """Return None for a request with token or cookie; a browser that sends the token gets the cookie."""
    bearer, cookie, query = _bearer(request.headers), _cookie(request.headers), _query_token(request)
    if bearer is not None and token.is_token(bearer):
        return None
    if query is not None:
        return _welcome(request, token) if token.is_token(query) else _unauthorised(request)
    return None if cookie is not None and token.is_cookie(cookie) else _unauthorised(request)


def _bearer(headers: Headers) -> str | None:
    kind, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else None


def _cookie(headers: Headers) -> str | None:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def _query_token(request: Request) -> str | None:
    """Return the token in the query of the page's address, if there is one."""
    if request.scope["path"] != "/" or request.method != "GET":  # `request.url` is made from the Host header
        return None
    return next(iter(parse_qs(request.scope["query_string"].decode("latin-1")).get("token", [])), None)


def _welcome(request: Request, token: Token) -> Response:
    """Set the cookie, and let the browser request the page again, without the token in the address.

    A Refresh header does this, not a redirect: after a redirect, a browser that came from another site does
    not send a strict cookie.
    """
    answer = Response("Welcome.\n", media_type="text/plain", headers={"refresh": "0; url=/"})
    secure = request.scope["scheme"] == "https"
    answer.set_cookie(COOKIE, token.cookie, path="/", httponly=True, samesite="strict", secure=secure)
    return answer


def _check_origin(headers: Headers) -> Response | None:
    """Return None if a request to change something is JSON, from our own page or from no browser."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        return _refused(403, "the request comes from a page of another site")
    if site not in {None, "same-origin", "none"}:
        return _refused(403, "the request comes from a page of another site")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _refused(415, "send the body as application/json")
    length = headers.get("content-length", "")
    if (
        not (length.isascii() and length.isdecimal()) or "transfer-encoding" in headers
    ):  # with a length, the server reads no further
        return _refused(411, "send a Content-Length header")
    size = length.lstrip("0")  # leading zeros are allowed, and would hide the length in its first digits
    too_long = len(size) > 12 or int(size or "0") > MAX_BODY
    return _refused(413, f"the body is longer than {MAX_BODY} bytes") if too_long else None


def _host_name(host: str) -> str:
    """Return the name in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _refused(status: int, error: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": error}, status_code=status, headers=headers)


def _unauthorised(request: Request) -> Response:
    """Ask for the token: with a form if a person opens a page, with one line for programs."""
    challenge = {"www-authenticate": "Bearer"}
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(token_page(), status_code=401, headers=challenge)
    advice = "send the header Authorization: Bearer TOKEN, or open /?token=TOKEN once in a browser"
    return _refused(401, f"this dashboard needs its token: {advice}", challenge)


def _with_headers(send: Send) -> Send:
    """Return a `send` that adds our headers; a route may set `cache-control` itself."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return guarded
