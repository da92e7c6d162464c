"""ReplicaQueries to the replica of the deciding step, asked by other threads and answered between two of its turns.

The replica has one owner, the thread that decides; whoever explains a page asks for what takes microseconds, or for
the entries in pieces, which takes milliseconds, and looks at that in a thread of its own.
"""

import queue
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import StateError

__all__ = ["QueryTimeoutError", "ReplicaQueries"]

T = TypeVar("T")

ANSWER_S = 10.0
_WAITING = 32


class QueryTimeoutError(StateError):
    """The deciding step did not answer in time, or there is none. Try again, or ask a process that decides."""


class ReplicaQueries:
    """The questions that wait."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[Callable[[Replica], Any], Future[Any]]] = queue.Queue(_WAITING)

    def ask(self, question: Callable[[Replica], T], timeout_s: float = ANSWER_S) -> T:
        """Return the answer, or raise what it raised; QueryTimeoutError where nobody answers in time."""
        answer: Future[T] = Future()
        try:
            self._waiting.put_nowait((question, answer))
            return answer.result(timeout_s)
        except (queue.Full, FutureTimeoutError):
            answer.cancel()
            raise QueryTimeoutError(f"the deciding step gave no answer within {timeout_s:.0f} s; try again") from None

    def answer(self, replica: Replica) -> None:
        """Answer those that wait; called by the owner of `replica`."""
        for _ in range(self._waiting.qsize()):
            question, answer = self._waiting.get_nowait()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(question(replica))
            except Exception as error:  # it is the asker's
                answer.set_exception(error)
