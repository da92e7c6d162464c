"""`/api/why` and `/api/corrections`: why a page has its verdict, and what people know better. Fields: docs/why.md."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dedup_service.faces.explained import VERSION, correction_values, explanation_values
from dedup_service.faces.http.asking import Asking, BadRequestError, refusal
from dedup_service.runtime.feed import Feed
from dedup_service.runtime.why import Explainer
from dedup_service.runtime.why.correcting import Corrections, Said

__all__ = ["WhyBackend", "why_routes"]

MOST_NEIGHBOURS = 20
ROWS, MOST_ROWS = 100, 1000
MOST_ADDRESS = 10_000

EFFECT = "in force from the next delivery of either page; verdicts given so far stay"


class WhyBackend:
    """What the routes ask; each is made when it is first needed, in the thread that asks. close: lets go of it."""

    def __init__(
        self,
        explainer: Callable[[], Explainer],
        corrections: Callable[[], Corrections],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._make = explainer, corrections
        self._close = close
        self.asking = Asking()
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


def why_routes(feed: Feed, backend: WhyBackend) -> list[BaseRoute]:
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
            limit = _number(request, "limit", 1, MOST_ROWS) or ROWS
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
    if max(len(url), len(of)) > MOST_ADDRESS:
        raise BadRequestError(f"an address has at most {MOST_ADDRESS} characters")
    other = int(of) if _is_number(of) else of or None
    return url or sequence or 0, other, _number(request, "neighbours", 0, MOST_NEIGHBOURS)


def _why(backend: WhyBackend, page: str | int, of: str | int | None, neighbours: int | None) -> dict[str, Any]:
    return explanation_values(backend.explainer.explain(page, of=of, neighbours=neighbours))


def _audit(backend: WhyBackend, limit: int) -> dict[str, Any]:
    newest = list(reversed(backend.corrections.all()))[:limit]
    return {"version": VERSION, "rows": [correction_values(correction) for correction in newest]}


def _correct(backend: WhyBackend, feed: Feed, body: _Body, by: str | None) -> dict[str, Any]:
    url, of = (at.strip() if isinstance(at, str) else at for at in (body.url, body.of))
    said = Said(url=url, of=of, duplicate=body.duplicate, reason=body.reason.strip(), by=by)
    values = correction_values(backend.corrections.add(said))
    feed.publish("correction", values)
    return {"version": VERSION, "correction": values, "effect": EFFECT}


def _number(request: Request, name: str, least: int, most: int) -> int | None:
    text = request.query_params.get(name)
    if not text:
        return None
    if not _is_number(text) or not least <= int(text) <= most:
        raise BadRequestError(f"{name} is a whole number from {least} to {most}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16
