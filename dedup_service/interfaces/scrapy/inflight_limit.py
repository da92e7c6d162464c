"""FIFO limit on the messages and bytes in flight; later messages wait for their turn.

It bounds a crawl's memory while the broker is slow or unavailable, and the crawl waits on it then.
Invariants: `held` and `held_bytes` never exceed the limits, except for a single message larger than all
bytes, which goes alone. No message overtakes another. All calls come from one event loop.
"""

import asyncio
from collections import deque


class NoRoomError(Exception):
    """The limit was closed: a waiting message will get no room."""


class InflightLimit:
    """Limits messages and bytes in flight.

    max_messages, max_bytes: the limits. peak_messages, peak_bytes: the largest values of `held` and
    `held_bytes` so far.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._closed = False
        self._empty = asyncio.Event()
        self._empty.set()
        self._short_queue = max_messages // 16
        self._queue_is_short = asyncio.Event()
        self._queue_is_short.set()
        self.held = self.held_bytes = self.peak_messages = self.peak_bytes = 0

    @property
    def waiting(self) -> int:
        """Number of messages that wait for room."""
        return len(self._queue)

    async def acquire(self, size_bytes: int) -> None:
        """Wait for room for a message of `size_bytes`; NoRoomError once `close` was called."""
        if self._closed:
            raise NoRoomError
        if not self._queue and self._fits(size_bytes):
            self._hold(size_bytes)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((size_bytes, turn))
        if len(self._queue) > self._short_queue:
            self._queue_is_short.clear()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(size_bytes)  # cancelled just as its turn came
            raise

    def release(self, size_bytes: int) -> None:
        """Return the room that `acquire` gave for `size_bytes`."""
        self.held -= 1
        self.held_bytes -= size_bytes
        self._admit()
        if not self.held:
            self._empty.set()

    async def short_queue(self) -> None:
        """Wait until at most `max_messages` / 16 messages wait, or the limit is closed."""
        await self._queue_is_short.wait()

    async def emptied(self) -> None:
        """Wait until no message is in flight."""
        await self._empty.wait()

    def close(self) -> None:
        """Admit no more messages; `acquire` raises NoRoomError for all that wait."""
        self._closed = True
        self._queue_is_short.set()
        while self._queue:
            _, turn = self._queue.popleft()
            if not turn.done():
                turn.set_exception(NoRoomError())

    def _admit(self) -> None:
        """Give room to the messages at the head of the queue that fit."""
        while self._queue:
            size_bytes, turn = self._queue[0]
            if turn.done():  # cancelled
                self._queue.popleft()
            elif self._fits(size_bytes):
                self._queue.popleft()
                self._hold(size_bytes)
                turn.set_result(None)
            else:
                break
        if len(self._queue) <= self._short_queue:
            self._queue_is_short.set()

    def _fits(self, size_bytes: int) -> bool:
        return not self.held or (self.held < self._max_messages and self.held_bytes + size_bytes <= self._max_bytes)

    def _hold(self, size_bytes: int) -> None:
        self._empty.clear()
        self.held += 1
        self.held_bytes += size_bytes
        self.peak_messages = max(self.peak_messages, self.held)
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)
