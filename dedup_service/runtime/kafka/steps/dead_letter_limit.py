"""Limit on the share of rejected records: a few are dead-lettered, a stream of them stops the service.

A crawler that starts to publish something else would otherwise have all of it moved to `pages.dlq`, at full
speed and unnoticed. The fingerprinting step therefore checks each batch before it commits it; nothing is
written of a batch that exceeds the limit. Only committed records enter the window, so a batch that is
retried counts once.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from dedup_service.core.errors import ConfigurationError, TwinsieveError

Problems = Iterable[str | None]
"""For each record in order: where it is and why it was rejected, or None for a page."""


class RejectionRateError(TwinsieveError):
    """Too many records are not pages. Fix the producer or raise the limit, then start the service again."""


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


class RejectionTracker:
    """Sliding window over the committed records: page, or rejected."""

    def __init__(self, limit: RejectionLimit) -> None:
        self._limit = limit
        self._rejected: deque[bool] = deque(maxlen=limit.window)

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
                    f"{limit.share:.0%}. The latest: {problem}. Nothing of this batch was committed. Fix the producer "
                    "and start again, or raise --max-rejected-share to move all of them to the dead letters"
                )

    def accept(self, problems: Problems) -> None:
        """Add records that were committed."""
        self._rejected.extend(problem is not None for problem in problems)
