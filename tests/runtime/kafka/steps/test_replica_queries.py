"""Queries to the replica from other threads."""

import threading

import pytest

from dedup_service.core.decision.replica import Replica
from dedup_service.runtime.kafka.steps.replica_queries import QueryTimeoutError, ReplicaQueries


class NoNames:
    """A store without any page names."""

    def name(self, sequence: int) -> tuple[str, str]:
        raise KeyError(sequence)

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Ignore the name."""


def test_the_owner_answers_between_two_turns() -> None:
    """A query runs in the owner's thread on its replica; what it raises is raised by `ask`."""
    queries, replica, stop = ReplicaQueries(), Replica(NoNames()), threading.Event()

    def own() -> None:
        while not stop.wait(0.001):
            queries.answer(replica)

    owner = threading.Thread(target=own)
    owner.start()
    try:
        assert queries.ask(lambda asked: asked) is replica
        assert queries.ask(lambda _asked: threading.current_thread()) is owner
        with pytest.raises(KeyError, match="nothing"):
            queries.ask(lambda _asked: {}["nothing"])
        assert queries.ask(len) == 0
    finally:
        stop.set()
        owner.join()


def test_a_query_does_not_wait_indefinitely() -> None:
    """Without an answer in time it raises; a query that timed out is not run, and the queue is bounded."""
    queries, asked = ReplicaQueries(), []
    with pytest.raises(QueryTimeoutError, match="try again"):
        queries.ask(asked.append, timeout_s=0.01)
    queries.answer(Replica(NoNames()))
    assert asked == []
    refused = 0
    for _ in range(100):
        try:
            queries.ask(asked.append, timeout_s=0.0)
        except QueryTimeoutError:
            refused += 1
    assert refused == 100
    queries.answer(Replica(NoNames()))
    assert asked == []
