"""The routes `/api/why` and `/api/corrections`: why a page has its verdict, and what people correct.

An explanation segments texts and reads the log, some 20 ms of this process. Many at a time would delay the
stream, so one thread (`ExplainWorker`) answers one question after another, and few may wait. One thread also
means one vocabulary: fingerprinters keep one for each thread. docs/why.md has the JSON.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dedup_service.core.errors import ConfigurationError, RecordError, TwinsieveError
from dedup_service.interfaces.explain_json import VERSION, correction_to_dict, explanation_to_dict
from dedup_service.runtime.explain.correcting import CorrectionRequest, Corrections
from dedup_service.runtime.explain.explainer import Explainer
from dedup_service.runtime.explain.page_source import UnknownPageError
from dedup_service.runtime.groups.live_groups import LiveGroups
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.display_safe import MAX_URL, cut, shown

MAX_WAITING = 8
CLOSE_S = 5.0
"""Time for a question in progress when the server ends."""

STOPPING = "the server is stopping; ask again once it runs"
MAX_NEIGHBOURS = 20
ROWS, MAX_ROWS = 100, 1000
MAX_URL_LENGTH = 10_000

EFFECT = "in force from the next delivery of either page; earlier verdicts stay"

_LOG = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode


class BadRequestError(Exception):
    """A request is invalid; the message says what it should be."""


class _StoppingError(TwinsieveError):
    """The server ends."""


class ExplainWorker:
    """One thread that answers questions in order, and runs `last` when it ends. `answer` is called on one event loop.

    The thread is a daemon: no exit waits for a question in progress, which may read from brokers that are away.
    """

    def __init__(self, last: Callable[[], None] = lambda: None) -> None:
        self._last = last
        self._questions: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._closing = threading.Event()
        self._waiting = 0
        self._thread = threading.Thread(target=self._run, name="twinsieve-why", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Finish the question in progress, refuse those that wait, and end the thread.

        A question that takes longer than `timeout_s` is left to the thread, which ends after it.
        """
        self._closing.set()
        self._questions.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            _LOG.warning("an explanation was still in progress after %.1f s and is not waited for", timeout_s)

    async def answer(self, ask: Callable[[], Any], *, status: int = 200) -> Response:
        """Return the result of `ask` as JSON, or what it raised as an error."""
        if self._waiting >= MAX_WAITING:
            return refused(503, "too many requests for explanations at once; try again in a moment")
        self._waiting += 1
        try:
            value = await asyncio.wrap_future(self._submit(ask))
        except (BadRequestError, RecordError, ConfigurationError) as error:
            return refused(400, str(error))
        except UnknownPageError as error:
            return refused(404, str(error))
        except (TwinsieveError, OSError) as error:
            return refused(503, str(error))
        finally:
            self._waiting -= 1
        return Response(_encode(value), status_code=status, media_type="application/json")

    def _asked(self, ask: Callable[[], Any]) -> Any:
        if self._closing.is_set():
            raise _StoppingError(STOPPING)
        return ask()

    def _submit(self, ask: Callable[[], Any]) -> Future[Any]:
        if self._closing.is_set():
            raise _StoppingError(STOPPING)
        answer: Future[Any] = Future()
        self._questions.put((ask, answer))
        return answer

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            self._answer(*question)
        try:
            self._last()
        except Exception:
            _LOG.exception("what the explanations had opened could not be closed")

    def _answer(self, ask: Callable[[], Any], answer: Future[Any]) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            answer.set_result(self._asked(ask))
        except BaseException as error:  # raised where the answer is awaited
            answer.set_exception(error)


class ExplainBackend:
    """What the routes ask, and the worker that does.

    explainer, corrections, groups: factories, called in the worker's thread when first needed; without groups there are
    none. close: releases what they opened.
    """

    def __init__(
        self,
        explainer: Callable[[], Explainer],
        corrections: Callable[[], Corrections],
        close: Callable[[], None] = lambda: None,
        groups: Callable[[], LiveGroups] | None = None,
    ) -> None:
        self._make_explainer, self._make_corrections, self._make_groups = explainer, corrections, groups
        self.worker = ExplainWorker(close)
        self._explainer: Explainer | None = None
        self._corrections: Corrections | None = None
        self._groups: LiveGroups | None = None

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Release everything, in the worker's thread, and end it; after `timeout_s` that is left to the thread."""
        self.worker.close(timeout_s)

    @property
    def explainer(self) -> Explainer:
        """The explainer of verdicts."""
        self._explainer = self._explainer or self._make_explainer()
        return self._explainer

    @property
    def corrections(self) -> Corrections:
        """The log of corrections."""
        self._corrections = self._corrections or self._make_corrections()
        return self._corrections

    @property
    def has_groups(self) -> bool:
        """Whether groups of pages can be asked for."""
        return self._make_groups is not None

    @property
    def groups(self) -> LiveGroups:
        """The groups of pages; only if `has_groups`."""
        assert self._make_groups is not None, "has_groups says whether there are any"
        self._groups = self._groups or self._make_groups()
        return self._groups


