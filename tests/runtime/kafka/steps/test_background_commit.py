"""A commit in a thread of its own: its result, or its error, comes to whoever started it."""

import threading

import pytest

from dedup_service.runtime.kafka.steps.background_commit import BackgroundCommit
from tests.hangs import HANG_S


def test_the_starter_goes_on_until_it_asks() -> None:
    """The action runs meanwhile, and the next one may follow when its result was taken."""
    commit, may_end, ended = BackgroundCommit(), threading.Event(), []
    commit.start(lambda: ended.append(may_end.wait(HANG_S)))
    assert not commit.done()
    may_end.set()
    commit.result()
    assert (commit.done(), ended) == (True, [True])
    commit.start(lambda: ended.append(False))
    assert commit.done(30)
    commit.result()
    assert ended == [True, False]


def test_an_error_is_raised_where_the_result_is_taken() -> None:
    """Once; a commit after it is not touched by it."""
    commit = BackgroundCommit()
    commit.start(lambda: int("no number"))
    with pytest.raises(ValueError, match="no number"):
        commit.result()
    commit.start(lambda: None)
    commit.result()
