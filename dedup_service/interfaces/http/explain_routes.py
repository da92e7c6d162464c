"""Questions that take a while, answered one at a time in a thread of their own.

An explanation segments texts and reads the log: some 20 ms of this process. Many at once would be in the way of the
stream, so they take turns, and few may wait. One thread also means one vocabulary: fingerprinters keep one a thread.

`/api/why` and `/api/corrections`: why a page has its verdict, and what people know better. Fields: docs/why.md.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dedup_service.core.errors import ConfigurationError, RecordError, TwinsieveError
from dedup_service.interfaces.explain_json import VERSION, correction_to_dict, explanation_to_dict
from dedup_service.runtime.explain import Explainer, UnknownPageError
from dedup_service.runtime.explain.correcting import CorrectionRequest, Corrections
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.display_safe import MAX_URL, cut, shown

__all__ = ["BadRequestError", "ExplainBackend", "ExplainWorker", "explain_routes", "refusal"]

MAX_WAITING = 8
CLOSE_S = 30.0

_encode = msgspec.json.Encoder().encode


class BadRequestError(Exception):
    """A request that cannot be understood, and what it should be."""


class ExplainWorker:
    """The thread, and who waits for it. Used on one event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="twinsieve-why")
        self._waiting = 0

    def close(self, last: Callable[[], None]) -> None:
        """End the thread, what it has begun and then `last` done in it; nobody is answered any more."""
        done = self._thread.submit(last)
        self._thread.shutdown(wait=False)
        done.result(CLOSE_S)

    async def answer(self, ask: Callable[[], Any], *, status: int = 200) -> Response:
        """Return what `ask` gives as JSON, or what it raised as an error."""
        if self._waiting >= MAX_WAITING:
            return refusal(503, "too many ask at once; try again in a moment")
        self._waiting += 1
        try:
            value = await asyncio.wrap_future(self._thread.submit(ask))
        except (BadRequestError, RecordError, ConfigurationError) as error:
            return refusal(400, str(error))
        except UnknownPageError as error:
            return refusal(404, str(error))
        except (TwinsieveError, OSError) as error:
            return refusal(503, str(error))
        finally:
            self._waiting -= 1
        return Response(_encode(value), status_code=status, media_type="application/json")


def refusal(status: int, error: str) -> Response:
    """Return an error as JSON; what a stranger wrote is cut and cleaned in it."""
    return JSONResponse({"error": shown(cut(error, 2 * MAX_URL))}, status_code=status)


MAX_NEIGHBOURS = 20
ROWS, MAX_ROWS = 100, 1000
MAX_ADDRESS = 10_000

EFFECT = "in force from the next delivery of either page; verdicts given so far stay"


class ExplainBackend:
    """What the routes ask; each is made when it is first needed, in the thread that asks. close: lets go of it."""

    def __init__(
        self,
        explainer: Callable[[], Explainer],
        corrections: Callable[[], Corrections],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._make = explainer, corrections
        self._close = close
        self.asking = ExplainWorker()
        self._explainer: Explainer | None = None
        self._corrections: Corrections | None = None

    def close(self) -> None:
        """Let go of everything, in the thread that asks."""
        self.asking.close(self._close)

    @property
    def explainer(self) -> Explainer:
        """Who explains."""
        self._explainer = self._explainer or self._make[0]()
        return self._explainer

    @property
    def corrections(self) -> Corrections:
        """Who takes corrections."""
        self._corrections = self._corrections or self._make[1]()
        return self._corrections


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    url: str | int
    of: str | int
    duplicate: bool
    reason: str = ""


_body = msgspec.json.Decoder(_Body)


def explain_routes(feed: LiveStats, backend: ExplainBackend) -> list[BaseRoute]:
    """Return the routes that answer from `backend`; corrections are told through `feed`."""
    asking = backend.asking

    async def why(request: Request) -> Response:
        try:
            question = _question(request)
        except BadRequestError as error:
            return refusal(400, str(error))
        return await asking.answer(lambda: _why(backend, *question))

    async def audit(request: Request) -> Response:
        try:
            limit = _number(request, "limit", 1, MAX_ROWS) or ROWS
        except BadRequestError as error:
            return refusal(400, str(error))
        return await asking.answer(lambda: _audit(backend, limit))

    async def correct(request: Request) -> Response:
        try:
            body = _body.decode(await request.body())
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return refusal(400, f'send {{"url", "of", "duplicate": true|false, "reason"}}: {error}')
        by = request.client.host if request.client else None
        return await asking.answer(lambda: _correct(backend, feed, body, by), status=201)

    return [
        Route("/api/why", why),
        Route("/api/corrections", audit, methods=["GET"]),
        Route("/api/corrections", correct, methods=["POST"]),
    ]


def _question(request: Request) -> tuple[str | int, str | int | None, int | None]:
    """Return which page is asked about, with which other one, and how many neighbours."""
    url, sequence = request.query_params.get("url", "").strip(), _number(request, "sequence", 1, 1 << 53)
    if bool(url) == (sequence is not None):
        raise BadRequestError("name the page: url=, or sequence=")
    of = request.query_params.get("of", "").strip()
    if max(len(url), len(of)) > MAX_ADDRESS:
        raise BadRequestError(f"an address has at most {MAX_ADDRESS} characters")
    other = int(of) if _is_number(of) else of or None
    return url or sequence or 0, other, _number(request, "neighbours", 0, MAX_NEIGHBOURS)


def _why(backend: ExplainBackend, page: str | int, of: str | int | None, neighbours: int | None) -> dict[str, Any]:
    return explanation_to_dict(backend.explainer.explain(page, compare_with=of, neighbours=neighbours))


def _audit(backend: ExplainBackend, limit: int) -> dict[str, Any]:
    newest = list(reversed(backend.corrections.all()))[:limit]
    return {"version": VERSION, "rows": [correction_to_dict(correction) for correction in newest]}


def _correct(backend: ExplainBackend, feed: LiveStats, body: _Body, by: str | None) -> dict[str, Any]:
    url, of = (at.strip() if isinstance(at, str) else at for at in (body.url, body.of))
    said = CorrectionRequest(url=url, original=of, duplicate=body.duplicate, reason=body.reason.strip(), by=by)
    values = correction_to_dict(backend.corrections.add(said))
    feed.publish("correction", values)
    return {"version": VERSION, "correction": values, "effect": EFFECT}


def _number(request: Request, name: str, minimum: int, maximum: int) -> int | None:
    text = request.query_params.get(name)
    if not text:
        return None
    if not _is_number(text) or not minimum <= int(text) <= maximum:
        raise BadRequestError(f"{name} is a whole number from {minimum} to {maximum}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16