class _CorrectionBody(msgspec.Struct, forbid_unknown_fields=True):
    url: str | int
    of: str | int
    duplicate: bool
    reason: str = ""


_decode = msgspec.json.Decoder(_CorrectionBody).decode


def explain_routes(live_stats: LiveStats, backend: ExplainBackend) -> list[BaseRoute]:
    """Return the routes that answer from `backend`; corrections are announced through `live_stats`."""
    worker = backend.worker

    async def why(request: Request) -> Response:
        try:
            question = _question(request)
        except BadRequestError as error:
            return refused(400, str(error))
        return await worker.answer(lambda: _why(backend, *question))

    async def audit(request: Request) -> Response:
        try:
            limit = _number(request, "limit", 1, MAX_ROWS) or ROWS
        except BadRequestError as error:
            return refused(400, str(error))
        return await worker.answer(lambda: _audit(backend, limit))

    async def correct(request: Request) -> Response:
        try:
            body = _decode(await request.body())
        except ClientDisconnect:
            return refused(400, "the body ended early")  # nobody is there to read it
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return refused(400, f'send {{"url", "of", "duplicate": true|false, "reason"}}: {error}')
        by = request.client.host if request.client else None
        return await worker.answer(lambda: _correct(backend, live_stats, body, by), status=201)

    return [
        Route("/api/why", why),
        Route("/api/corrections", audit, methods=["GET"]),
        Route("/api/corrections", correct, methods=["POST"]),
    ]


def _question(request: Request) -> tuple[str | int, str | int | None, int | None]:
    """Return the page to explain, the page to compare it with, and the number of neighbours."""
    page, other = page_named(request), request.query_params.get("of", "").strip()
    _check_length(other)
    compare_with = int(other) if _is_number(other) else other or None
    return page, compare_with, _number(request, "neighbours", 0, MAX_NEIGHBOURS)


def page_named(request: Request) -> str | int:
    """Return the page that a request names by its URL or sequence. BadRequestError if it names none, or two."""
    url, sequence = request.query_params.get("url", "").strip(), _number(request, "sequence", 1, 1 << 53)
    if bool(url) == (sequence is not None):
        raise BadRequestError("name the page by one of url= and sequence=")
    _check_length(url)
    return url or sequence or 0


def _check_length(url: str) -> None:
    if len(url) > MAX_URL_LENGTH:
        raise BadRequestError(f"a URL has at most {MAX_URL_LENGTH} characters")


def _why(
    backend: ExplainBackend, page: str | int, compare_with: str | int | None, neighbours: int | None
) -> dict[str, Any]:
    explanation = backend.explainer.explain(page, compare_with=compare_with, neighbours=neighbours)
    return explanation_to_dict(explanation) | {"has_groups": backend.has_groups}


def _audit(backend: ExplainBackend, limit: int) -> dict[str, Any]:
    newest = list(reversed(backend.corrections.all()))[:limit]
    return {"version": VERSION, "rows": [correction_to_dict(correction) for correction in newest]}


def _correct(backend: ExplainBackend, live_stats: LiveStats, body: _CorrectionBody, by: str | None) -> dict[str, Any]:
    url, original = (page.strip() if isinstance(page, str) else page for page in (body.url, body.of))
    request = CorrectionRequest(url=url, original=original, duplicate=body.duplicate, reason=body.reason.strip(), by=by)
    values = correction_to_dict(backend.corrections.add(request))
    live_stats.publish("correction", values)
    return {"version": VERSION, "correction": values, "effect": EFFECT}


def _number(request: Request, name: str, minimum: int, maximum: int) -> int | None:
    text = request.query_params.get(name)
    if not text:
        return None
    if not _is_number(text) or not minimum <= int(text) <= maximum:
        raise BadRequestError(f"{name} must be an integer from {minimum} to {maximum}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16


def refused(status: int, error: str) -> Response:
    """Return an error as JSON; text of requests in it is cut and made safe to display."""
    return JSONResponse({"error": shown(cut(error, 2 * MAX_URL))}, status_code=status)
