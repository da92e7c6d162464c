"""A ceiling on records that describe no page: one bad record is set aside, a stream of them is somebody's mistake.

A crawler that begins to publish something else would otherwise have all of it moved to the dead letters, at full
speed and unnoticed. So the step that rejects asks first, with what it is about to commit; nothing of a batch above
the ceiling is written. What was committed is remembered, what was tried and lost is not: the same batch counts once.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from dedup_service.core.errors import ConfigurationError, TwinsieveError

__all__ = ["Problems", "RejectionLimit", "RejectionRateError", "RejectionTracker"]

Problems = Iterable[str | None]
"""For each record in turn: where it is and why it was rejected, or None for a page."""


class RejectionRateError(TwinsieveError):
    """Too many records describe no page. Look at whoever publishes them, mend it or raise the ceiling, start again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionLimit:
    """More than `share` (0 to 1) of the last `window` records rejected, and at least `minimum`: too many. 1 is never.

    A tenth: feeds with a broken record now and then stay far below it, a wrong format is above it at once.
    """

    share: float = 0.1
    window: int = 1000
    minimum: int = 100

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or not 1 <= self.minimum <= self.window:
            raise ConfigurationError(
                f"a ceiling of {self.share:g} over {self.window} records, from {self.minimum} on: give a share above 0 "
                "and up to 1, and at least one record, no more than the window has"
            )


class RejectionTracker:
    """The last records that were committed, page or not."""

    def __init__(self, limit: RejectionLimit) -> None:
        self._limit = limit
        self._rejected: deque[bool] = deque(maxlen=limit.window)

    def check(self, problems: Problems) -> None:
        """Return if records with these problems may be committed; RejectionRateError where they are too many."""
        seen, count, limit = deque(self._rejected, self._limit.window), sum(self._rejected), self._limit
        for problem in problems:
            if len(seen) == limit.window:
                count -= seen[0]
            seen.append(problem is not None)
            count += problem is not None
            if problem is not None and count >= limit.minimum and count > limit.share * len(seen):
                raise RejectionRateError(
                    f"{count} of the last {len(seen)} records describe no page, {count / len(seen):.0%} where the "
                    f"ceiling is {limit.share:.0%}; the latest: {problem}. Nothing of this batch was committed. Mend "
                    "whoever publishes them and start again, or raise the ceiling to have them all set aside as dead "
                    "letters"
                )

    def accept(self, problems: Problems) -> None:
        """Remember records that were committed."""
        self._rejected.extend(problem is not None for problem in problems)
