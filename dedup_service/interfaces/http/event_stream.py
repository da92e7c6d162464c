"""`/events`: what the feed tells, to many watchers at once.

How: once a second one task asks the feed what is new, and puts the bytes, the same object for all, into each watcher's
queue; a watcher's task sends what is in its queue. So a watcher that reads slowly waits in its own `send`, and where
its queue is full its connection is cut off: what the system still holds for it must not stay for ever.
Invariant: memory is bounded by the number of watchers and the messages that may wait; the feed's ring is the only copy.

Ours rather than sse-starlette, which puts every message into bytes for every client, starts three tasks for each and
hooks into the signal handling of a server that here has a thread of its own.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.figures import summary

__all__ = ["EventHub"]

_LOG = logging.getLogger(__name__)

TICK_S, PING_S = 1.0, 15.0
WAITING = 30
MAX = 500
RETRY = b"retry: 2000\n\n"
PING = b": ping\n\n"
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
HEADERS += [(b"x-accel-buffering", b"no")]  # a proxy must not wait for more


class _Watcher:
    """One open stream. address: of its connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.queue: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.over = False

    def put(self, frame: bytes) -> None:
        self.queue.append(frame)
        self.wake.set()

    def end(self) -> None:
        self.over = True
        self.wake.set()


class EventHub:
    """The watchers of `feed`; an ASGI application. Everything but `close` happens on one event loop.

    tick_s: between two questions to the feed. ping_s: of silence, after which a comment shows that the line lives.
    waiting: messages that a watcher may let wait. most: watchers at once.
    """

    def __init__(
        self,
        feed: LiveStats,
        *,
        tick_s: float = TICK_S,
        ping_s: float = PING_S,
        waiting: int = WAITING,
        maximum: int = MAX,
    ) -> None:
        self._feed = feed
        self._tick_s, self._ping_s, self._waiting, self._maximum = tick_s, ping_s, waiting, maximum
        self._watchers: set[_Watcher] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self.dropped = 0
        self.cut_off: Callable[[tuple[str, int]], None] = lambda _address: None
        feed.watchers = lambda: (len(self._watchers), self.dropped)

    def close(self) -> None:
        """End all streams, and have no new ones; from any thread."""
        self._closing = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._end_all)

    @asynccontextmanager
    async def lifespan(self, _app: Any) -> AsyncIterator[None]:
        """Ask the feed while the server runs."""
        self._loop = asyncio.get_running_loop()
        asking = asyncio.create_task(self._ask())
        try:
            yield
        finally:
            asking.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what there is and what comes, until either side has enough."""
        if self._closing or len(self._watchers) >= self._maximum:
            busy = JSONResponse(
                {"error": f"{self._maximum} watch already"}, status_code=503, headers={"retry-after": "30"}
            )
            await busy(scope, receive, send)
            return
        watcher = _Watcher(scope.get("client") or ("?", 0))
        watcher.put(RETRY + self._missed(Request(scope)))
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(lambda _: watcher.end())
        self._watchers.add(watcher)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
            while not watcher.over:
                body = b"".join(watcher.queue)
                watcher.queue.clear()
                watcher.wake.clear()
                await send({"type": "http.response.body", "body": body, "more_body": True})
                await watcher.wake.wait()
            with suppress(OSError):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._watchers.discard(watcher)
            gone.cancel()

    def _missed(self, request: Request) -> bytes:
        """Return what came since the message that the request names as its last."""
        last = request.headers.get("last-event-id") or request.query_params.get("last_event_id")
        if not last:
            return b""
        events = self._feed.events.since(last)
        return self._feed.events.reset() if events is None else b"".join(event.frame for event in events)

    async def _ask(self) -> None:
        silent_s = 0.0
        while True:
            await asyncio.sleep(self._tick_s)
            try:
                events = self._feed.tick(summary)
            except Exception:
                _LOG.exception("the feed could not be told; the next second is")
                continue
            silent_s = 0.0 if events else silent_s + self._tick_s
            if events:
                self._spread(b"".join(event.frame for event in events))
            elif silent_s >= self._ping_s:
                silent_s = 0.0
                self._spread(PING)

    def _spread(self, frames: bytes) -> None:
        for watcher in tuple(self._watchers):
            if len(watcher.queue) >= self._waiting:
                self._drop(watcher)
            else:
                watcher.put(frames)

    def _drop(self, watcher: _Watcher) -> None:
        """Cut a watcher off that does not read."""
        self.dropped += 1
        self._watchers.discard(watcher)
        watcher.queue.clear()
        watcher.end()
        self.cut_off(watcher.address)

    def _end_all(self) -> None:
        for watcher in tuple(self._watchers):
            watcher.end()


async def _gone(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
