"""ReplicaQueries to the replica, from other threads."""

import threading

import pytest

from dedup_service.core.decision.replica import Replica
from dedup_service.runtime.kafka.steps.replica_queries import QueryTimeoutError, ReplicaQueries


class NoNames:
    """Nobody is named."""

    def name(self, sequence: int) -> tuple[str, str]:
        raise KeyError(sequence)

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Not remembered."""


def test_the_owner_answers_between_two_turns() -> None:
    """In its own thread, with its own replica; what the question raises is the asker's."""
    questions, replica, stop = ReplicaQueries(), Replica(NoNames()), threading.Event()

    def own() -> None:
        while not stop.wait(0.001):
            questions.answer(replica)

    owner = threading.Thread(target=own)
    owner.start()
    try:
        assert questions.ask(lambda asked: asked) is replica
        assert questions.ask(lambda _asked: threading.current_thread()) is owner
        with pytest.raises(KeyError, match="nothing"):
            questions.ask(lambda _asked: {}["nothing"])
        assert questions.ask(len) == 0
    finally:
        stop.set()
        owner.join()


def test_nobody_waits_for_ever() -> None:
    """Without an answer in time it is said so, and a late one is not worked out; nor do many queue up."""
    questions, asked = ReplicaQueries(), []
    with pytest.raises(QueryTimeoutError, match="try again"):
        questions.ask(asked.append, timeout_s=0.01)
    questions.answer(Replica(NoNames()))
    assert asked == []
    refused = 0
    for _ in range(100):
        try:
            questions.ask(asked.append, timeout_s=0.0)
        except QueryTimeoutError:
            refused += 1
    assert refused == 100
    questions.answer(Replica(NoNames()))
    assert asked == []
