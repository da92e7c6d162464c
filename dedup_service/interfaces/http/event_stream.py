"""The route `/events`: live stats as Server-Sent Events, to many watchers at once.

How: once a second, one task collects what is new and puts the bytes, one object for all, into the queue of
each watcher; a watcher's own task sends its queue. So a watcher that reads slowly delays only its own
`send`. If its queue is full, its connection is aborted: what the system still buffers for it must not stay
indefinitely.
Invariant: memory is bounded by the number of watchers and the length of their queues; the event log of the
live stats holds the only other copy of a message.

Our own code rather than sse-starlette, which encodes every message for every client, starts three tasks for
each, and hooks into the signal handling of a server that runs in a background thread here.
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

_LOG = logging.getLogger(__name__)

TICK_S, PING_S = 1.0, 15.0
MAX_QUEUED = 30
MAX_WATCHERS = 500
RETRY = b"retry: 2000\n\n"
PING = b": ping\n\n"
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
HEADERS += [(b"x-accel-buffering", b"no")]  # a proxy must not buffer it


class _Watcher:
    """One open stream. address: host and port of its connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.queue: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.ended = False

    def put(self, frame: bytes) -> None:
        self.queue.append(frame)
        self.wake.set()

    def end(self) -> None:
        self.ended = True
        self.wake.set()


class EventHub:
    """ASGI application that streams `live_stats` to its watchers. All but `close` runs on one event loop.

    tick_s: time between two collections. ping_s: silence after which a comment shows that the connection is
    alive. max_queued: ticks that may wait for a watcher before it is cut off. max_watchers: open streams at
    once.
    """

    def __init__(
        self,
        live_stats: LiveStats,
        *,
        tick_s: float = TICK_S,
        ping_s: float = PING_S,
        max_queued: int = MAX_QUEUED,
        max_watchers: int = MAX_WATCHERS,
    ) -> None:
        self._stats = live_stats
        self._tick_s, self._ping_s = tick_s, ping_s
        self._max_queued, self._max_watchers = max_queued, max_watchers
        self._watchers: set[_Watcher] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self.dropped = 0
        self.cut_off: Callable[[tuple[str, int]], None] = lambda _address: None
        live_stats.watchers = lambda: (len(self._watchers), self.dropped)

    def close(self) -> None:
        """End all streams and accept no new ones; may be called from any thread."""
        self._closing = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._end_all)

    @asynccontextmanager
    async def lifespan(self, _app: Any) -> AsyncIterator[None]:
        """Collect live stats while the server runs."""
        self._loop = asyncio.get_running_loop()
        collecting = asyncio.create_task(self._collect())
        try:
            yield
        finally:
            collecting.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what the watcher missed and what happens from now on, until either side ends the stream."""
        if self._closing or len(self._watchers) >= self._max_watchers:
            error = f"{self._max_watchers} streams are open, which is the limit; try again later"
            busy = JSONResponse({"error": error}, status_code=503, headers={"retry-after": "30"})
            await busy(scope, receive, send)
            return
        watcher = _Watcher(scope.get("client") or ("?", 0))
        watcher.put(RETRY + self._missed(Request(scope)))
        disconnected = asyncio.ensure_future(_disconnect(receive))
        disconnected.add_done_callback(lambda _: watcher.end())
        self._watchers.add(watcher)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
            while not watcher.ended:
                body = b"".join(watcher.queue)
                watcher.queue.clear()
                watcher.wake.clear()
                await send({"type": "http.response.body", "body": body, "more_body": True})
                await watcher.wake.wait()
            with suppress(OSError):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._watchers.discard(watcher)
            disconnected.cancel()

    def _missed(self, request: Request) -> bytes:
        """Return the messages after the one that the request names as its last."""
        last = request.headers.get("last-event-id") or request.query_params.get("last_event_id")
        if not last:
            return b""
        events = self._stats.events.since(last)
        return self._stats.events.reset() if events is None else b"".join(event.frame for event in events)

    async def _collect(self) -> None:
        silent_s = 0.0
        while True:
            await asyncio.sleep(self._tick_s)
            try:
                events = self._stats.tick(summary)
            except Exception:
                _LOG.exception("live stats could not be sent; please report this as a bug. The next tick is tried")
                continue
            silent_s = 0.0 if events else silent_s + self._tick_s
            if events:
                self._send_all(b"".join(event.frame for event in events))
            elif silent_s >= self._ping_s:
                silent_s = 0.0
                self._send_all(PING)

    def _send_all(self, frames: bytes) -> None:
        for watcher in tuple(self._watchers):
            if len(watcher.queue) >= self._max_queued:
                self._drop(watcher)
            else:
                watcher.put(frames)

    def _drop(self, watcher: _Watcher) -> None:
        """Cut off a watcher that does not read."""
        self.dropped += 1
        self._watchers.discard(watcher)
        watcher.queue.clear()
        watcher.end()
        self.cut_off(watcher.address)

    def _end_all(self) -> None:
        for watcher in tuple(self._watchers):
            watcher.end()


async def _disconnect(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
