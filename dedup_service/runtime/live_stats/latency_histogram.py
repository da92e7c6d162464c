"""How seconds are spread: counts in slots whose bounds grow by a tenth, so that a quantile is at most 5% off.

Two spans of time are kept, the one in progress and the one before, so that quantiles are those of the last minutes.
"""

import math

__all__ = ["LatencyHistogram"]

MIN_S, MAX_S = 1e-5, 1e3
GROWTH = 1.1
_LOG = math.log(GROWTH)
SLOTS = math.ceil(math.log(MAX_S / MIN_S) / _LOG) + 1


class LatencyHistogram:
    """Seconds of one part of the work. span_s: quantiles are of the last one to two spans."""

    def __init__(self, span_s: float, now_s: float) -> None:
        self._span_s = span_s
        self._began_s = now_s
        self._now = [0] * SLOTS
        self._before = [0] * SLOTS
        self.count = 0
        self.seconds = 0.0

    def add(self, seconds: float, now_s: float) -> None:
        """Count one; below 10 µs and above 1,000 s it counts as that."""
        self.turn(now_s)
        place = int(math.log(seconds / MIN_S) / _LOG) if seconds > MIN_S else 0
        self._now[min(place, SLOTS - 1)] += 1
        self.count += 1
        self.seconds += seconds

    def turn(self, now_s: float) -> None:
        """Begin a new span where the one in progress is over."""
        passed = (now_s - self._began_s) / self._span_s
        if passed >= 1:
            self._before = self._now if passed < 2 else [0] * SLOTS
            self._now = [0] * SLOTS
            self._began_s = now_s

    def quantile(self, share: float) -> float | None:
        """Return the seconds that `share` of the latest do not exceed; None where there are none."""
        slots = [now + before for now, before in zip(self._now, self._before, strict=True)]
        total = sum(slots)
        if not total:
            return None
        rank, seen = max(1, math.ceil(share * total)), 0
        for place, count in enumerate(slots):
            seen += count
            if seen >= rank:
                return MIN_S * math.exp(_LOG * (place + 0.5))
        raise AssertionError("the ranks end with the last slot")
