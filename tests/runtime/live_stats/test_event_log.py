"""Messages in a bounded ring, and the messages that a reader has missed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.event_log import EventLog


def test_a_message_has_the_format_of_the_standard() -> None:
    """It has three fields and an empty line; line breaks in the data are escaped."""
    event = EventLog("run").add("tick", {"a": "one\ntwo"})
    assert event.frame == b'id: run-1\nevent: tick\ndata: {"a":"one\\ntwo"}\n\n'


@given(st.integers(0, 40), st.integers(0, 60))
def test_messages_since_an_id(added: int, last: int) -> None:
    """The answer is all of them, or None if some were dropped; it never has a gap."""
    log = EventLog("run", capacity=10)
    for number in range(added):
        log.add("tick", number)
    messages = log.since(f"run-{last}")
    if last > added or last < added - 10:
        assert messages is None
    else:
        assert messages is not None
        assert [event.number for event in messages] == list(range(last + 1, added + 1))


@pytest.mark.parametrize(
    "text", ["", "run", "other-1", "run-", "run--1", "run-x", "run-1 ", "run-²", "run-" + "9" * 5000]
)
def test_an_id_of_another_run_is_unknown(text: str) -> None:
    """A malformed id is unknown, too: the reader has to reload."""
    log = EventLog("run")
    log.add("tick", 1)
    assert log.since(text) is None


def test_a_reset_has_the_newest_id() -> None:
    """A reader that is disconnected again continues from there."""
    log = EventLog("run", capacity=1)
    log.add("tick", 1)
    log.add("tick", 2)
    assert log.reset() == b"id: run-2\nevent: reset\ndata: {}\n\n"
    assert log.last_id == "run-2"
    assert log.since("run-2") == []
