"""Limit on the share of rejected records: a few are dead-lettered, a stream of them stops the service.

A crawler that starts to publish something else would otherwise have all of it moved to `pages.dlq`, at full
speed and unnoticed. The fingerprinting step therefore checks each batch before it commits it; nothing is
written of a batch that exceeds the limit. Only committed records enter the window, so a batch that is
retried counts once.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dedup_service.core.errors import ConfigurationError, TwinsieveError

Problems = Iterable[str | None]
"""For each record in order: where it is and why it was rejected, or None for a page."""


class RejectionRateError(TwinsieveError):
    """Too many records are not pages. Fix the producer, and let those that are there be moved to the dead letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionLimit:
    """Too many: more than `share` (0 to 1) of the last `window` records, and at least `min_rejected`.

    A share of 1 disables the limit. Default 0.1: a feed with an occasional broken record stays far below it;
    a wrong format exceeds it at once.
    """

    share: float = 0.1
    window: int = 1000
    min_rejected: int = 100

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or not 1 <= self.min_rejected <= self.window:
            raise ConfigurationError(
                f"a rejection limit of {self.share:g} over {self.window} records, from {self.min_rejected} rejected on,"
                " is not possible: use a share above 0 and at most 1, and from 1 to `window` rejected records"
            )


_REPORT_S = 60.0
_MAX_REPORTED = 20
_NUMBERS = re.compile(r"\d+")


class RejectionTracker:
    """Sliding window over the committed records: page, or rejected. clock: monotonic seconds."""

    def __init__(self, limit: RejectionLimit, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._rejected: deque[bool] = deque(maxlen=limit.window)
        self._reported: set[str] = set()
        self._report_at = 0.0

    def check(self, problems: Problems) -> None:
        """Raise RejectionRateError if records with these problems exceed the limit; adds none of them."""
        seen, count, limit = deque(self._rejected, self._limit.window), sum(self._rejected), self._limit
        for problem in problems:
            if len(seen) == limit.window:
                count -= seen[0]
            seen.append(problem is not None)
            count += problem is not None
            if problem is not None and count >= limit.min_rejected and count > limit.share * len(seen):
                raise RejectionRateError(
                    f"{count} of the last {len(seen)} records are not pages: {count / len(seen):.0%}, the limit is "
                    f"{limit.share:.0%}. The latest: {problem}. Nothing of this batch was committed, so the next start "
                    "meets the same records. Fix the producer, then start once with `--max-rejected-share 1`: it moves "
                    "them to the dead letters (pages.dlq), with the reasons; go on without it behind them"
                )

    def accept(self, problems: Problems) -> list[str]:
        """Add records that were committed; return the first problem of each kind in a minute, 20 at most.

        Problems of a kind differ in numbers alone.
        """
        if self._clock() >= self._report_at:
            self._report_at = self._clock() + _REPORT_S
            self._reported.clear()
        first = []
        for problem in problems:
            self._rejected.append(problem is not None)
            if problem is None or len(self._reported) == _MAX_REPORTED:
                continue
            kind = _NUMBERS.sub("", problem)
            if kind not in self._reported:
                self._reported.add(kind)
                first.append(problem)
        return first
