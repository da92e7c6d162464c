"""The routes `/api/stats` and `/api/duplicates`: live stats as JSON. Fields: docs/feed.md."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.figures import VERSION, stats
from dedup_service.runtime.live_stats.newest import NAMING, DuplicateRow

MAX_ROWS = 200
ROWS = 50

_encode = msgspec.json.Encoder().encode


class _InvalidParameterError(Exception):
    """A parameter is invalid; the message says what it may be."""


def stats_routes(live_stats: LiveStats) -> list[BaseRoute]:
    """Return the routes that answer from `live_stats`."""

    async def all_stats(request: Request) -> Response:
        history = request.query_params.get("history")
        if history not in {None, "none"}:
            return _refused(f"history must be none or left out, got {history[:50]!r}")
        return _json(stats(live_stats, history=history is None))

    async def duplicates(request: Request) -> Response:
        try:
            return _json(_newest(live_stats, request))
        except _InvalidParameterError as error:
            return _refused(str(error))

    return [Route("/api/stats", all_stats), Route("/api/duplicates", duplicates)]


def _newest(live_stats: LiveStats, request: Request) -> dict[str, Any]:
    """Return the rows that a request selects, newest first, and whether there are more."""
    host = request.query_params.get("host", "").strip().lower()
    verdict = request.query_params.get("verdict") or None
    if verdict not in {None, *NAMING}:
        raise _InvalidParameterError(f"verdict must be one of {', '.join(sorted(NAMING))}")
    limit = _number(request, "limit", ROWS, MAX_ROWS)
    before = _number(request, "before", None, None)
    with live_stats.lock:
        rows = live_stats.newest.rows()
    selected: list[DuplicateRow] = []
    for row in rows:
        wanted = (before is None or row.number < before) and (verdict is None or row.verdict == verdict)
        if wanted and (not host or host in {row.host, row.original_host}):
            selected.append(row)
            if len(selected) > limit:
                break
    return {"version": VERSION, "rows": [row.shown() for row in selected[:limit]], "more": len(selected) > limit}


def _number(request: Request, name: str, default: Any, limit: int | None) -> Any:
    text = request.query_params.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 16) or int(text) < 1 or int(text) > (limit or 1 << 53):
        raise _InvalidParameterError(f"{name} must be an integer from 1" + (f" to {limit}" if limit else ""))
    return int(text)


def _json(value: Any) -> Response:
    return Response(_encode(value), media_type="application/json")


def _refused(error: str) -> Response:
    return JSONResponse({"error": error}, status_code=400)
