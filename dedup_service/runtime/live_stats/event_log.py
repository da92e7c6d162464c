"""What is told live: numbered messages in a bounded ring, ready to be sent.

A message is put into bytes once, however many read it. Its id is RUN-NUMBER: another run of the program has another
RUN, so that an id from before a restart is known for what it is.
Source: WHATWG, "HTML Living Standard", 9.2 Server-sent events.
"""

import threading
from collections import deque
from typing import Any, NamedTuple

import msgspec

__all__ = ["Event", "EventLog"]

_encode = msgspec.json.Encoder().encode


class Event(NamedTuple):
    """number: from 1 in its run. frame: the message as it goes over the wire."""

    number: int
    frame: bytes


class EventLog:
    """The last `capacity` messages of this run; used from any thread."""

    def __init__(self, run: str, capacity: int = 600) -> None:
        self.run = run
        self._ring: deque[Event] = deque(maxlen=capacity)
        self._number = 0
        self._lock = threading.Lock()

    @property
    def last_id(self) -> str:
        """The id of the newest message; RUN-0 before the first."""
        return f"{self.run}-{self._number}"

    @property
    def number(self) -> int:
        """The number of the newest message, 0 before the first."""
        return self._number

    def add(self, name: str, data: Any) -> Event:
        """Number a message, remember it and return it. name: one of ours, without line breaks; data: fit for JSON."""
        body = _encode(data)  # JSON has no bare line break, so it is one line of `data`
        with self._lock:
            self._number += 1
            event = Event(self._number, self._frame(self._number, name, body))
            self._ring.append(event)
        return event

    def reset(self) -> bytes:
        """Return the message that tells a reader to begin anew; with the newest id, so that it can go on from there."""
        return self._frame(self._number, "reset", b"{}")

    def since(self, last_id: str) -> list[Event] | None:
        """Return the messages after the one with this id; None where that is unknown, or what came next is gone."""
        run, _, text = last_id.rpartition("-")
        if run != self.run or not (text.isascii() and text.isdecimal() and len(text) < 20):
            return None
        number = int(text)
        with self._lock:
            oldest = self._ring[0].number if self._ring else self._number + 1
            if not oldest - 1 <= number <= self._number:
                return None
            return [event for event in self._ring if event.number > number]

    def _frame(self, number: int, name: str, body: bytes) -> bytes:
        return b"id: %s-%d\nevent: %s\ndata: %s\n\n" % (self.run.encode(), number, name.encode(), body)
