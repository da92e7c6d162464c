"""Queries to the replica from other threads, answered between two turns of the deciding step.

The replica has one owner, the thread that decides. A thread that explains a page queries what takes
microseconds, or the entries in pieces, which takes milliseconds, and analyses the result itself.
"""

import queue
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError

T = TypeVar("T")

TIMEOUT_S = 10.0
_MAX_WAITING = 32


class QueryTimeoutError(StateError):
    """The deciding step did not answer in time, or does not run here. Retry, or ask another process."""


class ReplicaQueries:
    """Bounded queue of queries to the replica."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[Callable[[Replica], Any], Future[Any]]] = queue.Queue(_MAX_WAITING)

    def ask(self, query: Callable[[Replica], T], timeout_s: float = TIMEOUT_S) -> T:
        """Return `query(replica)`, computed by the owner's thread, or raise what it raised.

        QueryTimeoutError if there is no answer within `timeout_s`, or if the queue is full.
        """
        answer: Future[T] = Future()
        try:
            self._waiting.put_nowait((query, answer))
            return answer.result(timeout_s)
        except (queue.Full, FutureTimeoutError):
            answer.cancel()
            raise QueryTimeoutError(f"the deciding step did not answer within {timeout_s:.0f} s; try again") from None

    def answer(self, replica: Replica) -> None:
        """Answer the waiting queries; called by the owner of `replica`."""
        for _ in range(self._waiting.qsize()):
            query, answer = self._waiting.get_nowait()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(query(replica))
            except Exception as error:  # raised in the thread that asked
                answer.set_exception(error)
