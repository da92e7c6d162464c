"""`/api/stats` and `/api/duplicates`: what the feed has, as JSON. Fields and parameters: docs/feed.md."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.figures import VERSION, stats
from dedup_service.runtime.live_stats.newest import NAMING, DuplicateRow

__all__ = ["stats_routes"]

MAX_ROWS = 200
ROWS = 50

_encode = msgspec.json.Encoder().encode


class _BadParameterError(Exception):
    """A parameter that cannot be understood, and what it may be."""


def stats_routes(feed: LiveStats) -> list[BaseRoute]:
    """Return the routes that answer from `feed`."""

    async def all_figures(request: Request) -> Response:
        history = request.query_params.get("history")
        if history not in {None, "none"}:
            return _bad(f"history is none, or left out, got {history[:50]!r}" if history else "history is none")
        return _json(stats(feed, history=history is None))

    async def duplicates(request: Request) -> Response:
        try:
            return _json(_newest(feed, request))
        except _BadParameterError as error:
            return _bad(str(error))

    return [Route("/api/stats", all_figures), Route("/api/duplicates", duplicates)]


def _newest(feed: LiveStats, request: Request) -> dict[str, Any]:
    """Return the rows that a request asks for, and whether there are more."""
    host = request.query_params.get("host", "").strip().lower()
    verdict = request.query_params.get("verdict") or None
    if verdict not in {None, *NAMING}:
        raise _BadParameterError(f"verdict is one of {', '.join(sorted(NAMING))}")
    limit = _number(request, "limit", ROWS, MAX_ROWS)
    before = _number(request, "before", None, None)
    with feed.lock:
        rows = feed.newest.rows()
    found: list[DuplicateRow] = []
    for row in rows:
        wanted = (before is None or row.number < before) and (verdict is None or row.verdict == verdict)
        if wanted and (not host or host in {row.host, row.original_host}):
            found.append(row)
            if len(found) > limit:
                break
    return {"version": VERSION, "rows": [row.shown() for row in found[:limit]], "more": len(found) > limit}


def _number(request: Request, name: str, default: Any, maximum: int | None) -> Any:
    text = request.query_params.get(name)
    if not text:
        return default
    if (
        not (text.isascii() and text.isdecimal() and len(text) < 16)
        or int(text) < 1
        or int(text) > (maximum or 1 << 53)
    ):
        raise _BadParameterError(f"{name} is a whole number from 1" + (f" to {maximum}" if maximum else ""))
    return int(text)


def _json(value: Any) -> Response:
    return Response(_encode(value), media_type="application/json")


def _bad(error: str) -> Response:
    return JSONResponse({"error": error}, status_code=400)
