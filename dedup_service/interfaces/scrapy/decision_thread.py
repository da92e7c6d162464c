"""Verdicts from one thread, many with one commit, while the event loop goes on.

Goal: a page's record is durable before its verdict is handed out, without an fsync for each page.
How: pages queue up while a commit is under way; the next commit takes all that wait (group commit).
Invariants: `decide_many` is only ever called from this one thread, in the order of the queue; every future
is resolved, with a verdict or with the error that stopped its batch.
Source: DeWitt et al., "Implementation Techniques for Main Memory Database Systems", SIGMOD 1984 (group commit).
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import Verdict

__all__ = ["DecisionThread"]

DecideMany = Callable[[Sequence[PreparedPage]], list[Verdict]]
Waiting = tuple[PreparedPage, "Future[Verdict]"]

LARGEST_BATCH = 256


class DecisionThread:
    """Calls `decide_many` in a thread of its own, with all pages that wait."""

    def __init__(self, decide_many: DecideMany) -> None:
        self._decide_many = decide_many
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="twinsieve-decisions", daemon=True)
        self._thread.start()

    def submit(self, prepared: PreparedPage) -> "Future[Verdict]":
        """Queue a page; the future gives its verdict, or raises what `decide_many` raised."""
        future: Future[Verdict] = Future()
        self._waiting.put((prepared, future))
        return future

    def close(self) -> None:
        """Decide what was queued so far, then end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, last = self._collect(first)
            self._decide(batch)
            if last:
                return

    def _collect(self, first: Waiting) -> tuple[list[Waiting], bool]:
        """Return all pages that wait, and whether the end was among them."""
        batch = [first]
        while len(batch) < LARGEST_BATCH:
            try:
                waiting = self._waiting.get_nowait()
            except queue.Empty:
                break
            if waiting is None:
                return batch, True
            batch.append(waiting)
        return batch, False

    def _decide(self, batch: Sequence[Waiting]) -> None:
        live = [(page, future) for page, future in batch if future.set_running_or_notify_cancel()]
        if not live:
            return
        try:
            verdicts = self._decide_many([page for page, _ in live])
        except BaseException as error:  # whoever waits for the future gets it
            for _, future in live:
                future.set_exception(error)
            return
        for (_, future), verdict in zip(live, verdicts, strict=True):
            future.set_result(verdict)
