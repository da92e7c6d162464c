"""Pages that went on to the spider without their verdict, because it was later than `TWINSIEVE_DEADLINE_S`.

How: judging a page is a task. A page whose task is not done at the deadline passes, and the task goes on. Scrapy
counts that page as downloaded, so it no longer slows the crawl down: new downloads wait here (`room`) while the pages
that are judged late are too many.

Invariants: every task ends, since each step of it has a limit of its own, and `finished` returns only when all have. At
most `max_pages` pages and `max_bytes` bytes of responses are judged late, beside those of the downloads that were in
progress when a limit was reached. All calls come from one event loop.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


class LatePages:
    """Waits for tasks up to a deadline, and keeps those that were not done.

    max_pages, max_bytes: from how many late pages, and bytes of their responses, `room` waits. pending: late pages that
    are still judged. peak_pages: the most there were.
    """

    def __init__(self, deadline_s: float | None, max_pages: int, max_bytes: int) -> None:
        self._deadline_s = deadline_s
        self._max_pages, self._max_bytes = max_pages, max_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._size_bytes = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.peak_pages = 0

    @property
    def pending(self) -> int:
        """Number of late pages that are still judged."""
        return len(self._tasks)

    async def in_time(self, judging: Coroutine[Any, Any, None], size_bytes: int) -> bool:
        """Run `judging`; False if it was not done by the deadline, and then it goes on. size_bytes: of the response."""
        if self._deadline_s is None:
            await judging
            return True
        task = asyncio.create_task(judging)
        try:
            await asyncio.wait({task}, timeout=self._deadline_s)
        finally:  # also if Scrapy cancels the response: the page is in the hands of a worker, or of the state
            if not task.done():
                self._hold(task, size_bytes)
        if not task.done():
            return False
        task.result()
        return True

    async def room(self) -> None:
        """Wait while too many pages are judged late: nothing more should be downloaded then."""
        await self._has_room.wait()

    async def finished(self) -> None:
        """Wait until every late page is judged, or has failed."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _hold(self, task: asyncio.Task[None], size_bytes: int) -> None:
        self._tasks.add(task)
        self._size_bytes += size_bytes
        self.peak_pages = max(self.peak_pages, len(self._tasks))
        self._update_room()
        task.add_done_callback(lambda done: self._release(done, size_bytes))

    def _release(self, task: asyncio.Task[None], size_bytes: int) -> None:
        self._tasks.discard(task)
        self._size_bytes -= size_bytes
        self._update_room()

    def _update_room(self) -> None:
        if len(self._tasks) < self._max_pages and self._size_bytes < self._max_bytes:
            self._has_room.set()
        else:
            self._has_room.clear()
