"""Questions that take a while, answered one at a time in a thread of their own.

An explanation segments texts and reads the log: some 20 ms of this process. Many at once would be in the way of the
stream, so they take turns, and few may wait. One thread also means one vocabulary: fingerprinters keep one a thread.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from starlette.responses import JSONResponse, Response

from dedup_service.core.errors import ConfigurationError, RecordError, TwinsieveError
from dedup_service.runtime.feed.cleaning import MOST_URL, cut, shown
from dedup_service.runtime.why import UnknownPageError

__all__ = ["Asking", "BadRequestError", "refusal"]

MOST_WAITING = 8
CLOSE_S = 30.0

_encode = msgspec.json.Encoder().encode


class BadRequestError(Exception):
    """A request that cannot be understood, and what it should be."""


class Asking:
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
        if self._waiting >= MOST_WAITING:
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
    return JSONResponse({"error": shown(cut(error, 2 * MOST_URL))}, status_code=status)
