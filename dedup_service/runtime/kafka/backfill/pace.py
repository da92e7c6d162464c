"""The pace of a backfill: a share of the deciding step's time is its own, the rest is the crawl's.

    pace.part(pages)                   # how many of them to append now
    pace.appended(pages, sequence)     # they are in the log
    pace.decided(sequence, at)         # the deciding step has passed that
    pace.wait_s(pages)                 # how long to wait before the next batch

- *Busy time.* A batch keeps the step busy from when it could begin (when the batch came, or the one before was done)
  to when it is decided, less what a batch takes without any work: transactions, polls. That is measured once a minute,
  with a few pages that go alone. Of the time that passes, the share may be busy; half a second may be saved up.
- *Window.* No more pages are under way than are decided within about half a second, so a page of the crawl waits not
  much longer behind them. It grows while batches are decided sooner, and shrinks when they are not, as the
  congestion window of background transfers does (LEDBAT, RFC 6817).
- *Lag.* While the oldest page of the crawl that has no verdict is older than two seconds, the share is a quarter.
- *Rate.* Pages a second at most, if that is given.

Times are seconds of `clock`. Invariant: what is under way stays below `MAX_WINDOW` pages and one batch, and so below
the outcomes that the deciding step lets wait.
Source: RFC 6817, "Low Extra Delay Background Transport", section 2.4.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

MIN_WINDOW, FIRST_WINDOW, MAX_WINDOW = 64, 1_000, 30_000
"""Pages under way. 100,000 outcomes may wait in the deciding step, of which the crawl needs some."""

_TARGET_S = 0.5
_SAVED_S = 0.5
_SAVED_RATE_S = 1.0
_BEHIND_S = 2.0
_BEHIND_SHARE = 0.25
_ALONE_PAGES, _ALONE_EVERY_S = 16, 60.0
_POLL_S = 0.02
_LONGEST_S = 0.25


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A batch that is not decided. sequence: of its last record in the log. at: when it was appended."""

    sequence: int
    pages: int
    at: float


class Pace:
    """share: of the deciding step's time, above 0 up to 1. rate: pages a second at most, None for no limit."""

    def __init__(
        self, share: float = 0.5, rate: float | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._share, self._rate, self._clock = share, rate, clock
        self._under_way: deque[_UnderWay] = deque()
        self._pages = 0
        self._window = float(FIRST_WINDOW)
        self._latest_s = self._before_s = float("inf")  # of the shortest batch of this minute, and of the one before
        self._alone_at, self._is_alone = clock(), False
        self._done_at = self._moved_at = clock()
        self._busy_until = self._rate_until = clock()
        self._age_s = 0.0

    @property
    def under_way(self) -> int:
        """Pages that are appended and not decided."""
        return self._pages

    @property
    def stalled_s(self) -> float:
        """For how long pages have been under way and none was decided."""
        return self._clock() - self._moved_at if self._under_way else 0.0

    def appended(self, pages: int, sequence: int | None) -> None:
        """Take it that a batch was appended. sequence: of its last record; None: the deciding step is not watched."""
        now = self._clock()
        if self._rate is not None:
            self._rate_until = max(self._rate_until, now - _SAVED_RATE_S) + pages / self._rate
        if sequence is not None and pages:
            if not self._under_way:
                self._moved_at = now
            self._under_way.append(_UnderWay(sequence, pages, now))
            self._pages += pages

    def decided(self, below: int, at: float) -> None:
        """Take it that all records of the log below a sequence were decided at that time."""
        while self._under_way and self._under_way[0].sequence < below:
            batch = self._under_way.popleft()
            self._pages -= batch.pages
            took_s = max(0.0, at - batch.at)
            self._latest_s = min(self._latest_s, took_s)
            began = max(batch.at + self._shortest_s, self._done_at)
            self._use(max(0.0, at - began), at)
            self._done_at = self._moved_at = at
            self._adapt(took_s - self._shortest_s, batch.pages)

    @property
    def _shortest_s(self) -> float:
        return min(self._latest_s, self._before_s)

    def part(self, pages: int) -> int:
        """Return how many of so many pages to append now: as the window allows, or a few, if they are to go alone."""
        self._is_alone = self._clock() >= self._alone_at
        if not self._is_alone:
            return min(pages, int(self._window))
        self._alone_at = self._clock() + _ALONE_EVERY_S
        self._before_s, self._latest_s = self._latest_s, float("inf")
        return min(pages, _ALONE_PAGES)

    def crawl_waits(self, oldest_s: float) -> None:
        """Take it that the oldest page of the crawl without a verdict has waited for so long."""
        self._age_s = oldest_s

    def wait_s(self, pages: int) -> float:
        """Return how long to wait, and then to ask again, before `pages` more are appended; 0: append them."""
        now = self._clock()
        goes_alone = self._is_alone or now >= self._alone_at
        if self._under_way and (goes_alone or self._pages + min(pages, int(self._window)) > self._window):
            return _POLL_S
        until = max(self._busy_until if self._share < 1 else now, self._rate_until if self._rate is not None else now)
        return min(_LONGEST_S, max(0.0, until - now))

    def _use(self, busy_s: float, now: float) -> None:
        share = self._share * (_BEHIND_SHARE if self._age_s > _BEHIND_S else 1.0)
        self._busy_until = max(self._busy_until, now - _SAVED_S) + busy_s / share

    def _adapt(self, queued_s: float, pages: int) -> None:
        """Let the window follow how long a batch waited beyond the shortest time."""
        if self._age_s > _BEHIND_S:
            queued_s = max(queued_s, 1.5 * _TARGET_S)
        gain = max(-1.0, (_TARGET_S - queued_s) / _TARGET_S)
        self._window = min(MAX_WINDOW, max(MIN_WINDOW, self._window + gain * pages))
