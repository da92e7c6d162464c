"""The latest messages of an event stream: numbered, encoded, in a bounded ring.

A message is encoded once, for any number of readers. Its id is RUN-NUMBER. Each run of the program has another RUN, so
an id from before a restart is recognised.
Source: WHATWG, "HTML Living Standard", 9.2 Server-sent events.
"""

import threading
from collections import deque
from typing import Any, NamedTuple

import msgspec

_encode = msgspec.json.Encoder().encode


class Event(NamedTuple):
    """A message. number: counts from 1 in a run. frame: the message as it is sent."""

    number: int
    frame: bytes


class EventLog:
    """The last `capacity` messages of this run. Thread-safe."""

    def __init__(self, run: str, capacity: int = 600) -> None:
        self.run = run
        self._ring: deque[Event] = deque(maxlen=capacity)
        self._number = 0
        self._lock = threading.Lock()

    @property
    def last_id(self) -> str:
        """Id of the newest message; RUN-0 before the first one."""
        return f"{self.run}-{self._number}"

    @property
    def number(self) -> int:
        """Number of the newest message; 0 before the first one."""
        return self._number

    def add(self, name: str, data: Any) -> Event:
        """Number a message, keep it and return it. name: without line breaks; data: encodable as JSON."""
        body = _encode(data)  # encoded JSON has no line break, so it is one line of `data`
        with self._lock:
            self._number += 1
            event = Event(self._number, self._frame(self._number, name, body))
            self._ring.append(event)
        return event

    def reset(self) -> bytes:
        """Return the message that tells a reader to reload. Its id is the newest, so the reader can continue."""
        return self._frame(self._number, "reset", b"{}")

    def since(self, last_id: str) -> list[Event] | None:
        """Return the messages after this id; None if the id is unknown, or if messages after it were dropped."""
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
