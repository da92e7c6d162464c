"""Messages in a bounded ring, and what a reader has missed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.event_log import EventLog


def test_a_message_goes_over_the_wire_as_the_standard_says() -> None:
    """Three fields and an empty line; line breaks in the data are escaped."""
    event = EventLog("run").add("tick", {"a": "one\ntwo"})
    assert event.frame == b'id: run-1\nevent: tick\ndata: {"a":"one\\ntwo"}\n\n'


@given(st.integers(0, 40), st.integers(0, 60))
def test_what_came_since(added: int, last: int) -> None:
    """All of it, or word that some is gone; never a gap."""
    log = EventLog("run", capacity=10)
    for number in range(added):
        log.add("tick", number)
    found = log.since(f"run-{last}")
    if last > added or last < added - 10:
        assert found is None
    else:
        assert found is not None
        assert [event.number for event in found] == list(range(last + 1, added + 1))


@pytest.mark.parametrize(
    "text", ["", "run", "other-1", "run-", "run--1", "run-x", "run-1 ", "run-²", "run-" + "9" * 5000]
)
def test_an_id_that_is_none_of_this_run(text: str) -> None:
    """Another run's, or nobody's: the reader begins anew."""
    log = EventLog("run")
    log.add("tick", 1)
    assert log.since(text) is None


def test_a_reset_has_the_newest_id() -> None:
    """So the reader, cut off once more, goes on from there."""
    log = EventLog("run", capacity=1)
    log.add("tick", 1)
    log.add("tick", 2)
    assert log.reset() == b"id: run-2\nevent: reset\ndata: {}\n\n"
    assert log.last_id == "run-2"
    assert log.since("run-2") == []
