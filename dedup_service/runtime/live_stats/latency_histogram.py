"""A latency histogram whose bucket bounds grow by a tenth, so that a quantile is at most 5% off.

Counts are kept for two spans of time, the current one and the previous one, so that quantiles are those of the last
minutes.
"""

import math

MIN_S, MAX_S = 1e-5, 1e3
GROWTH = 1.1
_LOG = math.log(GROWTH)
BUCKETS = math.ceil(math.log(MAX_S / MIN_S) / _LOG) + 1


class LatencyHistogram:
    """Latencies of one part of the work. span_s: quantiles cover the last one to two spans. now_s: Unix seconds."""

    def __init__(self, span_s: float, now_s: float) -> None:
        self._span_s = span_s
        self._began_s = now_s
        self._current = [0] * BUCKETS
        self._previous = [0] * BUCKETS
        self.count = 0
        self.seconds = 0.0

    def add(self, seconds: float, now_s: float) -> None:
        """Add a latency, clamped to 10 µs and 1,000 s."""
        self.rotate(now_s)
        bucket = int(math.log(seconds / MIN_S) / _LOG) if seconds > MIN_S else 0
        self._current[min(bucket, BUCKETS - 1)] += 1
        self.count += 1
        self.seconds += seconds

    def rotate(self, now_s: float) -> None:
        """Begin a new span if the current one is over."""
        passed = (now_s - self._began_s) / self._span_s
        if passed >= 1:
            self._previous = self._current if passed < 2 else [0] * BUCKETS
            self._current = [0] * BUCKETS
            self._began_s = now_s

    def quantile(self, share: float) -> float | None:
        """Return the latency in seconds that a share (0 to 1) of the latest does not exceed; None without data."""
        buckets = [current + previous for current, previous in zip(self._current, self._previous, strict=True)]
        total = sum(buckets)
        if not total:
            return None
        rank, seen = max(1, math.ceil(share * total)), 0
        for bucket, count in enumerate(buckets):
            seen += count
            if seen >= rank:
                return MIN_S * math.exp(_LOG * (bucket + 0.5))
        raise AssertionError("the last rank is in the last bucket")
