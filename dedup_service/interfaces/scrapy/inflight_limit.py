"""Room for so many messages and bytes at a time; whoever comes later waits, in the order of coming.

This is the bound on a crawl's memory while a broker is slow or away, and what the crawl waits for then.
Invariants: `held` and `held_bytes` never exceed the bounds, but for one message larger than all bytes, which goes
alone; nobody overtakes. All of it belongs to one event loop.
"""

import asyncio
from collections import deque

__all__ = ["InflightLimit", "NoRoomError"]


class NoRoomError(Exception):
    """There will be no place any more: whoever waits gives up."""


class InflightLimit:
    """Bounds of messages and bytes in flight; `maximum` and `max_bytes` are the highest counts so far."""

    def __init__(self, messages: int, size_bytes: int) -> None:
        self._messages = messages
        self._size_bytes = size_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._closed = False
        self._empty = asyncio.Event()
        self._empty.set()
        self._few = messages // 16
        self._few_wait = asyncio.Event()
        self._few_wait.set()
        self.held = self.held_bytes = self.maximum = self.max_bytes = 0

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._waiting)

    async def take(self, size_bytes: int) -> None:
        """Wait for a place for a message of `size_bytes`; NoRoomError once `close` was called."""
        if self._closed:
            raise NoRoomError
        if not self._waiting and self._fits(size_bytes):
            self._hold(size_bytes)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, turn))
        if len(self._waiting) > self._few:
            self._few_wait.clear()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give_back(size_bytes)  # cancelled in the moment in which its turn came
            raise

    def give_back(self, size_bytes: int) -> None:
        """Free a place that `take` gave for `size_bytes`."""
        self.held -= 1
        self.held_bytes -= size_bytes
        self._call_next()
        if not self.held:
            self._empty.set()

    async def few_waiting(self) -> None:
        """Wait until no more wait than one for sixteen places, or nobody gets one any more."""
        await self._few_wait.wait()

    async def emptied(self) -> None:
        """Wait until nobody holds a place."""
        await self._empty.wait()

    def close(self) -> None:
        """Give no more places; everybody who waits gets NoRoomError."""
        self._closed = True
        self._few_wait.set()
        while self._waiting:
            _, turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(NoRoomError())

    def _call_next(self) -> None:
        while self._waiting:
            size_bytes, turn = self._waiting[0]
            if turn.done():  # cancelled
                self._waiting.popleft()
            elif self._fits(size_bytes):
                self._waiting.popleft()
                self._hold(size_bytes)
                turn.set_result(None)
            else:
                break
        if len(self._waiting) <= self._few:
            self._few_wait.set()

    def _fits(self, size_bytes: int) -> bool:
        return not self.held or (self.held < self._messages and self.held_bytes + size_bytes <= self._size_bytes)

    def _hold(self, size_bytes: int) -> None:
        self._empty.clear()
        self.held += 1
        self.held_bytes += size_bytes
        self.maximum = max(self.maximum, self.held)
        self.max_bytes = max(self.max_bytes, self.held_bytes)
