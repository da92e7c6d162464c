"""Group commit: one thread decides all waiting pages with one commit, while the event loop continues.

Goal: a page's record is durable before its verdict is returned, without an fsync for each page.
How: pages queue up while a commit is in progress; the next commit takes all of them.
Invariants: only this thread calls `decide_many`, in the order of the queue. Every future is resolved, with a
verdict or with the error that stopped its batch.
Source: DeWitt et al., "Implementation Techniques for Main Memory Database Systems", SIGMOD 1984 (group
commit).
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import Verdict

DecideMany = Callable[[Sequence[PreparedPage]], list[Verdict]]
QueuedPage = tuple[PreparedPage, "Future[Verdict]"]

MAX_BATCH = 256


class DecisionThread:
    """Calls `decide_many` with all waiting pages (256 at most), in one background thread."""

    def __init__(self, decide_many: DecideMany) -> None:
        self._decide_many = decide_many
        self._queue: queue.SimpleQueue[QueuedPage | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="twinsieve-decisions", daemon=True)
        self._thread.start()

    def submit(self, prepared: PreparedPage) -> "Future[Verdict]":
        """Queue a page; the future returns its verdict, or raises what `decide_many` raised."""
        future: Future[Verdict] = Future()
        self._queue.put((prepared, future))
        return future

    def close(self) -> None:
        """Decide the pages queued so far, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = self._collect(first)
            self._decide(batch)
            if last:
                return

    def _collect(self, first: QueuedPage) -> tuple[list[QueuedPage], bool]:
        """Return `first` with the pages queued behind it, and whether the end of the queue was reached."""
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                queued = self._queue.get_nowait()
            except queue.Empty:
                break
            if queued is None:
                return batch, True
            batch.append(queued)
        return batch, False

    def _decide(self, batch: Sequence[QueuedPage]) -> None:
        live = [(page, future) for page, future in batch if future.set_running_or_notify_cancel()]
        if not live:
            return
        try:
            verdicts = self._decide_many([page for page, _ in live])
        except BaseException as error:  # raised where the future is awaited
            for _, future in live:
                future.set_exception(error)
            return
        for (_, future), verdict in zip(live, verdicts, strict=True):
            future.set_result(verdict)
