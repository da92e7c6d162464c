"""Watches a service that a backfill adds to: how far the deciding step is, and how long pages of the crawl wait.

The position of the deciding step is in `dedup.offsets` (`steps.backfilled`), and comes here within milliseconds, in a
thread of its own: whoever appends has other things to do. The oldest page of the crawl without a verdict is measured
from outside (`monitor`), every second.

Nothing that goes wrong here ends the backfill: without a position it waits, with a warning.
"""

import logging
import threading
import time
from collections import deque
from contextlib import closing
from typing import Self

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.retry import ThrottledWarning
from dedup_service.runtime.kafka.monitor import BacklogMonitor
from dedup_service.runtime.kafka.state.pending_outcomes import BACKFILLED
from dedup_service.runtime.kafka.state.step_offsets import BACKFILL_DECIDED, DECIDE, StepOffsets
from dedup_service.runtime.kafka.topics import Topics

_LOG = logging.getLogger(__name__)

_POLL_S = 0.1
_PAUSE_S = 1.0
_MEASURE_S = 1.0
_CLOSE_S = 2.0


class DecidedWatcher:
    """While entered, watches the service of `group`, which has the prefix, on `topics`."""

    def __init__(self, connection: Connection, topics: Topics, group: str) -> None:
        self._connection, self._topics = connection, topics
        self._monitor = BacklogMonitor(connection, topics, group, interval_s=_MEASURE_S)
        self._moves: deque[tuple[int, float]] = deque()
        self._warning = ThrottledWarning(_LOG, "the position of the deciding step is not known", after_s=10.0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="twinsieve-watcher", daemon=True)

    def __enter__(self) -> Self:
        self._monitor.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_CLOSE_S)
        self._monitor.close(_CLOSE_S)

    def moves(self) -> list[tuple[int, float]]:
        """Return where the deciding step has been since the last call.

        Each is the sequence of the log below which all is decided, and when that was seen, in monotonic seconds.
        """
        return [self._moves.popleft() for _ in range(len(self._moves))]

    @property
    def crawl_lag(self) -> int:
        """Records of `pages` that have no verdict yet, as last measured."""
        return sum(self._monitor.backlog().lag(DECIDE).values())

    @property
    def oldest_s(self) -> float:
        """How long the oldest of these has waited."""
        return max((row.oldest_s for row in self._monitor.backlog().partitions if row.step == DECIDE), default=0.0)

    def _run(self) -> None:
        place, known = TopicPartition(*BACKFILLED), 0
        with closing(StepOffsets(self._connection, self._topics)) as offsets:
            while not self._stop.is_set():
                try:
                    offsets.poll(_POLL_S)
                except TwinsieveError as error:
                    self._warning.about(error)
                    self._stop.wait(_PAUSE_S)
                    continue
                self._warning.over()
                below = offsets.of(BACKFILL_DECIDED).get(place, 0)
                if below > known:
                    known = below
                    self._moves.append((below, time.monotonic()))
