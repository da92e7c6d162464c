"""Quantiles of the histogram, compared with those of the sorted list."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.live_stats import LatencyHistogram


@given(st.lists(st.floats(1.1e-5, 990), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_quantile_is_at_most_five_percent_off(seconds: list[float], share: float) -> None:
    """The error is measured against the value at the same rank."""
    histogram = LatencyHistogram(300, 0.0)
    for value in seconds:
        histogram.add(value, 0.0)
    exact = sorted(seconds)[math.ceil(share * len(seconds)) - 1 if share * len(seconds) > 1 else 0]
    assert histogram.quantile(share) == pytest.approx(exact, rel=0.0500001)
    assert (histogram.count, histogram.seconds) == (len(seconds), pytest.approx(sum(seconds)))


def test_latencies_are_clamped_to_the_bounds() -> None:
    """A latency of zero or of a day is counted at the nearest bound."""
    histogram = LatencyHistogram(300, 0.0)
    histogram.add(0.0, 0.0)
    assert histogram.quantile(0.5) == pytest.approx(1e-5, rel=0.1)
    histogram.add(86400.0, 0.0)
    assert histogram.quantile(1.0) == pytest.approx(1e3, rel=0.15)


def test_quantiles_cover_the_last_two_spans() -> None:
    """Older latencies are dropped; count and sum keep them."""
    histogram = LatencyHistogram(10, 0.0)
    histogram.add(1.0, 0.0)
    histogram.add(2.0, 11.0)
    assert histogram.quantile(0.01) == pytest.approx(1.0, rel=0.06)
    histogram.rotate(22.0)
    assert histogram.quantile(0.01) == pytest.approx(2.0, rel=0.06)
    histogram.rotate(60.0)
    assert histogram.quantile(0.5) is None
    assert histogram.count == 2
