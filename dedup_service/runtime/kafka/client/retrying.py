"""Try again, at a growing pace, and say so now and then instead of every time."""

import logging
import random
import threading
import time

__all__ = ["Backoff", "Complaint", "pause_after"]

SAY_EVERY_S = 30.0


class Complaint:
    """Log a trouble once it has lasted `after_s`, every `every_s` while it lasts, and when it is over."""

    def __init__(
        self, logger: logging.Logger, what: str, *, after_s: float = 0.0, every_s: float = SAY_EVERY_S
    ) -> None:
        self._logger = logger
        self._what = what
        self._after_s = after_s
        self._every_s = every_s
        self._since: float | None = None
        self._said_at: float | None = None

    def about(self, error: BaseException | str) -> None:
        """Take note of the trouble."""
        now = time.monotonic()
        if self._since is None:
            self._since, self._said_at = now, None
        if now - self._since < self._after_s:
            return
        if self._said_at is None or now - self._said_at >= self._every_s:
            self._said_at = now
            self._logger.warning("%s (since %.0f s): %s", self._what, now - self._since, error)

    def over(self) -> None:
        """Take note that it works."""
        if self._since is not None and self._said_at is not None:
            self._logger.info("%s: over after %.1f s", self._what, time.monotonic() - self._since)
        self._since = self._said_at = None


class Backoff:
    """Pauses between tries: from `first_s`, doubled up to `longest_s`, with jitter; `stop` ends a pause."""

    def __init__(
        self,
        stop: threading.Event | None = None,
        *,
        first_s: float = 0.1,
        longest_s: float = 2.0,
        complaint: Complaint | None = None,
    ) -> None:
        self._stop = stop or threading.Event()
        self._failures = 0
        self._first_s = first_s
        self._longest_s = longest_s
        self._complaint = complaint

    @property
    def stopped(self) -> bool:
        """Whether no further try is wanted."""
        return self._stop.is_set()

    def wait(self, error: BaseException) -> None:
        """Pause after a try that failed with `error`."""
        if self._complaint:
            self._complaint.about(error)
        self._failures += 1
        pause_after(self._failures, self._stop, first_s=self._first_s, longest_s=self._longest_s)


def pause_after(failures: int, stop: threading.Event, *, first_s: float = 0.1, longest_s: float = 2.0) -> bool:
    """Pause after so many failures in a row, with jitter; return whether `stop` ended it. Times in seconds."""
    return stop.wait(random.uniform(0.5, 1.0) * min(longest_s, first_s * 2.0 ** min(failures - 1, 30)))  # noqa: S311 - jitter
